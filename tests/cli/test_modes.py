"""The modes of a chat: ask, accept edits, plan."""

import json
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import TerminalUser, prepared, runs, terminal

SHIFT_TAB = "\x1b[Z"
READY = "/help lists commands"
STATUS_LINE = {"PROMPT_TOOLKIT_NO_CPR": "0"}
WRITES = runs("open('a.txt', 'w').write('changed\\n')\nopen('Makefile', 'w').write('all:\\n')")


def say(user: TerminalUser, line: str, expected: str) -> None:
    user.type(f"{line}\r")
    assert user.wait_for(expected), user.seen[-2000:]


def test_shift_tab_cycles_through_the_modes_and_the_status_line_shows_them(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path, **STATUS_LINE) as user:
        assert user.wait_for(READY)
        say(user, "/mode", "ask; switch with /mode")
        user.type(SHIFT_TAB)
        assert user.wait_for("mode: accept edits")
        assert user.wait_for(" accept edits · "), "the status line"
        user.type(SHIFT_TAB)
        assert user.wait_for("mode: plan, read-only")
        assert user.wait_for(" plan, read-only · "), "the status line"
        user.type(SHIFT_TAB)
        assert user.wait_for("mode: ask (policy ")
        assert user.wait_for("asking.yaml")
        assert user.end("\x04") == 0


def test_a_line_typed_while_the_mode_changes_waits_for_it(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as user:
        assert user.wait_for(READY)
        user.type(f"{SHIFT_TAB}{SHIFT_TAB}{SHIFT_TAB}{SHIFT_TAB}{SHIFT_TAB}hello\r")
        assert user.wait_for("plan: /go carries it out")
        assert user.end("\x04") == 0
    assert "is closed" not in user.seen
    assert user.seen.count("mode: plan, read-only") == 2


def test_accepted_edits_are_committed_at_the_end_of_the_turn_and_undone_by_undo(tmp_path: Path) -> None:
    file = tmp_path / "work" / "a.txt"
    with terminal(*prepared(tmp_path, WRITES, "Done."), home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "/mode edits", "mode: accept edits")
        say(user, "change it", "committed (/undo takes the turn back): a.txt")
        assert user.wait_for("1 staged (/diff, /commit or /reject): Makefile"), "it runs by itself later"
        assert file.read_text() == "changed\n"
        assert not (tmp_path / "work" / "Makefile").exists()
        say(user, "/undo go", "rewound to the end of turn 0")
        assert file.read_text() == "precious\n"
        assert user.end("\x04") == 0


def test_an_undo_says_which_older_changes_stay_committed(tmp_path: Path) -> None:
    write = runs("open('a.txt', 'w').write('changed\\n')")
    with terminal(*prepared(tmp_path, write, "Done.", "Nothing to do."), home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "change it", "1 staged (/diff, /commit or /reject): a.txt")
        say(user, "and now?", "Nothing to do.")
        say(user, "/commit", "commit  a.txt")
        say(user, "/undo", "stays committed, because an older turn changed it: a.txt")
        assert user.wait_for("rewound to the end of turn 1")
        assert (tmp_path / "work" / "a.txt").read_text() == "changed\n"
        assert user.end("\x04") == 0


def test_an_undo_asks_before_it_drops_what_someone_else_changed(tmp_path: Path) -> None:
    file = tmp_path / "work" / "a.txt"
    with terminal(
        *prepared(tmp_path, runs("open('a.txt', 'w').write('changed\\n')"), "Done."), home=tmp_path
    ) as user:
        assert user.wait_for(READY)
        say(user, "/mode edits", "mode: accept edits")
        say(user, "change it", "committed (/undo takes the turn back): a.txt")
        file.write_text("edited since then\n")
        say(user, "/undo", "would also drop a change that the turn did not make: a.txt")
        assert user.wait_for("nothing has changed yet; /undo go does it")
        assert file.read_text() == "edited since then\n"
        say(user, "/undo go", "rewound to the end of turn 0")
        assert file.read_text() == "precious\n"
        assert user.end("\x04") == 0


def test_what_an_earlier_turn_staged_is_not_committed_with_the_accepted_edits(tmp_path: Path) -> None:
    earlier, later = (
        runs("open('a.txt', 'w').write('earlier\\n')"),
        runs("open('b.txt', 'w').write('later\\n')"),
    )
    with terminal(*prepared(tmp_path, earlier, "Done.", later, "Done again."), home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "change it", "1 staged (/diff, /commit or /reject): a.txt")
        say(user, "/mode edits", "mode: accept edits")
        say(user, "and the other", "committed (/undo takes the turn back): b.txt")
        assert user.wait_for("1 staged (/diff, /commit or /reject): a.txt"), "you have not accepted it"
        assert user.end("\x04") == 0
    assert (tmp_path / "work" / "a.txt").read_text() == "precious\n"
    assert (tmp_path / "work" / "b.txt").read_text() == "later\n"


def test_in_mode_ask_nothing_is_committed(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, WRITES, "Done."), home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "change it", "2 staged")
        assert user.end("\x04") == 0
    assert (tmp_path / "work" / "a.txt").read_text() == "precious\n"


def test_a_plan_is_read_only_and_is_carried_out_when_it_is_accepted(tmp_path: Path) -> None:
    words = prepared(tmp_path, WRITES, "1. Change a.txt.", WRITES, "Carried out.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "/go", "there is no plan to carry out")
        say(user, "/mode plan", "mode: plan, read-only")
        say(user, "what would you do?", "plan: /go carries it out")
        assert "staged (" not in user.seen, "nothing can be changed in mode plan"
        say(user, "/go", "mode: ask (policy ")
        assert user.wait_for("Carried out.")
        assert user.wait_for("2 staged")
        assert user.end("\x04") == 0
    events = json.loads(holdfast("show", "--json", home=tmp_path).stdout)["events"]
    asked = [each["event"]["text"] for each in events if each["event"]["event"] == "message-posted"]
    assert "change nothing" in asked[0]
    assert asked[1] == "Carry out the plan."
    [session] = json.loads(holdfast("sessions", "--json", home=tmp_path).stdout)
    assert session["first_words"] == "what would you do?"


def test_a_session_that_is_left_in_mode_plan_is_resumed_in_it(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "hello", "Hello.")
        say(user, "/mode plan", "mode: plan, read-only")
        assert user.end("\x04") == 0
    name = user.seen.rpartition("holdfast -r ")[2].split()[0].removesuffix("\x1b[0m")
    with terminal("-r", name, home=tmp_path) as user:
        assert user.wait_for(READY)
        say(user, "/mode", "plan, read-only; switch with")
        say(user, "/mode ask", "mode: ask (policy ")
        assert user.wait_for("asking.yaml")
        assert user.end("\x04") == 0
