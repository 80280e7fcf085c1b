"""Line input in plain mode: who receives a line, and the end of input."""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.cli.terminal.keyboard import LineKeyboard


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
