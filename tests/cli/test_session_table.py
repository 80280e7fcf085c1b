"""The session list: a table at a terminal, self-explanatory lines elsewhere."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import terminal
from tests.cli.test_task import script

from holdfast.cli.terminal.wrap import cell_width, clip, ellipsize, fold, pad, wrap
from holdfast.cli.views.session_table import row, sentence
from holdfast.core import SessionId, format_age
from holdfast.store import Home, SessionSummary

NARROW = ["session", "age", "state", "turns", "cost", "folder", "name", "|", "first", "words"]
WIDE = ["session", "name", "age", "state", "turns", "cost", "folder", "first", "words"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A session of one turn, in wide characters, and a session of two turns."""
    model = script(tmp_path, "First.", "Second.")
    for words in (("-n", "wide", "数を数えて" * 12), ("-n", "two", "count"), ("-r", "two", "again")):
        done = holdfast("-m", model, *words, home=tmp_path)
        assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.parametrize("columns", ["80", "140"])
def test_the_session_list_is_an_aligned_table_at_a_terminal(home: Path, columns: str) -> None:
    with terminal("sessions", home=home, COLUMNS=columns) as user:
        assert user.end() == 0
    shown = [line.removesuffix("\x1b[0m").removeprefix("\x1b[2m") for line in user.seen.splitlines()]
    if columns == "80":
        head, below, two, of_two, wide, of_wide = shown
        assert f"{head} {below}".split() == NARROW
        assert (of_two, of_wide[:12], of_wide[-1]) == ("  two | count", "  wide | 数を数", "…")
    else:
        head, two, wide = shown
        assert head.split() == WIDE
        assert (two.split()[-1], wide[-1]) == ("count", "…")
    end = head.index("turns") + len("turns")
    assert (two[:end].split()[-1], wide[:end].split()[-1]) == ("2", "1")
    assert "$0.00 " in two
    assert two.count(str(home)[-12:]) == 1
    assert all(cell_width(line) <= int(columns) for line in shown)


def test_each_line_names_its_values_in_a_pipe_and_in_plain_mode(home: Path) -> None:
    piped = holdfast("sessions", home=home).stdout.splitlines()
    with terminal("sessions", home=home, TERM="dumb") as user:
        assert user.end() == 0
    for two, wide in (piped, user.seen.splitlines()):
        assert " 2 turns " in two
        assert " 1 turn " in wide


def test_a_truncated_list_says_that_there_is_more(home: Path) -> None:
    one = holdfast("sessions", "--limit", "1", home=home)
    assert (len(one.stdout.splitlines()), "--limit N shows more" in one.stderr) == (1, True)
    assert holdfast("sessions", "--limit", "2", home=home).stderr == ""


def test_json_output_has_no_heading(home: Path) -> None:
    found = json.loads(holdfast("sessions", "--json", home=home).stdout)
    assert [each["turns"] for each in found] == [2, 1]


def test_an_outcome_is_shown_in_words_and_named_in_json(tmp_path: Path) -> None:
    model = script(tmp_path, "Never said.")
    assert holdfast("-m", model, "--budget", "tokens=1", "go", home=tmp_path).returncode == 4
    expected = holdfast("show", home=tmp_path).stdout
    assert "[1] stopped: the tokens limit was reached" in expected
    assert "nonconverged" not in expected
    events = json.loads(holdfast("show", "--json", home=tmp_path).stdout)["events"]
    assert "nonconverged" in [each["event"].get("outcome", {}).get("outcome") for each in events]


def test_a_file_goes_to_stdout_and_a_folder_does_not(tmp_path: Path) -> None:
    (tmp_path / "work" / "folder").mkdir(parents=True)
    (tmp_path / "work" / "a.txt").write_text("precious\n")
    words = ("-m", script(tmp_path, "Hello."), "-w", "work", "--trust", "-n", "one", "hello")
    assert holdfast(*words, home=tmp_path).returncode == 0
    got = holdfast("files", "get", "one", "a.txt", "-", home=tmp_path)
    assert (got.returncode, got.stdout, got.stderr) == (0, "precious\n", "")
    assert not (tmp_path / "-").exists()
    refused = holdfast("files", "get", "one", "folder", "-", home=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is not a file" in refused.stderr


def test_widths_are_counted_in_terminal_cells() -> None:
    assert [
        cell_width(text) for text in ("abc", "数字", "e\u0301", "🪢", "👨\u200d👩\u200d👧", "❤\ufe0f", "")
    ] == [
        3,
        4,
        1,
        2,
        2,
        2,
        0,
    ]
    family = "👨\u200d👩\u200d👧"
    assert [clip(family + family, width) for width in (1, 2, 3, 4)] == ["", family, family, family + family]
    assert wrap(family * 3, 4) == [family * 2, family]
    assert [ellipsize("数字 ab", width) for width in (1, 3, 5, 6, 7)] == [
        "…",
        "数…",
        "数字…",
        "数字…",
        "数字 ab",
    ]
    assert [clip("数字ab", width) for width in (0, 1, 3, 5)] == ["", "", "数", "数字a"]
    assert pad("数", 4) == "数  "
    assert wrap("two words", 5) == ["two", "words"]
    assert wrap("数字数字 end", 5) == ["数字", "数字", "end"]
    assert wrap("", 5) == [""]


def test_a_folded_line_of_wide_characters_fits_the_terminal() -> None:
    folded = fold(f"  why it asks:   {'数字を数える ' * 12}", 60).split("\n")
    assert len(folded) > 2
    assert all(cell_width(line) <= 60 for line in folded)
    assert all(line.startswith(" " * 17) for line in folded[1:])


@pytest.mark.parametrize(("width", "lines"), [(None, 1), (80, 2), (140, 1)])
def test_no_session_text_can_break_out_of_its_line(width: int | None, lines: int) -> None:
    hostile = "a\nb\r\x1b[2J\u202e\tc"
    line = SessionSummary(id=SessionId("s"), name=hostile, folder=f"/{hostile}", first_words=hostile)
    shown = row(line, 0, width=width)
    assert len(shown.splitlines()) == lines
    assert not {"\x1b", "\r", "\u202e", "\t"} & set(shown)
    assert len(sentence(line, 0, Home(Path("home"))).splitlines()) == 1


def test_an_age_fits_its_column() -> None:
    day = 24 * 60 * 60 * 1000
    assert [format_age(age) for age in (-day, 59_000, day - 1, 364 * day, 3650 * day)] == [
        "0s",
        "59s",
        "23h",
        "364d",
        "10y",
    ]
