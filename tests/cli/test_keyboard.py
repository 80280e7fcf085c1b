"""Line input in plain mode: who receives a line, and the end of input."""

import asyncio
import os
import pty
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from holdfast.cli.terminal.keyboard import LineKeyboard, RawKeyboard


@contextmanager
def typing() -> Iterator[tuple[LineKeyboard, int]]:
    theirs, ours = os.pipe()
    keyboard = LineKeyboard(theirs)
    keyboard.open()
    try:
        yield keyboard, ours
    finally:
        keyboard.close()
        os.close(theirs)


async def heard(keys: list[str]) -> list[str]:
    while not keys:  # noqa: ASYNC110  # what is read comes by a callback of the loop
        await asyncio.sleep(0)
    return keys


async def test_lines_go_to_an_open_question() -> None:
    with typing() as (keyboard, hand):
        os.write(hand, b"before\n")
        assert await keyboard.next() == "before"
        keys: list[str] = []
        with keyboard.listening(keys.append):
            os.write(hand, b"1 \n")
            assert await heard(keys) == ["1"]
        os.write(hand, b"after\n")
        assert await keyboard.next() == "after"
        os.close(hand)
        assert await keyboard.next() is None


async def test_lines_that_arrive_together_are_one_message() -> None:
    with typing() as (keyboard, hand):
        for line in (b"first\n", b"/quit\n", b"last\n"):
            os.write(hand, line)
        assert await keyboard.next() == "first\n/quit\nlast"
        os.close(hand)


@pytest.mark.parametrize("is_asked_before", [True, False])
async def test_the_end_of_input_answers_every_later_question(is_asked_before: bool) -> None:
    with typing() as (keyboard, hand):
        if is_asked_before:
            first: list[str] = []
            with keyboard.listening(first.append):
                os.close(hand)
                assert await heard(first) == ["\x04"]
        else:
            os.close(hand)
            assert await keyboard.next() is None
        for _ in range(2):
            keys: list[str] = []
            with keyboard.listening(keys.append):
                assert await heard(keys) == ["\x04"]
        assert await keyboard.line("why> ") is None
        assert await keyboard.next() is None


async def test_a_question_takes_the_terminal_back_from_a_reader_that_gives_it_up_late() -> None:
    ours, theirs = pty.openpty()
    keys: list[str] = []
    cooked = termios.tcgetattr(theirs)
    try:
        with RawKeyboard(theirs).listening(keys.append):
            asyncio.get_running_loop().remove_reader(theirs)
            termios.tcsetattr(theirs, termios.TCSANOW, cooked)
            async with asyncio.timeout(60):
                while "y" not in keys:
                    os.write(ours, b"y")
                    await asyncio.sleep(0.05)
    finally:
        os.close(ours)
        os.close(theirs)


async def test_a_terminal_that_is_closed_ends_the_question() -> None:
    ours, theirs = pty.openpty()
    keys: list[str] = []
    try:
        with suppress(termios.error), RawKeyboard(theirs).listening(keys.append):
            os.close(ours)
            assert await heard(keys) == ["\x04"]
    finally:
        os.close(theirs)
