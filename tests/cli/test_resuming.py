"""Going on with a session: the picker at a real terminal, and what the person is told that the model is not."""

import asyncio
import sqlite3
from pathlib import Path

import pytest
from tests.cli.terminals import terminal
from tests.cli.test_task import holdfast, script
from tests.support.provider_stub import StubServer

from holdfast.cli.terminal.picker import Choice, Selection

NOTICE = "Resuming session"


def choices(count: int) -> list[Choice]:
    return [
        Choice(key=f"k{number}", line=f"line {number}", words=f"Word{number} ÄPFEL")
        for number in range(count)
    ]


# -- the selection


def test_every_typed_word_narrows_and_erasing_widens() -> None:
    selection = Selection([*choices(3), Choice(key="x", line="x", words="other")])
    selection.type("äpfel WORD1")
    assert [one.key for one in selection.fitting] == ["k1"]
    selection.clear()
    selection.type("zz")
    assert (selection.marked, selection.shown) == (None, [])
    selection.move(1)
    selection.erase()
    selection.erase()
    assert len(selection.fitting) == 4


def test_the_marked_one_stays_on_the_screen_and_the_ends_hold() -> None:
    selection = Selection(choices(30), rows=5)
    for steps, place in ((-1, 0), (7, 7), (100, 29), (-3, 26), (-100, 0)):
        selection.move(steps)
        assert selection.marked is not None
        assert selection.marked.key == f"k{place}"
        assert selection.marked in selection.shown
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


def test_a_session_is_found_by_typing_and_taken_by_enter_on_a_small_screen(home: Path) -> None:
    with terminal("-r", home=home) as typist:
        typist.resize(24, 80)
        assert typist.wait_for("go on with")
        assert typist.wait_for("2 found")
        typist.type("pars")
        assert typist.wait_for("1 found")
        typist.type("\r")
        assert typist.wait_for(f"{NOTICE} parser")
        assert typist.wait_for("First topic: fix the parser")
        typist.type("go on\r")
        assert typist.wait_for("Second answer.")
        assert typist.end("\x04") == 0
    assert "\x1b[31m" not in typist.seen


def test_arrows_choose_and_escape_chooses_nothing(home: Path) -> None:
    with terminal("-r", home=home) as typist:
        typist.resize(24, 80)
        assert typist.wait_for("write the docs<U+001")
        assert typist.wait_for("…")
        assert typist.wait_for("2 found")
        typist.type("\x1b[B\r")
        assert typist.wait_for(f"{NOTICE} parser")
        assert typist.end("\x04") == 0
    with terminal("-r", home=home) as typist:
        typist.resize(24, 80)
        assert typist.wait_for("2 found")
        typist.type("\x1b")
        assert typist.wait_for("nothing was chosen")
        assert typist.end() == 0


def test_in_plain_mode_a_number_or_a_word_chooses(home: Path) -> None:
    with terminal("-r", "--plain", home=home) as typist:
        typist.resize(24, 80)
        assert typist.wait_for("  2  parser")
        assert typist.wait_for("or Enter to leave> ")
        typist.type("nowhere\n")
        assert typist.wait_for("nothing here holds 'nowhere'")
        typist.type("parser\n")
        assert typist.wait_for("  1  parser")
        assert typist.wait_for("or Enter to leave> ")
        typist.type("1\n")
        assert typist.wait_for(f"{NOTICE} parser")
        assert typist.end("\x04") == 0
    assert "\x1b" not in typist.seen


def test_without_a_terminal_a_session_has_to_be_named(home: Path) -> None:
    done = holdfast("-r", home=home, stdin="go on")
    assert (done.returncode, done.stdout) == (2, "")
    assert "holdfast -r NAME" in done.stderr
    assert holdfast("-r", "", "go on", home=home).returncode == 1


# -- what is told to whom


@pytest.mark.parametrize("words", [("-r", "parser"), ("-c",), ("-c", "--json")], ids=" ".join)
def test_a_task_that_goes_on_shows_the_notice_beside_the_answer(home: Path, words: tuple[str, ...]) -> None:
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
    for told in again.stderr.splitlines()[:4]:
        assert told.split(":")[0] not in asked


@pytest.mark.parametrize("words", [("-c", "and then?"), ("sessions",), ("show",)], ids=" ".join)
def test_a_list_that_was_made_anew_costs_one_line(home: Path, words: tuple[str, ...]) -> None:
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


def test_a_conversation_at_a_terminal_begins_with_what_was_mended(home: Path) -> None:
    connection = sqlite3.connect(home / "holdfast" / "holdfast.db")
    connection.execute("DELETE FROM session")
    connection.commit()
    connection.close()
    with terminal("-c", home=home) as typist:
        assert typist.wait_for("note: the session list was rebuilt from the journals: 2 sessions")
        assert typist.wait_for(NOTICE)
        assert typist.end("\x04") == 0
