"""Approvals at a real terminal: which keys count."""

import random
import time
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, EDITING, TerminalUser, prepared, terminal

KEYS = [*"0123456789/yYaA \t\r\n\x7f\x1b", *map(chr, range(0x21, 0x7F)), "\x1b[A", "\x1b[B", "\x1bOC", "é"]
QUESTION = "press a key"


def press(user: TerminalUser, key: str, until: str) -> None:
    """Press a key as a person does: alone, and again where the machine was too busy to accept it.

    A key that was accepted is not pressed again, however long its effect takes: it would be typed into what comes next.
    """
    is_asked = True
    for _ in range(40):
        if is_asked:
            time.sleep(0.7)
            user.type(key)
        if user.wait_for_one(until, seconds=2):
            return
        is_asked = user.is_asked
        # What a new question shows was written before it waits for a key.
        if user.wait_for_one(until, seconds=0.1):
            return
        if user.process.poll() is not None:
            break
    raise AssertionError(f"{until!r} never came in\n{user.stacks()}\n{user.seen[-3000:]}")


def test_four_hundred_keys_around_a_question_approve_nothing(tmp_path: Path) -> None:
    check_keys(tmp_path, 400, seed=9)


@pytest.mark.soak
def test_ten_thousand_keys_around_a_question_approve_nothing(tmp_path: Path) -> None:
    check_keys(tmp_path, 10_000, seed=10)


def check_keys(tmp_path: Path, count: int, *, seed: int) -> None:
    chance = random.Random(seed)
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as user:
        assert user.wait_for("/help")
        assert user.wait_for(EDITING)
        user.type("remove it\r")
        assert user.wait_for(EDITING), "it was sent"
        pressed = 0
        while pressed < count or (QUESTION not in user.seen and pressed < 100_000):
            # Never a single key: that would be deliberate.
            burst = [chance.choice(KEYS) for _ in range(chance.randint(2, 60))]
            user.type("".join(burst))
            pressed += len(burst)
            user.read(chance.uniform(0, 0.02))
            user.wait_until_keys_are_read()  # a flood would keep the program from asking
        assert QUESTION in user.seen
        user.read(0.5)
        assert "answer  " not in user.seen
        assert (tmp_path / "work" / "a.txt").exists()

        user.type("\x15")
        press(user, "y", "answer  approved (once), by terminal")
        assert user.wait_for("Gone.")
        assert not (tmp_path / "work" / "a.txt").exists()


def test_a_call_that_fails_after_approval_prints_its_error_once(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "It was gone.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("remove it\r")
        assert user.wait_for(QUESTION)
        (tmp_path / "work" / "a.txt").unlink()
        press(user, "y", "(approved by you)")
        assert user.wait_for("It was gone.")
        assert user.seen.count("FileNotFoundError") == 1


def test_enter_alone_is_not_an_answer_but_a_typed_deny_is(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("remove it\r")
        assert user.wait_for(QUESTION)
        for _ in range(3):
            time.sleep(0.6)
            user.type("\r")
        press(user, "y\r", "press the key alone, without Enter; nothing was done")
        press(user, "/approve\r", "too fast to have been typed")
        assert user.wait_for(QUESTION), "it scrolled away from what was typed, so it is shown again"
        press(user, "/deny keep it\r", "answer  denied")
        assert user.wait_for("Kept.")
        assert (tmp_path / "work" / "a.txt").exists()
        assert user.end("\x04") == 0


def test_ctrl_c_stops_the_turn_and_ctrl_d_at_a_question_leaves_it_waiting(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, DELETE, "Gone.")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("remove it\r")
        assert user.wait_for(QUESTION)
        press(user, "\x03", "stopped; completed actions are not undone")
        user.type("once more\r")
        assert user.wait_for(QUESTION)
        press(user, "\x04", "resume it with: holdfast -c")
        assert user.end() == 0
    with terminal("-c", home=tmp_path) as user:
        assert user.wait_for("A call waits for your approval.")
        assert user.wait_for(QUESTION)
        assert "interrupted" not in user.seen, "it waited, and is not said to have been anything else"
        press(user, "y", "answer  approved")
        assert user.wait_for("Gone.")
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_reply_is_rendered_with_hidden_characters_escaped(tmp_path: Path) -> None:
    reply = "# Title\n\nSome **bold** words, a \u202ehidden\u200b turn and \x1b[31mred\x1b[0m.\n\n```\ncode\n```\n"
    with terminal(*prepared(tmp_path, reply, "Bye."), home=tmp_path) as user:
        assert user.wait_for("/help")
        user.type("hello\r")
        assert user.wait_for("code")
        assert "**bold**" not in user.seen
        assert "<U+202E>hidden<U+200B>" in user.seen
        assert "<U+001B>[31mred" in user.seen
        assert "\x1b[31mred" not in user.seen


def test_leaving_a_question_of_exec_prints_how_to_resume(tmp_path: Path) -> None:
    prepared(tmp_path)
    (tmp_path / "clean.py").write_text("import os\nos.remove('a.txt')\n")
    words = ("exec", "clean.py", "-w", "work", "--trust", "-p", "asking.yaml")
    with terminal(*words, home=tmp_path) as user:
        assert user.wait_for(QUESTION)
        press(user, "\x04", "answer with: holdfast approve, or holdfast deny")
        assert user.wait_for("then resume with: holdfast exec --session ")
        assert user.end() == 5
