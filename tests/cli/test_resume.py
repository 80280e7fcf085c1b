"""Resuming a session: the picker at a real terminal, and the notice that the model does not see."""

import asyncio
import json
import sqlite3
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import terminal
from tests.cli.test_task import script
from tests.support.provider_stub import StubServer

from holdfast.cli.terminal.picker import Choice, Selection

NOTICE = "Resuming session"


def choices(count: int) -> list[Choice]:
    return [
        Choice(key=f"k{number}", line=f"line {number}", search_text=f"Word{number} ÄPFEL")
        for number in range(count)
    ]


# -- the selection


def test_typing_narrows_the_matches_and_erasing_widens_them() -> None:
    selection = Selection([*choices(3), Choice(key="x", line="x", search_text="other")])
    selection.type("äpfel WORD1")
    assert [one.key for one in selection.matches] == ["k1"]
    selection.clear()
    selection.type("zz")
    assert (selection.selected, selection.shown) == (None, [])
    selection.move(1)
    selection.erase()
    selection.erase()
    assert len(selection.matches) == 4


def test_an_entry_that_changes_stays_selected_even_if_the_query_would_hide_it() -> None:
    selection = Selection(choices(30))
    selection.type("7")
    renamed = Choice(key=selection.matches[0].key, line="another", search_text="another")
    selection.replace(renamed.key, renamed)
    assert (selection.query, selection.selected) == ("", renamed)
    assert renamed in selection.shown


def test_the_selected_entry_stays_visible_and_stops_at_both_ends() -> None:
    selection = Selection(choices(30), rows=5)
    for steps, place in ((-1, 0), (7, 7), (100, 29), (-3, 26), (-100, 0)):
        selection.move(steps)
        assert selection.selected is not None
        assert selection.selected.key == f"k{place}"
        assert selection.selected in selection.shown
        assert len(selection.shown) == 5


# -- at a terminal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two sessions, the older one named."""
    model = script(tmp_path, "First answer.", "Second answer.")
    for words in (("-n", "parser", "fix the parser"), ("write the docs\x1b[31m",)):
        done = holdfast("-m", model, *words, home=tmp_path)
        assert done.returncode == 0, done.stderr
        assert NOTICE not in done.stderr
    return tmp_path


def test_a_session_is_found_by_typing_and_resumed_with_enter(home: Path) -> None:
    with terminal("-r", home=home) as user:
        user.resize(24, 80)
        assert user.wait_for("resume: ")
        assert user.wait_for("2 found")
        user.type("pars")
        user.wait_for_row("1 found", rows=24, columns=80)
        user.type("\r")
        assert user.wait_for(f"{NOTICE} parser")
        assert user.wait_for("First topic: fix the parser")
        user.type("go on\r")
        assert user.wait_for("Second answer.")
        assert user.end("\x04") == 0
    assert "\x1b[31m" not in user.seen


def test_resume_in_a_chat_opens_the_list(home: Path) -> None:
    with terminal("--scratch", "-m", script(home, "One."), home=home) as user:
        assert user.wait_for("/help")
        user.type("/resume\r")
        assert user.wait_for("found; Enter opens")
        user.type("\x1b")
        assert user.wait_for("no session was chosen")
        user.type("/resume\r")
        assert user.wait_for("found; Enter opens")
        user.type("parser")
        user.wait_for_row("  you: fix the parser")
        user.type("\r")
        assert user.wait_for("switched to parser, 1 turn")
        assert user.end("\x04") == 0


def test_arrows_select_and_escape_quits(home: Path) -> None:
    with terminal("-r", home=home) as user:
        user.resize(24, 80)
        assert user.wait_for("write the docs<U+001")
        assert user.wait_for("2 found")
        user.type("\x1b[B\r")
        assert user.wait_for(f"{NOTICE} parser")
        assert user.end("\x04") == 0
    with terminal("-r", home=home) as user:
        user.resize(24, 80)
        assert user.wait_for("2 found")
        user.type("\x1b")
        assert user.wait_for("no session was chosen")
        assert user.end() == 0


