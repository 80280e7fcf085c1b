"""A conversation at a real terminal, command by command: what is typed, what is seen, what comes of it."""

import json
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.cli.terminals import ASKING, DELETE, Typist, at_terminal, prepared, runs, terminal
from tests.cli.test_task import holdfast
from tests.cli.test_terminal import QUESTION, press

EDITING = "\x1b[?2004h"
"""What the editor sends when it begins to read a line."""
SPIN = runs("while True: pass")


def begun(typist: Typist) -> None:
    """Wait for the prompt."""
    assert typist.wait_for("/help"), typist.seen


def say(typist: Typist, line: str, told: str) -> None:
    """Type a line and wait for what it leads to."""
    typist.type(f"{line}\r")
    assert typist.wait_for(told, seconds=20), f"{line}: {typist.seen[-2000:]}"


def command(typist: Typist, line: str, told: str) -> None:
    """Type a command at a question as a person does: not faster than anybody can."""
    time.sleep(0.5)
    typist.type(line[:4])
    time.sleep(0.4)
    typist.type(f"{line[4:]}\r")
    assert typist.wait_for(told, seconds=20), f"{line}: {typist.seen[-2000:]}"


def edit(typist: Typist, home: Path) -> None:
    """Make the call that deletes a.txt one that deletes b.txt."""
    begun(typist)
    (home / "work" / "b.txt").write_text("not so precious\n")
    say(typist, "remove it", QUESTION)
    press(typist, "8", "arguments> ")
    typist.type("\x15")
    typist.type('{"path": "/workspace/b.txt"}\r')
    assert typist.wait_for(QUESTION)


def test_another_model_can_be_taken_in_mid_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, "I am the first.", "Never said.")
    (tmp_path / "other.json").write_text(json.dumps(["", "I am the second."]))
    with terminal(*words, home=tmp_path) as typist:
        begun(typist)
        say(typist, "who?", "I am the first.")
        say(typist, "/model", f"scripted:{tmp_path}/script.json; /model PROVIDER:NAME")
        say(typist, f"/model scripted:{tmp_path}/other.json", "from here on: scripted:")
        say(typist, "and you?", "I am the second.")
        say(typist, "/model nobody:knows", "names no model")
        say(typist, "/model", f"scripted:{tmp_path}/other.json; /model")
        typist.type("/exit\r")
        assert typist.end() == 0


def test_older_turns_are_summed_up_on_demand(tmp_path: Path) -> None:
    words = prepared(tmp_path, "One.", "Two.", "Three.", "Never said.")
    with terminal(*words, home=tmp_path) as typist:
        begun(typist)
        for asked, told in (("a", "One."), ("b", "Two."), ("c", "Three.")):
            say(typist, asked, told)
        say(typist, "/compact", "summarised: One.")
        assert typist.end("\x04") == 0


def test_one_can_go_from_one_session_to_another_and_back(tmp_path: Path) -> None:
    words = prepared(tmp_path, "First.", "Second.")
    with terminal(*words, "-n", "one", home=tmp_path) as typist:
        begun(typist)
        say(typist, "hello", "First.")
        typist.type("/quit\r")
        assert typist.end() == 0
    with terminal(*words, "-n", "two", home=tmp_path) as typist:
        begun(typist)
        say(typist, "hello", "First.")
        say(typist, "/sessions", "one")
        say(typist, "/resume", "say which session")
        say(typist, "/resume nothing-like-it", "no session")
        say(typist, "/resume one", "you are in one now")
        say(typist, "again", "Second.")
        say(typist, "/resume two", "you are in two now")
        say(typist, "/resume two", "you are in it")
        typist.type("/quit\r")
        assert typist.end() == 0


