"""The words that may follow each command, taken from the argument parsers, so that there is no second list to maintain."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.help_pages import HelpParser, load_command, subcommands

Kind = Literal["none", "words", "sessions", "files", "folders", "any"]
_FOLDERS = ("DIR",)
_FILES = ("FILE", "NAME|FILE", "LOCAL")
_FILE_NAMES = ("file", "local", "output")


class ArgumentSpec(NamedTuple):
    """The kind of value of an option or an argument."""

    kind: Kind
    words: tuple[str, ...] = ()


class OptionSpec(NamedTuple):
    """An option: its flags, description and value."""

    flags: tuple[str, ...]
    description: str
    value: ArgumentSpec


class CommandSpec(NamedTuple):
    """A command or subcommand: its subcommands, options and argument."""

    path: str
    """Such as `policy check`; empty for holdfast itself."""
    words: dict[str, str]
    """Subcommands and their descriptions."""
    options: tuple[OptionSpec, ...]
    argument: ArgumentSpec


def command_specs() -> tuple[CommandSpec, ...]:
    """All commands and subcommands."""
    found = [_command_spec("", load_command("session").parser, COMMANDS)]
    for command in COMMANDS:
        parser = load_command(command).parser
        below = subcommands(parser)
        found.append(
            _command_spec(command, parser, {name: each.description or "" for name, each in below.items()})
        )
        found += [_command_spec(f"{command} {name}", each, {}) for name, each in below.items()]
    return tuple(found)


def _command_spec(path: str, parser: HelpParser, words: dict[str, str]) -> CommandSpec:
    options = tuple(
        OptionSpec(tuple(action.option_strings), _one_line(action.help), _argument_spec(action))
        for action in parser._actions
        if action.option_strings
    )
    arguments = [
        _argument_spec(action)
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
    ]
    return CommandSpec(path, words, options, _first_completable(arguments))


def _first_completable(values: Iterable[ArgumentSpec]) -> ArgumentSpec:
    """The first of several arguments that can be completed. The scripts do not count arguments."""
    return next((value for value in values if value.kind != "any"), ArgumentSpec("any"))


def _argument_spec(action: argparse.Action) -> ArgumentSpec:
    if action.nargs == 0 or isinstance(action, argparse._HelpAction | argparse._VersionAction):
        return ArgumentSpec("none")
    if action.choices is not None:
        return ArgumentSpec("words", tuple(map(str, action.choices)))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if action.dest in ("session", "resume"):
        return ArgumentSpec("sessions")
    if metavar in _FOLDERS:
        return ArgumentSpec("folders")
    if metavar in _FILES or action.dest in _FILE_NAMES:
        return ArgumentSpec("files")
    return ArgumentSpec("any")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def flags_with_values(command: CommandSpec) -> Sequence[OptionSpec]:
    """The options that take a value, so that the next word is not a command."""
    return [option for option in command.options if option.value.kind != "none"]
