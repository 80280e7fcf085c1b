"""The editor of a conversation at a real terminal: pasting, resizing, searching, stepping aside."""

import json
import sys
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import DELETE, Typist, at_terminal, prepared, runs, terminal
from tests.cli.test_terminal import QUESTION, press

PASTED = "\x1b[200~{}\x1b[201~"
STATUS_LINE = {"PROMPT_TOOLKIT_NO_CPR": "0"}
"""At a terminal that answers where its cursor is, as nearly all do, there is one."""
READY = "\x1b[?2004h"
"""What the editor sends when it begins to read a line."""


def asked(home: Path) -> list[str]:
    """Every message that was sent."""
    events = json.loads(holdfast("show", "--json", home=home).stdout)["events"]
    return [each["event"]["text"] for each in events if each["event"]["event"] == "message-posted"]


def test_pasted_lines_are_one_message_and_nothing_in_them_is_a_command(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Read.", "Never."), home=tmp_path) as typist:
        assert typist.wait_for(READY)
        typist.type(PASTED.format("first\n/quit\n日本語 🪢 last"))
        assert typist.wait_for("last")
        assert "Read." not in typist.seen, "nothing is sent before Enter"
        typist.type("\r")
        assert typist.wait_for("Read.")
        assert typist.end("\x04") == 0
    assert asked(tmp_path) == ["first\n/quit\n日本語 🪢 last"]


def test_a_window_that_changes_its_size_changes_nothing_that_is_typed(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Read.", "Never."), home=tmp_path) as typist:
        assert typist.wait_for(READY)
        typist.type("before ")
        assert typist.wait_for("before")
        for rows, columns in ((10, 30), (24, 80), (60, 200)):
            typist.resize(rows, columns)
            typist.type(f"{columns} ")
            assert typist.wait_for(str(columns))
        typist.type("after\r")
        assert typist.wait_for("Read.")
        assert typist.end("\x04") == 0
    assert asked(tmp_path) == ["before 30 80 200 after"]


def test_what_was_said_is_found_by_a_part_of_it_and_answers_are_not(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "One.", "Two.", "Three."), home=tmp_path) as typist:
        assert typist.wait_for(READY)
        for line, told in (
            ("look at the parser", "One."),
            ("/approve", "no call waits for approval"),
            ("thanks", "Two."),
        ):
            typist.type(f"{line}\r")
            assert typist.wait_for(told)
            assert typist.wait_for(READY)
        typist.type("\x12pars")
        assert typist.wait_for("look at the ")
        typist.type("\r\r")
        assert typist.wait_for("Three.")
        assert typist.end("\x04") == 0
    assert asked(tmp_path) == ["look at the parser", "thanks", "look at the parser"]
    assert "/approve" not in (tmp_path / "holdfast" / "history").read_text()


def test_ctrl_c_clears_a_line_at_rest_and_keeps_it_while_a_turn_is_stopped(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('x')\nwhile True: pass"), "Here.", "Never.")
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for(READY)
        typist.type("thrown away\x03")
        typist.type("spin\r")
        assert typist.wait_for("stage   world.write")
        typist.type("kept")
        assert typist.wait_for("kept")
        typist.type("\x03")
        assert typist.wait_for("stopped; completed actions are not undone")
        typist.type(" and sent\r")
        assert typist.wait_for("Here.")
        assert typist.end("\x04") == 0
    assert asked(tmp_path) == ["spin", "kept and sent"]


def test_ctrl_c_at_rest_says_how_to_leave_and_leaving_how_to_come_back(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "One."), "-n", "books", home=tmp_path) as typist:
        assert typist.wait_for(READY)
        typist.type("\x03")
        assert typist.wait_for("no turn is running; Ctrl-D quits")
        typist.type("hello\r")
        assert typist.wait_for("One.")
        assert typist.wait_for(READY)
        typist.type("/quit\r")
        assert typist.wait_for("resume with: holdfast -r books")
        assert typist.end() == 0


def test_a_summary_that_was_made_leaves_nothing_running_in_the_status_line(tmp_path: Path) -> None:
    with terminal(
        *prepared(tmp_path, "One.", "Two.", "Three.", "Never."), home=tmp_path, **STATUS_LINE
    ) as typist:
        assert typist.wait_for(READY)
        for line, told in (("a", "One."), ("b", "Two."), ("c", "Three."), ("/compact", "summarized: One.")):
            typist.type(f"{line}\r")
            assert typist.wait_for(told)
        assert typist.wait_for(READY)
        before = len(typist.seen)
        typist.type("draft")
        assert typist.wait_for("draft")
        typist.resize(30, 100)
        assert typist.wait_for("tokens")
        assert "thinking" not in typist.seen[before:]
        assert typist.end("\x15\x04") == 0


def suspended(typist: Typist) -> None:
    """Press Ctrl-Z, and find oneself in the shell."""
    typist.type("\x1a")
    assert typist.wait_for("Stopped"), typist.seen
    typist.type("echo in the $((1 + 1))nd shell; fg\r")
    assert typist.wait_for("in the 2nd shell"), typist.seen


def test_one_steps_out_to_the_shell_and_comes_back_to_the_line_and_to_the_question(tmp_path: Path) -> None:
    words = " ".join((sys.executable, "-m", "holdfast", *prepared(tmp_path, DELETE, "Gone.")))
    with at_terminal(["bash", "--norc", "-i"], home=tmp_path, PS1="shell> ") as typist:
        typist.type(f"{words}\r")
        assert typist.wait_for("/help")
        assert typist.wait_for(READY)
        typist.type("remove ")
        assert typist.wait_for("remove")
        suspended(typist)
        assert typist.wait_for("remove"), "the line is as it was left"
        typist.type("it\r")
        assert typist.wait_for(QUESTION)
        suspended(typist)
        assert typist.wait_for(QUESTION), "it is put again"
        assert (tmp_path / "work" / "a.txt").exists()
        press(typist, "1", "answer  approved (once), by terminal")
        assert typist.wait_for("Gone.")
        assert typist.wait_for(READY)
        typist.type("/quit\r")
        assert typist.wait_for("shell> ")
        assert "the turn is unfinished" not in typist.seen
        typist.type("exit 7\r")
        assert typist.end() == 7
    assert asked(tmp_path) == ["remove it"]


def test_what_it_is_about_is_said_again_where_a_long_call_scrolled_it_away(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('line\\n' * 30)"), "Kept.")
    policy = (tmp_path / "asking.yaml").read_text().replace("stage: world.write", "escalate: world.write")
    (tmp_path / "asking.yaml").write_text(policy)
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("write it\r")
        assert typist.wait_for(QUESTION)
        assert typist.seen.count("The agent wants to write") == 2
        press(typist, "6", "Kept.")


def test_a_run_that_met_a_limit_says_which(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("print('x' * 1_000_000)"), "Too much.")
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("print\r")
        assert typist.wait_for("Too much.")
    told = typist.seen[typist.seen.index("  limit   ") :]
    assert "printed more than" in told.split("The run was stopped")[0]


def test_alt_enter_means_the_same_while_the_editor_steps_aside(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Here."), home=tmp_path) as typist:
        assert typist.wait_for(READY)
        typist.type(
            "first\x1b\nsecond\r"
        )  # as a terminal hands it over that reads whole lines at that moment
        assert typist.wait_for("Here.")
        assert typist.end("\x04") == 0
    assert asked(tmp_path) == ["first\nsecond"]
