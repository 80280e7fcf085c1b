"""Show the configuration and where each value comes from, or change a value.

holdfast config                              all values in effect, with their sources
holdfast config get budget.tokens
holdfast config set model anthropic:claude-sonnet-5-5
holdfast config set budget.usd 2.50          keeps the comments and layout of the file
holdfast config path                         where the file is
holdfast config show -w .                    including the limits of the project in this folder

Exit codes: 0 on success, 2 if the file or the value is invalid; the position is shown as file:line:column.
"""

import argparse
import os
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.cli import exit_codes
from holdfast.cli.redaction import known_secrets
from holdfast.cli.terminal.console import Console
from holdfast.config import (
    ConfigField,
    Setting,
    check_config,
    config_text,
    current_key,
    fields,
    read_config,
    with_value,
    written_key,
)
from holdfast.core import budget_dimension, escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.models import keys_present, resolve_model
from holdfast.policy import AUTO
from holdfast.store import Home, replace_private

_DEFAULT = "default"


class _Row(NamedTuple):
    key: str
    value: object
    source: str


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the actions and their options."""
    verbs = parser.add_subparsers(dest="verb")
    show = verbs.add_parser("show", help="all values in effect, with their sources")
    for each in (parser, show):
        # Suppressed, so that the default after the verb does not override an option before it.
        default = None if each is parser else argparse.SUPPRESS
        each.add_argument(
            "-w",
            "--workspace",
            metavar="DIR",
            default=default,
            help="include the limits of the project in DIR",
        )
        each.add_argument("--json", action="store_true", default=default, help="print a JSON array")
    verbs.add_parser("get", help="one value").add_argument(
        "key", metavar="KEY", help="for example budget.tokens"
    )
    put = verbs.add_parser("set", help="write one value into your config.toml")
    put.add_argument("key", metavar="KEY", help="for example budget.tokens")
    put.add_argument("value", metavar="VALUE", help="for example 50000, true, or a name")
    verbs.add_parser("path", help="where your config.toml is")


async def run(arguments: argparse.Namespace) -> int:
    """Run the action."""
    console, home = Console(), Home.default()
    match arguments.verb:
        case "path":
            console.print(str(home.config))
        case "get":
            field = _field(arguments.key)
            rows, _ = _read(home, None)
            [row] = [row for row in rows if row.key == field.key]
            redact = known_secrets(home.root)
            console.print("" if row.value is None else redact.redact_text(_text(row.value)))
        case "set":
            _set(console, home, _field(arguments.key), arguments.value)
        case _:
            project = Path(arguments.workspace).absolute() if arguments.workspace else None
            rows, notes = _read(home, project)
            _show(console, home, rows, project, is_json=arguments.json)
            for note in notes:
                console.say(f"note: {note}")
    return exit_codes.OK


def _read(home: Home, project: Path | None) -> tuple[list[_Row], tuple[str, ...]]:
    configured = read_config(home, project=project)
    rows = []
    for field in fields():
        value: object = configured.settings
        for name in field.key.split("."):
            value = getattr(value, name)
        row = _Row(field.key, value, configured.sources.get(field.key, _DEFAULT))
        rows.append(_with_default_model(row) if row.key == "model" else row)
    return rows, configured.notes


def _with_default_model(row: _Row) -> _Row:
    """If no model is configured, the default follows from an API key in the environment."""
    if row.value is not None:
        return row
    keys = keys_present(os.environ)
    found = resolve_model(os.environ)
    return _Row("model", found, f"key for {keys[0]} in the environment" if found and keys else _DEFAULT)


def _show(console: Console, home: Home, rows: list[_Row], project: Path | None, *, is_json: bool) -> None:
    redact = known_secrets(home.root)
    if is_json:
        console.json(msgspec.Raw(redact(msgspec.json.encode([row._asdict() for row in rows]))))
        return
    width = max(len(row.key) for row in rows)
    for row in rows:
        value = "-" if row.value is None or row.value == "" else redact.redact_text(_text(row.value))
        source = row.source.removeprefix(f"{home.root}{os.sep}").removeprefix(f"{project}{os.sep}")
        console.print(f"{row.key:<{width}}  {escape_invisible(value):<24}  {source}")
    where = "" if home.config.exists() else " (does not exist; holdfast init writes one)"
    console.say(f"file: {home.config}{where}", "dim")


def _set(console: Console, home: Home, field: ConfigField, text: str) -> None:
    try:
        value: Setting | Decimal | None = (
            budget_dimension(field.key.rpartition(".")[2]).parse(text)
            if field.key.startswith(("budget.", "turn_budget."))
            else msgspec.convert(_parts(text, field), field.type, strict=False)
        )
    except msgspec.ValidationError as error:
        # "got `str`" only says that the value was typed on a command line.
        reason = "" if "got `str`" in str(error) else f": {error}"
        raise InvalidInput(
            f"{field.key} cannot be {text!r}{reason}", hint=f"expected: {field.kind}"
        ) from None
    if value is None:
        raise InvalidInput(
            f"{field.key} cannot be empty", hint=f"to unset it, remove the line from {home.config}"
        )
    home.prepare()
    before = home.config.read_text(encoding="utf-8-sig") if home.config.exists() else config_text(AUTO)
    after = with_value(
        before, written_key(before, field.key), float(value) if isinstance(value, Decimal) else value
    )
    check_config(after, home.config)
    replace_private(home.config, after.encode())
    console.say(f"{field.key} = {_text(value)} in {home.config}")


def _parts(text: str, field: ConfigField) -> str | list[str]:
    """The text, or its parts between commas if the field is a list."""
    if not isinstance(field.default, tuple):
        return text
    return [part.strip() for part in text.split(",") if part.strip()]


def _field(key: str) -> ConfigField:
    known = {field.key: field for field in fields()}
    table, _, word = key.rpartition(".")
    if table in ("budget", "turn_budget"):
        key = f"{table}.{budget_dimension(word).field}"
    if current_key(key) in known:
        return known[current_key(key)]
    from difflib import get_close_matches

    close = get_close_matches(key, known, n=1)
    raise InvalidInput(
        f"there is no field {escape_invisible(key)!r}",
        hint=f"did you mean {close[0]}?" if close else "holdfast config lists all fields",
    )


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
