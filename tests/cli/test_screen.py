"""What the screen of a conversation shows besides words: the status line, the bell, the editor without colour."""

import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.terminals import DELETE, at_terminal, prepared, runs, terminal
from tests.cli.test_conversation import begun, say, three
from tests.cli.test_terminal import QUESTION, press

from holdfast.cli.chat.activity import Activity
from holdfast.cli.terminal.status_line import status_line
from holdfast.cli.terminal.wrap import fold
from holdfast.core import Limits
from holdfast.guests import script
from holdfast.models import use
from holdfast.testing import memory_session

ANSWERS = {"PROMPT_TOOLKIT_NO_CPR": ""}
"""A terminal that says where its cursor is, as nearly all do."""


async def test_the_status_line_tells_what_runs_model_tokens_cost_budget_context_and_what_waits() -> None:
    ask = use("execute_code", {"code": script({"call": "person.ask", "arguments": {"question": "which?"}})})
    async with memory_session([ask], limits=Limits(tokens=50_000, calls=9)) as session:
        activity = Activity()
        session.follow(activity)
        await session.send("write it")
        line = status_line(session, activity, queued=2, window_tokens=100_000)
    amounts = r"scripted:demo · [\d.k]+ tokens · \$0\.00 · [\d.]+k tokens left · 9 calls left"
    working = r"[|/\\-] \d+s [\w. ]+"
    assert re.fullmatch(
        rf"{working} · 1 waiting for you · 2 queued · {amounts} · context [\d.k]+ \(\d+%\)", line
    ), line


def test_the_status_line_stands_below_the_editor(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new')"), "Written.")
    with terminal(*words, home=tmp_path, **ANSWERS) as typist:
        begun(typist)
        assert typist.wait_for("script.json · 0 tokens · $0.00")
        say(typist, "write it", "Written.")
        assert typist.wait_for("1 staged")


def test_a_bell_and_a_notification_tell_that_something_waits(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path, **ANSWERS) as typist:
        begun(typist)
        typist.type("go\r")
        assert typist.wait_for(QUESTION)
        assert "\a" in typist.seen
        assert "\x1b]9;Holdfast needs your approval\x07" in typist.seen


def test_what_cannot_be_shown_in_full_cannot_be_allowed_for_always(tmp_path: Path) -> None:
    policy = "policy: p\nrules:\n  - {name: ask, escalate: world.write, because: look, examples: {matches: [{world.write: {path: a, content: b}}], misses: [{world.read: {path: a}}]}}\n"
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('line\\n' * 200)"), "Written.")
    (tmp_path / "asking.yaml").write_text(policy)
    with terminal(*words, home=tmp_path) as typist:
        begun(typist)
        say(typist, "write it", "too long to show here (9 shows everything)")
        assert typist.wait_for(QUESTION)
        assert "approve always" not in typist.seen
        assert "approve for this session" in typist.seen
        press(typist, "9", "line")
        press(typist, "6", "answer  denied")


def test_without_colour_the_editor_stays_where_it_is_asked_for(tmp_path: Path) -> None:
    words = ("--no-plain", *prepared(tmp_path, DELETE, "**Kept.**"))
    with terminal(*words, home=tmp_path, NO_COLOR="1") as typist:
        begun(typist)
        say(typist, "remove it", QUESTION)
        press(typist, "6", "answer  denied")
        assert typist.wait_for("Kept.")
    assert "\x1b[?2004h" in typist.seen, "the editor"
    assert not re.search(r"\x1b\[[\d;]*(3[0-7]|9[0-7]|38;5)[\d;]*m", typist.seen), "no colour"


def test_what_was_typed_is_remembered_for_its_owner_alone_and_without_answers(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as typist:
        begun(typist)
        say(typist, "hello there", "Hello.")
        say(typist, "/approve", "no call waits for approval")
        assert typist.end("\x04") == 0
    history = tmp_path / "holdfast" / "history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    assert "hello there" in history.read_text()
    assert "/approve" not in history.read_text()


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=300), st.integers(8, 120))
def test_folding_keeps_every_letter_and_the_width(text: str, width: int) -> None:
    folded = fold(text, width)
    assert folded.replace(" ", "").replace("\n", "") == text.replace(" ", "")
    assert all(len(line) <= width for line in folded.split("\n")), folded


@pytest.mark.parametrize(
    ("line", "folded"),
    [
        (
            "  why it asks:   one two three four five six seven",
            "  why it asks:   one two three four five\n                 six seven",
        ),
        (
            "  stage   world.write path=/workspace/a.txt content=x",
            "  stage   world.write\n          path=/workspace/a.txt\n          content=x",
        ),
    ],
)
def test_what_follows_a_label_stays_beside_it(line: str, folded: str) -> None:
    assert fold(line, 40) == folded


def test_where_a_label_takes_more_than_half_the_room_its_words_go_below_it() -> None:
    assert fold("  why it asks:   one two three four", 24) == "  why it asks:   one two\n  three four"
