"""Show each setting with its source, or change one.

holdfast config                              the settings in effect, with their sources
holdfast config get budget.tokens
holdfast config set model anthropic:claude-sonnet-5-5
holdfast config set budget.cost_usd 2.50     keeps the comments and the order of the file
holdfast config path                         the path of the file
holdfast config show -w .                    including the limits of the project in this folder

Exit codes: 0 success, 2 when the file or the value is invalid; the message names file:line:column.
"""

import argparse
import os
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.config import Field, Scalar, check_config, config_text, fields, read_config, with_value
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.models import keys_present, resolve_model
from holdfast.store import Home, replace_private

_DEFAULT = "default"
_HIDDEN = "asking.model"
"""The top-level `model` takes precedence over it."""


class _Row(NamedTuple):
    key: str
    value: object
    source: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    verbs = parser.add_subparsers(dest="verb")
    show = verbs.add_parser("show", help="show all settings with their sources")
    for each in (parser, show):
        # Suppressed, so that the subcommand's default does not overwrite an option given before the subcommand.
        default = None if each is parser else argparse.SUPPRESS
        each.add_argument(
            "-w",
            "--workspace",
            metavar="DIR",
            default=default,
            help="include the limits of the project in DIR",
        )
        each.add_argument("--json", action="store_true", default=default, help="print a JSON array")
    verbs.add_parser("get", help="show one value").add_argument(
        "key", metavar="KEY", help="such as budget.tokens"
    )
    put = verbs.add_parser("set", help="set one value in your config.toml")
    put.add_argument("key", metavar="KEY", help="such as budget.tokens")
    put.add_argument("value", metavar="VALUE", help="such as 50000, true, or a name")
    verbs.add_parser("path", help="show the path of your config.toml")


async def run(arguments: argparse.Namespace) -> int:
    """Run the subcommand."""
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
    return [_with_resolved_model(row) if row.key == "model" else row for row in rows]


def _with_resolved_model(row: _Row) -> _Row:
    """Without a configured model, show the one that a key in the environment selects."""
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
        console.print(f"{row.key:<{width}}  {escape_invisible(value):<24}  {source}")
    where = "" if home.config.exists() else " (does not exist; create it with: holdfast init)"
    console.say(f"file: {home.config}{where}", "dim")


def _set(console: Console, home: Home, field: Field, text: str) -> None:
    try:
        value: Scalar | Decimal | None = msgspec.convert(text, field.type, strict=False)
    except msgspec.ValidationError as error:
        # "got `str`" is noise: every command-line argument is a string.
        why = "" if "got `str`" in str(error) else f": {error}"
        raise InvalidInput(
            f"{field.key} cannot be {text!r}{why}", hint=f"the value must be a {field.kind}"
        ) from None
    if value is None:
        raise InvalidInput(
            f"{field.key} cannot be set to nothing", hint=f"remove the line from {home.config}"
        )
    home.prepare()
    before = home.config.read_text(encoding="utf-8-sig") if home.config.exists() else config_text("project")
    after = with_value(before, field.key, float(value) if isinstance(value, Decimal) else value)
    check_config(after, home.config)
    replace_private(home.config, after.encode())
    console.say(f"{field.key} = {_shown(value)} in {home.config}")


def _field(key: str) -> Field:
    found = {field.key: field for field in fields()}
    if key in found:
        return found[key]
    from difflib import get_close_matches

    near = get_close_matches(key, found, n=1)
    raise InvalidInput(
        f"there is no field {escape_invisible(key)!r}",
        hint=f"did you mean {near[0]}?" if near else "list all fields with: holdfast config",
    )


def _shown(value: object) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
