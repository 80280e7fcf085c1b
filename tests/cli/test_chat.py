"""The chat at a real terminal: input, output and effects."""

import json
import re
import signal
import sys
import time
from pathlib import Path

from tests.cli.commands import holdfast
from tests.cli.terminals import (
    ASKING,
    DELETE,
    EDITING,
    SPIN,
    TerminalUser,
    at_terminal,
    let_code_run,
    prepared,
    runs,
    terminal,
)
from tests.cli.test_approvals import QUESTION, press


def wait_for_prompt(user: TerminalUser) -> None:
    """Wait for the prompt."""
    assert user.wait_for("/help"), user.seen


def say(user: TerminalUser, line: str, expected: str) -> None:
    """Type a line and wait for its effect."""
    user.type(f"{line}\r")
    assert user.wait_for(expected), f"{line}: {user.seen[-2000:]}"


def command(user: TerminalUser, line: str, expected: str) -> None:
    """Type a command at a question, no faster than a person can, and again where the machine was too busy to see that."""
    for _ in range(20):
        time.sleep(0.5)
        user.type(line[:4])
        if not user.wait_for_one(line[:4], seconds=2):
            user.type("\x15")
            continue
        time.sleep(0.4)
        user.type(f"{line[4:]}\r")
        if user.wait_for_one(expected, "too fast to have been typed") == expected:
            return
    raise AssertionError(f"{line}: {user.seen[-2000:]}")


def edit(user: TerminalUser, home: Path) -> None:
    """Make the call that deletes a.txt one that deletes b.txt."""
    wait_for_prompt(user)
    (home / "work" / "b.txt").write_text("not so precious\n")
    say(user, "remove it", QUESTION)
    press(user, "e", "arguments> ")
    user.type("\x15")
    user.type('{"path": "/workspace/b.txt"}\r')
    assert user.wait_for(QUESTION)


def test_the_model_can_be_switched_during_a_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, "I am the first.", "Never said.")
    (tmp_path / "other.json").write_text(json.dumps(["", "I am the second."]))
    with terminal(*words, home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "who?", "I am the first.")
        say(user, "/model", f"scripted:{tmp_path}/script.json; switch with /model PROVIDER:NAME")
        say(user, f"/model scripted:{tmp_path}/other.json", "model: scripted:")
        say(user, "and you?", "I am the second.")
        say(user, "/model nobody:knows", "is not the name of a model")
        say(user, "/model", f"scripted:{tmp_path}/other.json; switch with /model")
        user.type("/exit\r")
        assert user.end() == 0


def test_compact_summarizes_older_turns(tmp_path: Path) -> None:
    words = prepared(tmp_path, "One.", "Two.", "Three.", "Never said.")
    with terminal(*words, home=tmp_path) as user:
        wait_for_prompt(user)
        for asked, expected in (("a", "One."), ("b", "Two."), ("c", "Three.")):
            say(user, asked, expected)
        say(user, "/compact", "summarized: One.")
        assert user.end("\x04") == 0


def test_resume_switches_between_sessions(tmp_path: Path) -> None:
    words = prepared(tmp_path, "First.", "Second.")
    with terminal(*words, "-n", "one", home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "hello", "First.")
        user.type("/quit\r")
        assert user.end() == 0
    with terminal(*words, "-n", "two", home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "hello", "First.")
        say(user, "/sessions", "one")
        say(user, "/resume", "resume: ")
        user.type("\x03")
        assert user.wait_for(EDITING), "the list of sessions was left"
        say(user, "/resume nothing-like-it", "no session")
        say(user, "/resume one", "switched to one")
        say(user, "again", "Second.")
        say(user, "/resume two", "switched to two")
        say(user, "/resume two", "this is the current session")
        user.type("/quit\r")
        assert user.end() == 0


