"""The manual page of a command: what it does, examples, usage, options, notes. It is made from the module's docstring.

A docstring has paragraphs. The first says what the command does; one whose lines are commands holds the examples; the others
are notes.
"""

import argparse
import re
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from holdfast.cli.exit_codes import USAGE

MAX_WIDTH = 100
_EXAMPLE_STARTS = ("holdfast", "echo ", "git ", "cat ", "python ", "source ")
_EXAMPLE = re.compile(r"(.*?\S)\s{2,}(\S.*)")
"""An example: the command, and what it is for."""
_MIN_COMMENT_WIDTH = 28
_EXIT_CODES = "Exit codes: 0 done, 1 error, 2 usage; the others: holdfast explain exit-codes."


class HelpPage(NamedTuple):
    """The paragraphs of a docstring, told apart."""

    what: str
    examples: tuple[str, ...]
    notes: tuple[str, ...]


def parse_help_page(docstring: str) -> HelpPage:
    """Tell the paragraphs of a docstring apart."""
    what, *rest = textwrap.dedent(docstring).strip().split("\n\n")
    paragraphs = [textwrap.dedent(paragraph) for paragraph in rest]
    examples = [each for each in paragraphs if each.startswith(_EXAMPLE_STARTS)]
    return HelpPage(
        what=" ".join(what.split()),
        examples=tuple(line for each in examples for line in each.splitlines()),
        notes=tuple(note for each in paragraphs if each not in examples for note in _split_exit_codes(each)),
    )


def _split_exit_codes(paragraph: str) -> list[str]:
    """Exit codes stand by themselves, wherever the docstring has them."""
    words, mark, codes = " ".join(paragraph.split()).partition("Exit codes:")
    return [part for part in (words.strip(), f"{mark}{codes}") if part]


def _wrap_example(example: str, width: int) -> str:
    """An example whose words go on below where they are too long: beside its command, or under it if that is long itself."""
    told = _EXAMPLE.fullmatch(example)
    if told is None or len(example) <= width:
        return example
    command, words = told.groups()
    column = told.start(2)
    if width - column >= _MIN_COMMENT_WIDTH:
        return command.ljust(column) + f"\n{'':{column}}".join(textwrap.wrap(words, width - column))
    return "\n".join([command, *(f"    {line}" for line in textwrap.wrap(words, width - 4))])


class HelpParser(argparse.ArgumentParser):
    """A parser whose help begins with examples, and whose complaints say where help is."""

    def __init__(
        self, *, manual: HelpPage, **options: Any
    ) -> None:  # Any: whatever argparse takes, handed on as it is
        super().__init__(**{"allow_abbrev": False, **options})
        self.manual = manual
        self._optionals.title = "options"
        self._positionals.title = "arguments"

    def add_subparsers(self, **options: Any) -> Any:  # Any: as argparse declares it
        return super().add_subparsers(**{"parser_class": partial(HelpParser, manual=self.manual), **options})

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples of this command, and of what is below it."""
        return tuple(line for line in self.manual.examples if f"{self.prog} " in f"{line} ")

    def format_help(self) -> str:
        is_whole = self.prog.count(" ") <= 1
        width = min(MAX_WIDTH, argparse.HelpFormatter("")._width)
        parts = [textwrap.fill(self.description or self.manual.what, width)]
        if self.examples:
            examples = "\n".join(_wrap_example(line, width - 2) for line in self.examples)
            parts.append("examples:\n" + textwrap.indent(examples, "  "))
        formatter = argparse.RawDescriptionHelpFormatter(self.prog, width=width)
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        parts.append(formatter.format_help().strip())
        notes = list(self.manual.notes) if is_whole else []
        if not any("Exit codes:" in note for note in notes):
            notes.append(_EXIT_CODES)
        parts += [textwrap.fill(note, width) for note in notes]
        return "\n\n".join(parts) + "\n"

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}\nhint: {self.prog} --help shows examples", file=sys.stderr)
        raise SystemExit(USAGE)


class LoadedCommand(NamedTuple):
    """A command ready to be run: its module and its parser."""

    module: ModuleType
    parser: HelpParser


def load_command(command: str) -> LoadedCommand:
    """Import a command's module, and no other's, and make its parser."""
    module = import_module(f"holdfast.cli.commands.{command.replace('-', '_')}")
    prog = "holdfast" if command == "session" else f"holdfast {command}"
    parser = HelpParser(prog=prog, manual=parse_help_page(module.__doc__ or ""))
    configure: Callable[[argparse.ArgumentParser], None] = module.configure
    configure(parser)
    for action in _subparser_actions(parser):
        action.metavar = "|".join(action.choices)  # whoever leaves it out is told which there are
    for name, below in actions(parser).items():
        below.description = _subcommand_description(parser, name)
    return LoadedCommand(module, parser)


def actions(parser: HelpParser) -> dict[str, HelpParser]:
    """The parsers one word below this one, such as `check` of `holdfast policy`."""
    return {name: below for action in _subparser_actions(parser) for name, below in action.choices.items()}


def _subcommand_description(parser: HelpParser, name: str) -> str | None:
    """What the parent says of an action in its list, as a sentence."""
    for action in _subparser_actions(parser):
        for choice in action._choices_actions:
            if choice.dest == name and choice.help:
                return f"{choice.help[0].upper()}{choice.help[1:].rstrip('.')}."
    return None


def _subparser_actions(parser: HelpParser) -> list["argparse._SubParsersAction[HelpParser]"]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