def test_the_list_shows_the_last_exchange_and_renames_pins_and_deletes(home: Path) -> None:
    with terminal("-r", home=home) as user:
        user.resize(24, 80)
        small = {"rows": 24, "columns": 80}
        user.wait_for_row("2 found", **small)
        user.type("parser")
        rows = user.wait_for_row("  you: fix the parser\n  | First answer.", **small)
        assert any(row.endswith("^R renames, ^T pins, ^X deletes, Esc quits") for row in rows)
        user.type("\x12")
        assert user.wait_for("new name of parser (Enter alone keeps it)> ")
        user.type("\x1b\n")
        user.wait_for_row("> parser", **small)
        user.type("\x12")
        assert user.wait_for("new name of parser (Enter alone keeps it)> ")
        user.type("grammar\n")
        user.wait_for_row("> grammar", **small)
        user.type("\x14")
        user.wait_for_row(f"> {'grammar':<16}*", **small)
        user.type("\x15docs")
        user.wait_for_row("  you: write the docs", **small)
        user.type("\x18")
        assert user.wait_for("permanently? [y/N] ")
        user.type("y\n")
        user.wait_for_row("nothing matches", **small)
        user.type("\x1b")
        assert user.end() == 0
    listed = json.loads(holdfast("sessions", "--json", home=home).stdout)
    assert [(each["name"], each["is_pinned"]) for each in listed] == [("grammar", True)]


def test_the_search_narrows_a_hundred_thousand_entries_as_they_arrive() -> None:
    entries = choices(100_000)
    selection = Selection(entries[:500])
    selection.type("word9")
    for start in range(500, len(entries), 500):
        selection.extend(entries[start : start + 500])
    assert selection.selected is not None
    assert selection.selected.key == "k9"
    selection.type("9999")
    assert [each.key for each in selection.matches] == ["k99999"]
    selection.replace("k99999", None)
    assert selection.matches == []
    selection.clear()
    assert len(selection.matches) == 99_999


def test_in_plain_mode_a_number_or_a_word_chooses(home: Path) -> None:
    with terminal("-r", "--plain", home=home) as user:
        user.resize(24, 80)
        assert user.wait_for("  2  parser")
        assert user.wait_for("or Enter to quit> ")
        user.type("nowhere\n")
        assert user.wait_for("nothing matches 'nowhere'")
        user.type("parser\n")
        assert user.wait_for("  1  parser")
        assert user.wait_for("or Enter to quit> ")
        user.type("1\n")
        assert user.wait_for(f"{NOTICE} parser")
        assert user.end("\x04") == 0
    assert "\x1b" not in user.seen


def test_without_a_terminal_a_session_must_be_named(home: Path) -> None:
    done = holdfast("-r", home=home, stdin="go on")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holdfast -r NAME" in done.stderr
    assert holdfast("-r", "", "go on", home=home).returncode == 1


# -- the notice


@pytest.mark.parametrize("words", [("-r", "parser"), ("-c",), ("-c", "--json")], ids=" ".join)
def test_a_resumed_task_prints_the_notice_to_stderr(home: Path, words: tuple[str, ...]) -> None:
    done = holdfast(*words, "and then?", home=home)
    assert done.returncode == 0, done.stderr
    assert NOTICE in done.stderr
    assert "Total messages: 2 (1 from user, 1 from assistant)" in done.stderr
    assert NOTICE not in done.stdout
    assert "Second answer." in done.stdout


async def test_the_notice_is_never_sent_to_the_model(tmp_path: Path) -> None:
    async with StubServer(["First.", "Second."], key="stub-key") as stub:
        words = ("-m", f"server:{stub.url}/v1#any")
        keys = {"HOLDFAST_SERVER_KEY": "stub-key"}
        first = await asyncio.to_thread(holdfast, *words, "hello", home=tmp_path, **keys)
        assert first.returncode == 0, first.stderr
        again = await asyncio.to_thread(holdfast, *words, "-c", "go on", home=tmp_path, **keys)
        assert (again.returncode, again.stdout) == (0, "Second.\n"), again.stderr
        assert NOTICE in again.stderr
        asked = str(stub.requests[-1].body)
    assert "go on" in asked
    assert "hello" in asked
    for expected in again.stderr.splitlines()[:4]:
        assert expected.split(":")[0] not in asked


@pytest.mark.parametrize("words", [("-c", "and then?"), ("sessions",), ("show",)], ids=" ".join)
def test_a_rebuilt_session_list_is_reported_in_one_line(home: Path, words: tuple[str, ...]) -> None:
    connection = sqlite3.connect(home / "holdfast" / "holdfast.db")
    connection.execute("DELETE FROM session")
    connection.commit()
    connection.close()
    done = holdfast(*words, home=home)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith("note: ")] == [
        "note: the session list was rebuilt from the journals: 2 sessions"
    ]
    assert "note: " not in holdfast("sessions", home=home).stderr


def test_a_chat_starts_with_the_repairs_of_the_store(home: Path) -> None:
    connection = sqlite3.connect(home / "holdfast" / "holdfast.db")
    connection.execute("DELETE FROM session")
    connection.commit()
    connection.close()
    with terminal("-c", home=home) as user:
        assert user.wait_for("note: the session list was rebuilt from the journals: 2 sessions")
        assert user.wait_for(NOTICE)
        assert user.end("\x04") == 0