def test_staged_changes_can_be_rejected(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new\\n')"), "Written.")
    with terminal(*words, home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "write it", "1 staged (/diff")
        say(user, "/reject", "reject  n.txt")
        say(user, "/reject", "nothing is staged")
        say(user, "/commit", "nothing is staged")
        user.type("/exit\r")
        assert user.end() == 0
    assert not (tmp_path / "work" / "n.txt").exists()


def test_an_edited_call_is_made_with_the_edited_arguments(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as user:
        edit(user, tmp_path)
        assert "for 10 minutes" not in user.seen[user.seen.rindex("b.txt") :], (
            "an edited call can only be approved once"
        )
        press(user, "y", "answer  approved (once), by terminal")
        assert user.wait_for("Gone.")
    assert (tmp_path / "work" / "a.txt").exists()
    assert not (tmp_path / "work" / "b.txt").exists()


def test_a_typed_approve_applies_to_the_edited_call(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as user:
        edit(user, tmp_path)
        command(user, "/approve all", "answer the edited call first")
        command(user, "/approve", "Gone.")
    assert (tmp_path / "work" / "a.txt").exists()
    assert not (tmp_path / "work" / "b.txt").exists()


def test_a_call_can_be_approved_for_a_number_of_times(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path, COLUMNS="300") as user:
        wait_for_prompt(user)
        say(user, "remove it", QUESTION)
        press(user, "a", "what to approve")
        press(user, "1", "N times")
        press(user, "n", "how many times")
        user.type("none\r")
        assert user.wait_for("nothing was answered")
        assert user.wait_for(QUESTION)
        press(user, "a", "what to approve")
        press(user, "1", "N times")
        press(user, "n", "how many times")
        offered = user.seen[user.seen.rindex("what to approve") :]
        assert "/approve" not in offered, "commands answer the question, and not what is offered below it"
        user.type("3\r")
        assert user.wait_for("answer  approved (times), by terminal")
        assert user.wait_for("Gone.")
        say(user, "/grants", "2 more times")
        say(user, "/grants revoke nothing", "there is no active grant")
        [id] = set(re.findall(r"([a-z0-9]{12})  world\.delete", user.seen))
        say(user, "/grants revoke", "no grant given")
        say(user, "/grants revoke 1", f"revoked {id}")
        say(user, "/grants", "no saved approvals")


def test_a_call_is_edited_in_the_persons_editor_and_shown_with_what_it_would_do(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "Gone.")
    (tmp_path / "work" / "b.txt").write_text("scrap\n")
    editor = tmp_path / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/a[.]txt/b.txt/" "$1"\n')
    editor.chmod(0o755)
    with terminal(*words, home=tmp_path, EDITOR=str(editor), COLUMNS="300") as user:
        wait_for_prompt(user)
        say(user, "remove it", QUESTION)
        press(user, "e", "/work/b.txt")  # a long path is cut in its middle
        assert user.wait_for(QUESTION)
        press(user, "y", "answer  approved")
        assert user.wait_for("Gone.")
    assert (tmp_path / "work" / "a.txt").exists()
    assert not (tmp_path / "work" / "b.txt").exists()


def test_a_question_of_the_agent_is_answered_in_words(tmp_path: Path) -> None:
    ask = runs("person.ask(question='Which colour?')")
    words = (*prepared(tmp_path, ask, "Then it is blue."), "-p", "project")
    with terminal(*words, home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "paint it", "Which colour?")
        assert user.wait_for(QUESTION)
        press(user, "y", "your answer>")
        user.type("blue\r")
        assert user.wait_for("Then it is blue.")
        say(user, "/why", "person approved it (once) by terminal: blue")


def test_messages_typed_ahead_are_queued_and_sent_in_order(tmp_path: Path) -> None:
    slow = runs("total = 0\nfor each in range(12_000_000):\n    total += each\n")
    with terminal(*prepared(tmp_path, slow, "First.", "Second.", "Third."), home=tmp_path) as user:
        wait_for_prompt(user)
        assert user.wait_for(EDITING)
        user.type("one\r")
        assert user.wait_for(EDITING), "it was sent"
        say(user, "two", "queued (1)")
        say(user, "three", "queued (2)")
        say(user, "/cost", "calls")
        for expected in ("First.", "sent: two", "Second.", "sent: three", "Third."):
            assert user.wait_for(expected)
        assert user.end("\x04") == 0


def test_ctrl_c_ends_the_turn_drops_the_queue_and_leaves_the_session_ready(tmp_path: Path) -> None:
    let_code_run(tmp_path)
    with terminal(*prepared(tmp_path, SPIN, "I am back."), home=tmp_path) as user:
        wait_for_prompt(user)
        assert user.wait_for(EDITING)
        user.type("spin\r")
        assert user.wait_for(EDITING), "it was sent"
        say(user, "never asked", "queued (1)")
        user.type("\x03")
        assert user.wait_for("not sent: never asked")
        assert user.wait_for("ran 1 line of code (python): stopped (Ctrl-O shows it)")
        assert user.wait_for("stopped; completed actions are not undone")
        user.type("\x0f")
        assert user.wait_for("| while True: pass")
        say(user, "still there?", "I am back.")
        assert "queued" not in user.seen[user.seen.rindex("I am back.") :]
        assert user.end("\x04") == 0


def test_a_stopped_task_has_its_own_exit_code(tmp_path: Path) -> None:
    let_code_run(tmp_path)
    with terminal(*prepared(tmp_path, SPIN, "Never."), "spin", home=tmp_path) as user:
        assert user.wait_for("running code")
        user.process.send_signal(signal.SIGINT)
        assert user.end() == 130
    assert "stopped" in user.seen


def test_a_denied_task_has_its_own_exit_code(tmp_path: Path) -> None:
    with terminal("exec", "-p", "asking.yaml", "code.py", home=tmp_path) as user:
        assert user.end() == 2, "there is no such file yet"
    prepared(tmp_path)
    (tmp_path / "code.py").write_text("import os\nos.remove('a.txt')\n")
    with terminal("exec", "-w", "work", "--trust", "-p", "asking.yaml", "code.py", home=tmp_path) as user:
        assert user.wait_for(QUESTION)
        press(user, "n", "answer  denied")
        assert user.end() == 3
    assert (tmp_path / "work" / "a.txt").exists()


def three(home: Path) -> list[str]:
    (home / "asking.yaml").write_text(ASKING)
    return [sys.executable, "-m", "tests.cli.three_calls_main"]


def answers(home: Path) -> dict[str, tuple[str, str | None]]:
    audit = json.loads(holdfast("audit", "--json", home=home).stdout)
    given = {each["call"]: each["response"] for each in audit}
    return {call: (said["verdict"], said.get("reason")) for call, said in given.items() if said}


def test_several_waiting_calls_are_listed_and_answered_by_number(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path) as user:
        wait_for_prompt(user)
        user.type("go\r")
        assert user.wait_for("3 calls wait for you; this question is about the one marked *")
        assert user.wait_for("* 1  The agent wants to delete")
        assert user.wait_for("  2  The agent wants to delete")
        assert user.wait_for(QUESTION)
        command(user, "/approve 2", "answer  approved (once), by terminal")
        command(user, "/approve 7", "2 calls wait: 1 ")
        command(user, "/deny 2 I need that one", "answer  denied (once), by terminal")
        press(user, "y", "answer  approved (once)")
        user.type("\x04")
        assert user.end("\x04") == 0
    assert answers(tmp_path) == {
        "1.1": ("approve", None),
        "1.2": ("approve", None),
        "1.3": ("deny", "I need that one"),
    }


def test_all_waiting_calls_can_be_approved_at_once(tmp_path: Path) -> None:
    with at_terminal(three(tmp_path), home=tmp_path) as user:
        wait_for_prompt(user)
        user.type("go\r")
        assert user.wait_for(QUESTION)
        command(user, "/approve all", "answer  approved (once), by terminal")
        assert user.wait_for("answer  approved (once), by terminal")
        assert user.wait_for("answer  approved (once), by terminal")
        assert user.end("\x04") == 0
    assert answers(tmp_path) == {f"1.{number}": ("approve", None) for number in (1, 2, 3)}


def test_a_slash_command_at_a_question_runs_at_once(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "remove it", QUESTION)
        command(user, "/cost", "tokens, $0.0000")
        assert user.wait_for(QUESTION), "and the question is put again"
        command(user, "/deny", "Kept.")


def test_a_turn_stopped_by_the_budget_continues_after_the_budget_is_raised(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("1 + 1"), "Two.")
    with terminal(*words, "-n", "poor", "--budget", "steps=1", home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "add", "the steps limit was reached")
        assert user.wait_for("hint: raise the limit with /budget add steps=N, then the turn resumes")
        user.type("/quit\r")
        assert user.end() == 0
    with terminal("budget", "add", "poor", "steps=5", home=tmp_path) as user:
        assert user.end() == 0
    with terminal("-r", "poor", home=tmp_path) as user:
        assert user.wait_for("the budget was raised; resuming the last turn")
        assert user.wait_for("Two.")


def test_lines_are_edited_continued_completed_and_remembered(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Once.", "Twice.", "Thrice."), home=tmp_path) as user:
        wait_for_prompt(user)
        assert user.wait_for(EDITING)
        user.type("first line\\\r")
        assert user.wait_for(EDITING)
        user.type("second line\r")
        assert user.wait_for("Once.")
        assert user.wait_for(EDITING)
        user.type("/rew")
        assert user.wait_for("/rewind"), "the menu"
        user.type("\t")
        user.wait_for_row("> /rewind")
        user.type("\r")
        assert user.wait_for("first line second line"), "both lines were one message"
        user.type("third\x1b\rfourth\r")
        assert user.wait_for("Twice.")
        assert user.wait_for(EDITING)
        user.type("\x1b[A")
        assert user.wait_for("fourth")
        user.type("\r")
        assert user.wait_for("Thrice.")
        assert user.end("\x04") == 0


def test_the_hint_of_a_failed_command_is_wrapped_between_words(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, "Hello."), home=tmp_path) as user:
        wait_for_prompt(user)
        say(user, "/model bogus", "scripted:FILE.json")
        hint = user.seen[user.seen.index("hint: use one of") :]
        first, second, *_ = hint.splitlines()
        assert len(first) < 120, "the width of this terminal"
        assert second.startswith("  "), "in line with what is above"
        assert user.end("\x04") == 0
