"""Help: a page for every command and action, examples first, everything in it explained."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest
from tests.cli.commands import Run, run

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.help_pages import HelpParser, load_command, subcommands

__all__ = ["run"]


def pages(command: str) -> Iterator[tuple[str, HelpParser]]:
    parser = load_command(command).parser
    yield f"holdfast {command}", parser
    for name, below in subcommands(parser).items():
        yield f"holdfast {command} {name}", below


@pytest.mark.parametrize("command", COMMANDS)
def test_a_help_page_has_summary_examples_usage_and_options_in_order(command: str) -> None:
    for page, parser in pages(command):
        text = parser.format_help()
        what, examples, *_ = text.split("\n\n")
        assert what.endswith("."), f"{page}: {what}"
        assert examples.startswith("examples:\n  "), text
        assert page in examples
        assert text.index("usage: ") > text.index("examples:")
        assert "Exit codes: " in text


def typed(example: str) -> list[str]:
    """The words of an example after the program's name, without its comment and shell syntax."""
    command = re.split(r"\s{2,}", example, maxsplit=1)[0]
    (words,) = [part for part in re.split(r"[|]|<\(|\)", command) if part.strip().startswith("holdfast ")]
    return shlex.split(words)[1:]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_parses(command: str) -> None:
    parser = load_command(command).parser
    for example in parser.examples:
        first, *words = typed(example)
        assert first == command
        parser.parse_args(words)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_and_option_has_help(command: str) -> None:
    for page, parser in pages(command):
        for action in parser._actions:
            if not isinstance(action, argparse._SubParsersAction):
                assert action.help, f"{page}: {action.option_strings or action.dest} says nothing"
            else:
                said = {choice.dest for choice in action._choices_actions if choice.help}
                assert not set(action.choices) - said, f"{page}: {set(action.choices) - said} say nothing"


def test_the_first_page_lists_every_option_of_a_session_and_every_command(run: Run) -> None:
    done = run("--help")
    for action in load_command("session").parser._actions:
        for option in action.option_strings:
            assert option in done.out, f"{option} is missing"
    for command, what in COMMANDS.items():
        assert f"  {command} " in done.out
        assert what in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.index("examples:") < done.out.index("options")


def test_help_is_found_by_either_word_order(run: Run) -> None:
    assert run("help", "audit").out == run("audit", "--help").out
    assert run("help").out == run("-h").out


def test_a_misspelt_command_is_not_sent_to_a_model(run: Run) -> None:
    done = run("sesions")
    assert done.code == 2
    assert "there is no command 'sesions'" in done.err
    assert "holdfast sessions" in done.err


def test_a_wrong_option_says_where_help_is(run: Run) -> None:
    done = run("audit", "--colour")
    assert done.code == 2
    assert "--colour" in done.err
    assert "hint: holdfast audit --help" in done.err
