"""Streaming an answer: everything the model said is on the screen afterwards, once, and each piece is visible on arrival."""

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.cli.terminal.answer_stream import AnswerStream, BlockSplitter, render
from holdfast.cli.terminal.console import Tone
from holdfast.cli.terminal.live_region import LiveRegion, Section
from holdfast.models import ReplyPiece

ANSI = re.compile(r"\x1b\[[\d;]*m")
WORDS = re.compile(r"[\w<>&;/]")
BLOCKS = (
    "A word about Vec<String>, <module> and a < b > c.",
    "HTML: <b>bold</b> <script>alert(1)</script> &lt;kept&gt; &amp;",
    "| name | kind |\n|------|------|\n| a<T> | list |\n| b | Grüße 北京 |",
    "| name | kind | why |\n|------|------|-----|\n| a | str | None | its value |\n| only |",
    "> | name | kind |\n> |---|---|\n> | quoted | int | None |",
    "``` src/app.py\na fence with a path\n```",
    "```python\nfor x in y:\n\n    print(f'<{x}>')\n```",
    "````\na fence with ``` inside\n\n```\nstill inside\n```\n````",
    "~~~\nother fence\n~~~",
    "1. first\n2. second\n\n    continued after an empty line\n\n3. third",
    "- item\n  - nested <item>\n\n    ```\n    code in a list\n    ```",
    "> a quote of <someone>",
    "# A heading <h1>",
    "[a link](https://example.org/a) and ![a picture](picture.png)",
    "[reference]: https://example.org/reference",
    "<https://example.org/auto>",
    "wide 北京 letters and 👨‍👩‍👧 a family",
    "a very long word: " + "x" * 200,
    "    indented code\n\n    more of it",
)


class FakeScreen:
    """Keeps what is printed for good, and what is in progress."""

    is_plain = False

    def __init__(self) -> None:
        self.printed: list[str] = []
        self.said: list[str] = []
        self.region = LiveRegion()

    def answer(self, text: str) -> None:
        self.printed.append(text)

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        self.said.append(text)

    def live(self, section: Section, text: str) -> None:
        self.region.show(section, text)

    @property
    def text(self) -> str:
        return ANSI.sub("", "\n".join(self.printed))


def stream_to(screen: FakeScreen, *pieces: str) -> AnswerStream:
    stream = AnswerStream(screen, fold=lambda title, text: screen.said.append(f"{title}: {text}"))
    for piece in pieces:
        stream(ReplyPiece(text=piece))
    return stream


def pieces_of(text: str, cuts: list[int]) -> list[str]:
    places = sorted({cut % (len(text) + 1) for cut in cuts} | {0, len(text)})
    return [text[start:end] for start, end in itertools.pairwise(places)]


@settings(max_examples=40, deadline=None)
@given(blocks=st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=8), cuts=st.lists(st.integers(0, 5000)))
@example(blocks=list(BLOCKS), cuts=list(range(0, 5000, 3)))
def test_every_character_of_an_answer_is_printed_once_and_in_order(
    blocks: list[str], cuts: list[int]
) -> None:
    said = "\n\n".join(blocks)
    screen = FakeScreen()
    stream_to(screen, *pieces_of(said, cuts)).end()
    # What marks up a table, a fence or a list is drawn instead of printed; words and angle brackets are not markup.
    expected = re.sub(r"^(```+|~~~+)\w*$|^> |^ *\d+\. ", "", said, flags=re.M)
    shown = re.sub(r"^ *\d+(?= )", "", screen.text, flags=re.M)
    assert "".join(WORDS.findall(shown)) == "".join(WORDS.findall(expected))


@given(text=st.text(alphabet="ab`~ \n-<>|#", max_size=80), cuts=st.lists(st.integers(0, 80), max_size=20))
def test_blocks_are_the_same_however_the_text_arrives(text: str, cuts: list[int]) -> None:
    at_once, in_pieces = BlockSplitter(), BlockSplitter()
    first = [*at_once.add(text), at_once.end()]
    second = [block for piece in pieces_of(text, cuts) for block in in_pieces.add(piece)]
    assert [*second, in_pieces.end()] == first
    assert "".join(first) == text


def test_a_code_block_names_its_file() -> None:
    screen = FakeScreen()
    stream_to(screen, "```python src/app.py:12\nx = 1\n```\n\n```12:15:src/b.py\ny = 2\n```\n").end()
    assert screen.text.split() == ["src/app.py:12", "x", "=", "1", "12:15:src/b.py", "y", "=", "2"]


def test_an_unfinished_block_is_visible_at_once_and_gone_when_it_is_printed() -> None:
    screen = FakeScreen()
    stream = stream_to(screen, "Hello wor", "ld")
    assert screen.printed == []
    assert [line for _, line in screen.region.lines(80, 24)] == ["Hello world"]
    stream(ReplyPiece(text="\n\nNext"))
    assert screen.text == "Hello world".ljust(80) + "\n"
    assert [line for _, line in screen.region.lines(80, 24)] == ["Next"]
    stream.end()
    assert screen.region.lines(80, 24) == []


def test_reasoning_is_shown_while_it_arrives_and_folded_when_the_answer_starts() -> None:
    screen = FakeScreen()
    stream = stream_to(screen)
    stream(ReplyPiece(text="first this,\nthen that", kind="thinking"))
    assert [line for _, line in screen.region.lines(80, 24)] == ["first this,", "then that"]
    stream(ReplyPiece(text="Done."))
    assert screen.said == ["thought, 2 lines: first this,\nthen that"]
    assert [line for _, line in screen.region.lines(80, 24)] == ["Done."]


def test_a_retry_prints_what_arrived_and_a_notice() -> None:
    screen = FakeScreen()
    stream = stream_to(screen, "half a ")
    stream(ReplyPiece(text="it did not answer; attempt 2 of 5 in 4 s", kind="retry"))
    stream(ReplyPiece(text="the whole"))
    stream.end()
    assert screen.text.split() == ["half", "a", "the", "whole"]
    assert screen.said == ["  it did not answer; attempt 2 of 5 in 4 s"]


@pytest.mark.parametrize("rows", [3, 8, 24])
def test_the_live_region_leaves_room_for_the_input(rows: int) -> None:
    region = LiveRegion()
    for section in ("code", "output", "thinking", "answer"):
        region.show(section, "line of text\n" * 100)
    assert len(region.lines(80, rows)) <= max(3, rows - 6)


def test_a_long_block_is_split_in_linear_time() -> None:
    splitter = BlockSplitter()
    splitter.add("```\n")
    for _ in range(50_000):
        assert splitter.add("a line of code\n") == []
    assert len(splitter.end()) == 4 + 50_000 * 15


def test_control_characters_of_the_model_do_not_reach_the_terminal() -> None:
    screen = FakeScreen()
    stream_to(screen, "before \x1b]0;title\x07 after \u202e").end()
    assert "\x1b]" not in "".join(screen.printed)
    assert "\u202e" not in "".join(screen.printed)
    region = LiveRegion()
    region.show("answer", "\x1b[2J")
    assert all("\x1b" not in line for _, line in region.lines(80, 24))


def test_a_link_shows_where_it_leads() -> None:
    assert "https://example.org/a" in ANSI.sub("", render("[here](https://example.org/a)"))