def test_staged_changes_can_be_dropped(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new\\n')"), "Written.")
    with terminal(*words, home=tmp_path) as typist:
        begun(typist)
        say(typist, "write it", "1 staged: /diff")
        say(typist, "/reject", "reject  n.txt")
        say(typist, "/reject", "nothing is staged")
        say(typist, "/commit", "nothing is staged")
        typist.type("/exit\r")
        assert typist.end() == 0
    assert not (tmp_path / "work" / "n.txt").exists()


def test_the_arguments_can_be_edited_and_what_is_made_is_what_was_edited(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as typist:
        edit(typist, tmp_path)
        assert "for 10 minutes" not in typist.seen[typist.seen.rindex("b.txt") :], (
            "what was edited is allowed once and no longer"
        )
        press(typist, "1", "answer  yes (once), by terminal")
        assert typist.wait_for("Gone.")
    assert (tmp_path / "work" / "a.txt").exists()
    assert not (tmp_path / "work" / "b.txt").exists()


def test_a_yes_that_is_typed_out_is_to_what_was_edited(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as typist:
        edit(typist, tmp_path)
        command(typist, "/approve all", "what you edited")
        command(typist, "/approve", "Gone.")
    assert (tmp_path / "work" / "a.txt").exists()
    assert not (tmp_path / "work" / "b.txt").exists()


def test_a_yes_can_be_given_for_so_many_times(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path, COLUMNS="300") as typist:
        begun(typist)
        say(typist, "remove it", QUESTION)
        press(typist, "0", "how many times")
        typist.type("none\r")
        assert typist.wait_for("nothing was answered")
        assert typist.wait_for(QUESTION)
        press(typist, "0", "how many times")
        typist.type("3\r")
        assert typist.wait_for("answer  yes (times), by terminal")
        assert typist.wait_for("Gone.")
        say(typist, "/grants", "2 more times")


def test_a_question_of_the_agent_is_answered_in_words(tmp_path: Path) -> None:
    ask = runs("person.ask(question='Which colour?')")
    words = (*prepared(tmp_path, ask, "Then it is blue."), "-p", "project")
    with terminal(*words, home=tmp_path) as typist:
        begun(typist)
        say(typist, "paint it", "Which colour?")
        assert typist.wait_for(QUESTION)
        press(typist, "1", "your answer>")
        typist.type("blue\r")
        assert typist.wait_for("Then it is blue.")
        say(typist, "/why", "person said yes (once) by terminal: blue")


def test_messages_typed_ahead_wait_and_are_taken_in_order(tmp_path: Path) -> None:
    slow = runs("total = 0\nfor each in range(12_000_000):\n    total += each\n")
    with terminal(*prepared(tmp_path, slow, "First.", "Second.", "Third."), home=tmp_path) as typist:
        begun(typist)
        typist.type("one\r")
        say(typist, "two", "queued; 1 waits")
        say(typist, "three", "queued; 2 wait")
        say(typist, "/cost", "calls")
        for told in ("First.", "Second.", "Third."):
            assert typist.wait_for(told)
        assert typist.end("\x04") == 0


def test_ctrl_c_ends_the_turn_drops_the_queue_and_leaves_the_session_ready(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, SPIN, "I am back."), home=tmp_path) as typist:
        begun(typist)
        typist.type("spin\r")
        say(typist, "never asked", "queued; 1 waits")
        typist.type("\x03")
        assert typist.wait_for("not sent: never asked")
        assert typist.wait_for("stopped; what was done stays done")
        say(typist, "still there?", "I am back.")
        assert "queued" not in typist.seen[typist.seen.rindex("I am back.") :]
        assert typist.end("\x04") == 0


def test_a_task_that_is_stopped_has_its_own_exit_code(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, SPIN, "Never."), "spin", home=tmp_path) as typist:
        assert typist.wait_for("runs code")
        typist.process.send_signal(signal.SIGINT)
        assert typist.end() == 130
    assert "stopped" in typist.seen


def test_a_task_that_needed_what_was_denied_has_its_own_exit_code(tmp_path: Path) -> None:
    with terminal("exec", "-p", "asking.yaml", "code.py", home=tmp_path) as typist:
        assert typist.end() == 2, "there is no such file yet"
    prepared(tmp_path)
    (tmp_path / "code.py").write_text("import os\nos.remove('a.txt')\n")
    with terminal("exec", "-w", "work", "--trust", "-p", "asking.yaml", "code.py", home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        press(typist, "6", "answer  no")
        assert typist.end() == 3
    assert (tmp_path / "work" / "a.txt").exists()


def three(home: Path) -> list[str]:
    (home / "asking.yaml").write_text(ASKING)
    return [sys.executable, "-m", "tests.cli.three_calls"]


def answers(home: Path) -> dict[str, tuple[str, str | None]]:
    audit = json.loads(holdfast("audit", "--json", home=home).stdout)
    given = {each["call"]: each["response"] for each in audit}
    return {call: (said["verdict"], said.get("reason")) for call, said in given.items() if said}


def test_several_that_wait_are_a_list_and_are_answered_by_number(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path) as typist:
        begun(typist)
        typist.type("go\r")
        assert typist.wait_for("3 calls wait for you; this is about the one marked *")
        assert typist.wait_for("* 1  The agent wants to delete")
        assert typist.wait_for("  2  The agent wants to delete")
        assert typist.wait_for(QUESTION)
        command(typist, "/approve 2", "answer  yes (once), by terminal")
        command(typist, "/approve 7", "2 wait: 1 ")
        command(typist, "/deny 2 I need that one", "answer  no (once), by terminal")
        press(typist, "1", "answer  yes (once)")
        typist.type("\x04")
        assert typist.end("\x04") == 0
    assert answers(tmp_path) == {
        "1.1": ("approve", None),
        "1.2": ("approve", None),
        "1.3": ("deny", "I need that one"),
    }


def test_all_that_wait_are_answered_at_once(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path) as typist:
        begun(typist)
        typist.type("go\r")
        assert typist.wait_for(QUESTION)
        command(typist, "/approve all", "answer  yes (once), by terminal")
        assert typist.wait_for("answer  yes (once), by terminal")
        assert typist.wait_for("answer  yes (once), by terminal")
        assert typist.end("\x04") == 0
    assert answers(tmp_path) == {f"1.{number}": ("approve", None) for number in (1, 2, 3)}


def test_a_command_at_a_question_is_answered_at_once(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path) as typist:
        begun(typist)
        say(typist, "remove it", QUESTION)
        command(typist, "/cost", "tokens, $0.0000")
        assert typist.wait_for(QUESTION), "and the question is put again"
        command(typist, "/deny", "Kept.")


@pytest.mark.parametrize("leave", ["\x04", "/quit\r", "/exit\r"])
def test_one_leaves_in_three_ways(tmp_path: Path, leave: str) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as typist:
        begun(typist)
        say(typist, "hello", "Hello.")
        assert typist.end(leave) == 0


def test_a_raised_budget_lets_a_stopped_turn_go_on_at_the_terminal(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("1 + 1"), "Two.")
    with terminal(*words, "-n", "poor", "--budget", "steps=1", home=tmp_path) as typist:
        begun(typist)
        say(typist, "add", "the limit of steps is reached")
        typist.type("/quit\r")
        assert typist.end() == 0
    with terminal("budget", "add", "poor", "steps=5", home=tmp_path) as typist:
        assert typist.end() == 0
    with terminal("-r", "poor", home=tmp_path) as typist:
        assert typist.wait_for("the budget was raised; resuming the last turn")
        assert typist.wait_for("Two.")


def test_lines_are_edited_continued_completed_and_remembered(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Once.", "Twice.", "Thrice."), home=tmp_path) as typist:
        begun(typist)
        typist.type("first line\\\r")
        assert typist.wait_for("...")
        typist.type("second line\r")
        assert typist.wait_for("Once.")
        assert typist.wait_for(EDITING)
        typist.type("/rew")
        assert typist.wait_for("/rewind"), "the menu"
        typist.type("\t")
        assert typist.wait_for("/rewind"), "the line"
        typist.type("\r")
        assert typist.wait_for("first line second line"), "both lines were one message"
        typist.type("third\x1b\rfourth\r")
        assert typist.wait_for("Twice.")
        assert typist.wait_for(EDITING)
        typist.type("\x1b[A")
        assert typist.wait_for("fourth")
        typist.type("\r")
        assert typist.wait_for("Thrice.")
        assert typist.end("\x04") == 0


def test_what_is_wrong_with_a_command_is_folded_between_words(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as typist:
        begun(typist)
        say(typist, "/model bogus", "scripted:FILE.json")
        hint = typist.seen[typist.seen.index("hint: use one of") :]
        first, second, *_ = hint.splitlines()
        assert len(first) < 120, "the width of this terminal"
        assert second.startswith("  "), "in line with what is above"
        assert typist.end("\x04") == 0
