"""Help pages of commands: summary, examples, usage, options and notes, built from the docstring of the command's module.

The first paragraph of a docstring is the summary, a paragraph of command lines holds the examples, and the others are notes.
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
"""An example: the command and its comment."""
_MIN_COMMENT_WIDTH = 28
_EXIT_CODES = "Exit codes: 0 success, 1 error, 2 usage. For the others: holdfast explain exit-codes."


class HelpPage(NamedTuple):
    """The paragraphs of a docstring by kind."""

    summary: str
    examples: tuple[str, ...]
    notes: tuple[str, ...]


_MAX_USAGE = 70
_SIMILARITY_CUTOFF = 0.75


def parse_help_page(docstring: str) -> HelpPage:
    """Sort the paragraphs of a docstring by kind."""
    summary, *rest = textwrap.dedent(docstring).strip().split("\n\n")
    paragraphs = [textwrap.dedent(paragraph) for paragraph in rest]
    examples = [each for each in paragraphs if each.startswith(_EXAMPLE_STARTS)]
    return HelpPage(
        summary=" ".join(summary.split()),
        examples=tuple(line for each in examples for line in each.splitlines()),
        notes=tuple(note for each in paragraphs if each not in examples for note in _split_exit_codes(each)),
    )


def _split_exit_codes(paragraph: str) -> list[str]:
    """Make the exit codes a note of their own."""
    words, mark, codes = " ".join(paragraph.split()).partition("Exit codes:")
    return [part for part in (words.strip(), f"{mark}{codes}") if part]


def _wrap_example(example: str, width: int) -> str:
    """An example with its comment wrapped: beside the command, or below it where the command leaves too little room."""
    match = _EXAMPLE.fullmatch(example)
    if match is None or len(example) <= width:
        return example
    command, comment = match.groups()
    column = match.start(2)
    if width - column >= _MIN_COMMENT_WIDTH:
        return command.ljust(column) + f"\n{'':{column}}".join(textwrap.wrap(comment, width - column))
    return "\n".join([command, *(f"    {line}" for line in textwrap.wrap(comment, width - 4))])


class HelpParser(argparse.ArgumentParser):
    """An argument parser whose help starts with examples and whose errors point to the help."""

    def __init__(
        self, *, help_page: HelpPage, **options: Any
    ) -> None:  # Any: the options of argparse, passed on
        super().__init__(**{"allow_abbrev": False, **options})
        self.help_page = help_page
        self._optionals.title = "options"
        self._positionals.title = "arguments"

    def add_subparsers(self, **options: Any) -> Any:  # Any: as argparse declares it
        return super().add_subparsers(
            **{"parser_class": partial(HelpParser, help_page=self.help_page), **options}
        )

    @property
    def examples(self) -> tuple[str, ...]:
        """The examples of this command and its subcommands."""
        return tuple(line for line in self.help_page.examples if f"{self.prog} " in f"{line} ")

    def format_help(self) -> str:
        is_command = self.prog.count(" ") <= 1
        width = min(MAX_WIDTH, argparse.HelpFormatter("")._width)
        parts = [textwrap.fill(self.description or self.help_page.summary, width)]
        if self.examples:
            examples = "\n".join(_wrap_example(line, width - 2) for line in self.examples)
            parts.append("examples:\n" + textwrap.indent(examples, "  "))
        formatter = argparse.RawDescriptionHelpFormatter(self.prog, width=width)
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        parts.append(self._name_rest(formatter.format_help().strip()))
        notes = list(self.help_page.notes) if is_command else []
        if not any("Exit codes:" in note for note in notes):
            notes.append(_EXIT_CODES)
        parts += [textwrap.fill(note, width) for note in notes]
        return "\n\n".join(parts) + "\n"

    def _name_rest(self, text: str) -> str:
        """The usage with the name of an argument that takes the rest of the line, for which argparse writes `...`."""
        rest = next((each for each in self._actions if each.nargs == argparse.REMAINDER), None)
        return text if rest is None else text.replace(" ...\n", f" {rest.metavar}\n", 1)

    def error(self, message: str) -> NoReturn:
        hint = self._meant(message) or f"{self.prog} --help shows examples"
        print(f"{self.prog}: {message}\nhint: {hint}", file=sys.stderr)
        raise SystemExit(USAGE)

    def _meant(self, message: str) -> str:
        """The option that was probably meant instead of one that does not exist."""
        from difflib import get_close_matches

        unknown = message.removeprefix("unrecognized arguments: ").split(" ")[0].partition("=")[0]
        if unknown == message.split(" ")[0] or not unknown.startswith("--"):
            return ""
        parsers = (self, *subcommands(self).values())
        options = {each for parser in parsers for action in parser._actions for each in action.option_strings}
        near = get_close_matches(unknown, options, n=1, cutoff=_SIMILARITY_CUTOFF)
        return f"did you mean {near[0]}?" if near else ""


class LoadedCommand(NamedTuple):
    """A command with its module and its parser."""

    module: ModuleType
    parser: HelpParser


def load_command(command: str) -> LoadedCommand:
    """Import the module of one command and build its parser."""
    module = import_module(f"holdfast.cli.commands.{command.replace('-', '_')}")
    prog = "holdfast" if command == "session" else f"holdfast {command}"
    parser = HelpParser(prog=prog, help_page=parse_help_page(module.__doc__ or ""))
    configure: Callable[[argparse.ArgumentParser], None] = module.configure
    configure(parser)
    for action in _subparser_actions(parser):
        listed = "|".join(action.choices)
        if (
            len(prog) + len(listed) >= _MAX_USAGE
        ):  # the usage cannot break it, and the line would not fit a terminal
            action.metavar = "COMMAND"
            parser.usage = parser.format_usage().removeprefix("usage: ").strip()
        action.metavar = listed  # the error for a missing subcommand then lists them all
    for name, below in subcommands(parser).items():
        below.description = _subcommand_description(parser, name)
    return LoadedCommand(module, parser)


def subcommands(parser: HelpParser) -> dict[str, HelpParser]:
    """The parsers of the subcommands, such as `check` of `holdfast policy`."""
    return {name: below for action in _subparser_actions(parser) for name, below in action.choices.items()}


def _subcommand_description(parser: HelpParser, name: str) -> str | None:
    """The subcommand's help text in the list of its parent, as a sentence."""
    for action in _subparser_actions(parser):
        for choice in action._choices_actions:
            if choice.dest == name and choice.help:
                return f"{choice.help[0].upper()}{choice.help[1:].rstrip('.')}."
    return None


def _subparser_actions(parser: HelpParser) -> list["argparse._SubParsersAction[HelpParser]"]:
    return [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
