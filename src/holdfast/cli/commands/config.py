"""What is configured, where each value comes from, and how to change one.

holdfast config                              what is in force, with the source of each value
holdfast config get budget.tokens
holdfast config set model anthropic:claude-sonnet-5-5
holdfast config set budget.usd 2.50          comments and order of the file stay
holdfast config path                         where the file is
holdfast config show -w .                    with what the project in this folder narrows

Exit codes: 0 done, 2 when the file or the value is not understood; the place is named as file:line:column.
"""

import argparse
import os
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console, visible
from holdfast.config import (
    Field,
    Scalar,
    check_config,
    config_text,
    fields,
    read_config,
    with_value,
    written_key,
)
from holdfast.core import budget_dimension
from holdfast.core.errors import InvalidInput
from holdfast.models import keys_present, resolve_model
from holdfast.store import Home, replace_private

_DEFAULT = "default"
_HIDDEN = "asking.model"
"""`model` stands at the top as well and goes before it."""


class _Row(NamedTuple):
    key: str
    value: object
    source: str


def configure(parser: argparse.ArgumentParser) -> None:
    """What to do with which value."""
    verbs = parser.add_subparsers(dest="verb")
    show = verbs.add_parser("show", help="everything that is in force, with its source")
    for each in (parser, show):
        # Suppressed, so that what stands before the verb is not undone by what does not stand after it.
        default = None if each is parser else argparse.SUPPRESS
        each.add_argument(
            "-w", "--workspace", metavar="DIR", default=default, help="with what the project in DIR narrows"
        )
        each.add_argument("--json", action="store_true", default=default, help="a JSON array on stdout")
    verbs.add_parser("get", help="one value").add_argument("key", metavar="KEY", help="as in budget.tokens")
    put = verbs.add_parser("set", help="write one value into your config.toml")
    put.add_argument("key", metavar="KEY", help="as in budget.tokens")
    put.add_argument("value", metavar="VALUE", help="as in 50000, true, or a name")
    verbs.add_parser("path", help="where your config.toml is")


async def run(arguments: argparse.Namespace) -> int:
    """Do it."""
    console, home = Console(), Home.default()
    match arguments.verb:
        case "path":
            console.print(str(home.config))
        case "get":
            field = _field(arguments.key)
            [row] = [row for row in _rows(home, None) if row.key == field.key]
            console.print("" if row.value is None else _shown(row.value))
        case "set":
            _set(console, home, _field(arguments.key), arguments.value)
        case _:
            project = Path(arguments.workspace).absolute() if arguments.workspace else None
            _show(console, home, _rows(home, project), project, is_json=arguments.json)
    return exit_codes.OK


def _rows(home: Home, project: Path | None) -> list[_Row]:
    configured = read_config(home, project=project)
    rows = []
    for field in fields():
        value: object = configured.settings
        for name in field.key.split("."):
            value = getattr(value, name)
        if field.key != _HIDDEN:
            rows.append(_Row(field.key, value, configured.sources.get(field.key, _DEFAULT)))
    return [_with_model_found(row) if row.key == "model" else row for row in rows]


def _with_model_found(row: _Row) -> _Row:
    """Without a model of their own, a person has the one that follows from a key."""
    if row.value is not None:
        return row
    keys = keys_present(os.environ)
    found = resolve_model(os.environ)
    return _Row("model", found, f"key for {keys[0]} in the environment" if found and keys else _DEFAULT)


def _show(console: Console, home: Home, rows: list[_Row], project: Path | None, *, is_json: bool) -> None:
    if is_json:
        console.json([row._asdict() for row in rows])
        return
    width = max(len(row.key) for row in rows)
    for row in rows:
        value = "-" if row.value is None or row.value == "" else _shown(row.value)
        source = row.source.removeprefix(f"{home.root}{os.sep}").removeprefix(f"{project}{os.sep}")
        console.print(f"{row.key:<{width}}  {visible(value):<24}  {source}")
    where = "" if home.config.exists() else " (not there: holdfast init writes one)"
    console.say(f"file: {home.config}{where}", "dim")


def _set(console: Console, home: Home, field: Field, text: str) -> None:
    try:
        value: Scalar | Decimal | None = (
            budget_dimension(field.key.rpartition(".")[2]).parse(text)
            if field.key.startswith(("budget.", "turn_budget."))
            else msgspec.convert(text, field.type, strict=False)
        )
    except msgspec.ValidationError as error:
        # "got `str`" would only say that it was typed at a command line.
        why = "" if "got `str`" in str(error) else f": {error}"
        raise InvalidInput(f"{field.key} cannot be {text!r}{why}", hint=f"it is a {field.kind}") from None
    if value is None:
        raise InvalidInput(
            f"{field.key} cannot be set to nothing", hint=f"take the line out of {home.config}"
        )
    home.prepare()
    before = home.config.read_text(encoding="utf-8-sig") if home.config.exists() else config_text("project")
    after = with_value(
        before, written_key(before, field.key), float(value) if isinstance(value, Decimal) else value
    )
    check_config(after, home.config)
    replace_private(home.config, after.encode())
    console.say(f"{field.key} = {_shown(value)} in {home.config}")


def _field(key: str) -> Field:
    found = {field.key: field for field in fields()}
    table, _, word = key.rpartition(".")
    if table in ("budget", "turn_budget"):
        key = f"{table}.{budget_dimension(word).field}"
    if key in found:
        return found[key]
    from difflib import get_close_matches

    near = get_close_matches(key, found, n=1)
    raise InvalidInput(
        f"there is no field {visible(key)!r}",
        hint=f"did you mean {near[0]}?" if near else "holdfast config lists them all",
    )


def _shown(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
