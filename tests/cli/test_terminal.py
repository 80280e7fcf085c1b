"""A person at a real terminal: what they type, what they see, and which keys count."""

import random
import time
from pathlib import Path

from tests.cli.terminals import DELETE, Typist, prepared, terminal

KEYS = [*"0123456789/yYaA \t\r\n\x7f\x1b", *map(chr, range(0x21, 0x7F)), "\x1b[A", "\x1b[B", "\x1bOC", "é"]
QUESTION = "press a digit"


def press(typist: Typist, key: str, until: str) -> None:
    """Press a key as a person does: alone, and again where the machine was too busy to be sure of it."""
    for _ in range(10):
        time.sleep(0.7)
        typist.type(key)
        if typist.wait_for(until, seconds=2):
            return
    raise AssertionError(f"{until!r} never came in\n{typist.seen[-3000:]}")


def test_ten_thousand_keys_around_the_appearance_approve_nothing(tmp_path: Path) -> None:
    chance = random.Random(9)
    with terminal(*prepared(tmp_path, DELETE, "Gone."), home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("remove it\r")
        pressed = 0
        while pressed < 10_000 or (QUESTION not in typist.seen and pressed < 100_000):
            # Never one key alone: that is what a person does who means it.
            burst = [chance.choice(KEYS) for _ in range(chance.randint(2, 60))]
            typist.type("".join(burst))
            pressed += len(burst)
            typist.read(chance.uniform(0, 0.02))
        assert QUESTION in typist.seen
        typist.read(0.5)
        assert "answer  " not in typist.seen
        assert (tmp_path / "work" / "a.txt").exists()

        typist.type("\x15")
        press(typist, "1", "answer  approved (once), by terminal")
        assert typist.wait_for("Gone.")
        assert not (tmp_path / "work" / "a.txt").exists()


def test_a_call_that_fails_after_a_yes_says_why_once(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, "It was gone.")
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("remove it\r")
        assert typist.wait_for(QUESTION)
        (tmp_path / "work" / "a.txt").unlink()
        press(typist, "1", "(approved by you)")
        assert typist.wait_for("It was gone.")
        assert typist.seen.count("FileNotFoundError") == 1


def test_enter_alone_is_no_answer_and_a_typed_deny_is(tmp_path: Path) -> None:
    with terminal(*prepared(tmp_path, DELETE, "Kept."), home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("remove it\r")
        assert typist.wait_for(QUESTION)
        for _ in range(3):
            time.sleep(0.6)
            typist.type("\r")
        time.sleep(0.6)
        typist.type("1\r")
        assert typist.wait_for("press the digit alone, without Enter; nothing was done")
        typist.type("/approve\r")
        assert typist.wait_for("too fast to have been typed")
        time.sleep(0.6)
        typist.type("/deny keep it\r")
        assert typist.wait_for("answer  denied")
        assert typist.wait_for("Kept.")
        assert (tmp_path / "work" / "a.txt").exists()
        assert typist.end("\x04") == 0


def test_ctrl_c_stops_the_turn_and_ctrl_d_at_a_question_leaves_it_waiting(tmp_path: Path) -> None:
    words = prepared(tmp_path, DELETE, DELETE, "Gone.")
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("remove it\r")
        assert typist.wait_for(QUESTION)
        typist.type("\x03")
        assert typist.wait_for("stopped; completed actions are not undone")
        typist.type("once more\r")
        assert typist.wait_for(QUESTION)
        typist.type("\x04")
        assert typist.wait_for("resume it with: holdfast -c")
        assert typist.end() == 0
    with terminal("-c", home=tmp_path) as typist:
        assert typist.wait_for("A call waits for your approval.")
        assert typist.wait_for(QUESTION)
        assert "interrupted" not in typist.seen, "it waited, and is not said to have been anything else"
        press(typist, "1", "answer  approved")
        assert typist.wait_for("Gone.")
    assert not (tmp_path / "work" / "a.txt").exists()


def test_a_reply_is_rendered_and_what_it_hides_is_shown(tmp_path: Path) -> None:
    reply = "# Title\n\nSome **bold** words, a \u202ehidden\u200b turn and \x1b[31mred\x1b[0m.\n\n```\ncode\n```\n"
    with terminal(*prepared(tmp_path, reply, "Bye."), home=tmp_path) as typist:
        assert typist.wait_for("/help")
        typist.type("hello\r")
        assert typist.wait_for("code")
        assert "**bold**" not in typist.seen
        assert "<U+202E>hidden<U+200B>" in typist.seen
        assert "<U+001B>[31mred" in typist.seen
        assert "\x1b[31mred" not in typist.seen


def test_who_leaves_a_question_of_posted_code_is_told_how_it_goes_on(tmp_path: Path) -> None:
    prepared(tmp_path)
    (tmp_path / "clean.py").write_text("import os\nos.remove('a.txt')\n")
    words = ("exec", "clean.py", "-w", "work", "--trust", "-p", "asking.yaml")
    with terminal(*words, home=tmp_path) as typist:
        assert typist.wait_for(QUESTION)
        typist.type("\x04")
        assert typist.wait_for(
            "answer with holdfast approve or holdfast deny, then resume with holdfast exec --session "
        )
        assert typist.end() == 5
