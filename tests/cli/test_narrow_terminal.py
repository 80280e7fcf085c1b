"""Output at a terminal of eighty columns: lines break between words, and the most important part is never cut off."""

import re
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import DELETE, prepared, terminal

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.help_pages import load_command, subcommands

_REDRAWN = re.compile(r"[^\n]*\x1b\[K|\x1b\[[0-9;]*m")


def shown(*words: str, home: Path) -> list[str]:
    """The output lines of a command at that terminal."""
    with terminal(*words, home=home, COLUMNS="80", TMPDIR=str(home)) as user:
        assert user.end() == 0, user.seen
        return _REDRAWN.sub("", user.seen).replace("\r", "").splitlines()


@pytest.fixture
def waiting(tmp_path: Path) -> Path:
    """A data directory in which a call of the session `books` waits."""
    words = prepared(tmp_path, DELETE, "It stays.")
    assert holdfast("-n", "books", *words, "clean up", home=tmp_path).returncode == 5
    return tmp_path


def test_waiting_names_the_session_and_how_to_answer(waiting: Path) -> None:
    lines = shown("waiting", home=waiting)
    assert "in session books" in lines[0]
    assert lines[1].startswith("  The agent wants to delete")
    assert lines[-1] == "answer with: holdfast approve, or holdfast deny --reason TEXT"


def test_an_answer_prints_how_to_resume(waiting: Path) -> None:
    assert shown("deny", home=waiting)[-1] == "recorded; resume with: holdfast -r books"


def test_a_narrow_audit_table_keeps_who_denied_the_call(waiting: Path) -> None:
    assert holdfast("deny", home=waiting).returncode == 0
    assert holdfast("-r", "books", home=waiting).returncode == 0
    [call] = [line for line in shown("audit", "books", home=waiting) if line.startswith("1.1 ")]
    assert call.endswith("[deny by person]")
    assert len(call) <= 80


@pytest.mark.parametrize(("variables", "columns"), [({}, 80), ({"COLUMNS": "60"}, 60)])
def test_a_chart_in_a_pipe_is_as_wide_as_the_terminal_or_80_columns(
    variables: dict[str, str], columns: int, waiting: Path
) -> None:
    for command in ("timeline", "usage"):
        lines = holdfast(command, home=waiting, **variables).stdout.splitlines()
        assert max(map(len, lines)) in range(columns - 12, columns + 1), lines


def test_a_search_hit_shows_the_message(waiting: Path) -> None:
    assert shown("search", "clean", home=waiting)[0].endswith(": clean up")


def test_only_search_hits_are_highlighted_at_a_terminal(waiting: Path) -> None:
    (waiting / "script.json").write_text('["I do."]')
    said = f"\x1b[31mfind \x02 {'long words ' * 3}needle and hay"
    assert holdfast("-m", f"scripted:{waiting}/script.json", said, home=waiting).returncode == 0
    with terminal("search", "needle", home=waiting, COLUMNS="80") as user:
        assert user.end() == 0
    assert "\x1b[1mneedle\x1b[0m and hay" in user.seen
    assert "\x1b[31m" not in user.seen
    with terminal("search", "needle", home=waiting, COLUMNS="80", NO_COLOR="1") as user:
        assert user.end() == 0
    assert "\x1b[1m" not in user.seen


@pytest.mark.parametrize("command", [("demo", "--yes"), ("waiting",), ("config",), ("show",)])
def test_sentences_are_wrapped_between_words(command: tuple[str, ...], waiting: Path) -> None:
    # Paths cannot be broken, and lines of a diff are shown unchanged.
    lines = [
        line for line in shown(*command, home=waiting) if line.count("/") < 3 and "DictReader" not in line
    ]
    assert [line for line in lines if len(line) > 80] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_page_starts_with_examples_and_fits(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = load_command(command).parser
    for page in (parser, *subcommands(parser).values()):
        text = page.format_help()
        assert [line for line in text.splitlines() if len(line) > 80] == []
        assert 0 < text.index("examples:\n") < text.index("usage: ")
