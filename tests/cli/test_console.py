"""Console output: control characters are shown, and the terminal does not obey them."""

import io

import pytest

from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.screen import PlainScreen

HOSTILE = "gone \x1b[2J\x1b]0;owned\x07 \u202e back\r"
SHOWN = "gone <U+001B>[2J<U+001B>]0;owned<U+0007> <U+202E> back<U+000D>\n"


def test_messages_and_tables_are_escaped() -> None:
    out, err = io.StringIO(), io.StringIO()
    console = Console(out, err)
    console.say(HOSTILE, "bad", folds=True)
    console.show(HOSTILE, folds=True)
    assert (err.getvalue(), out.getvalue()) == (SHOWN, SHOWN)


def test_messages_of_a_plain_chat_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    PlainScreen().say(HOSTILE)
    assert capsys.readouterr().err == SHOWN


def test_data_is_written_unchanged() -> None:
    out = io.StringIO()
    Console(out).print(HOSTILE)
    assert out.getvalue() == f"{HOSTILE}\n"
