"""What may follow at each place of a command line, taken from the parsers, so that nothing has to be kept in step."""

import argparse
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.help_pages import ManualParser, actions, load

Kind = Literal["none", "words", "sessions", "files", "folders", "any"]
_FOLDERS = ("DIR",)
_FILES = ("FILE", "NAME|FILE", "LOCAL")
_FILE_NAMES = ("file", "local", "output")


class Value(NamedTuple):
    """What an option or an argument takes."""

    kind: Kind
    words: tuple[str, ...] = ()


class Option(NamedTuple):
    """An option as it is written, what it is for, and what it takes."""

    flags: tuple[str, ...]
    what: str
    value: Value


class Place(NamedTuple):
    """A command, or an action of one: the words before it, what may follow, and what each of that is for."""

    path: str
    """As in `policy check`; empty for holdfast itself."""
    words: dict[str, str]
    """Commands or actions that may follow, and what they do."""
    options: tuple[Option, ...]
    argument: Value


def places() -> tuple[Place, ...]:
    """Every place there is."""
    found = [_place("", load("session").parser, COMMANDS)]
    for command in COMMANDS:
        parser = load(command).parser
        below = actions(parser)
        found.append(_place(command, parser, {name: each.description or "" for name, each in below.items()}))
        found += [_place(f"{command} {name}", each, {}) for name, each in below.items()]
    return tuple(found)


def _place(path: str, parser: ManualParser, words: dict[str, str]) -> Place:
    options = tuple(
        Option(tuple(action.option_strings), _short(action.help), _value(action))
        for action in parser._actions
        if action.option_strings
    )
    arguments = [
        _value(action)
        for action in parser._actions
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
    ]
    return Place(path, words, options, _first(arguments))


def _first(values: Iterable[Value]) -> Value:
    """Of several arguments the first that can be completed; a shell need not count them."""
    return next((value for value in values if value.kind != "any"), Value("any"))


def _value(action: argparse.Action) -> Value:
    if action.nargs == 0 or isinstance(action, argparse._HelpAction | argparse._VersionAction):
        return Value("none")
    if action.choices is not None:
        return Value("words", tuple(map(str, action.choices)))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if action.dest in ("session", "resume"):
        return Value("sessions")
    if metavar in _FOLDERS:
        return Value("folders")
    if metavar in _FILES or action.dest in _FILE_NAMES:
        return Value("files")
    return Value("any")


def _short(text: str | None) -> str:
    return " ".join((text or "").replace("%%", "%").split())


def flags_with_values(place: Place) -> Sequence[Option]:
    """The options whose next word is a value and no command."""
    return [option for option in place.options if option.value.kind != "none"]
