"""Reading the configuration: config.toml of the data directory, then the environment, then a project's own limits."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.config.renamed_keys import current_key, dotted_keys, old_keys_in, with_current_keys
from holdfast.config.toml_source import parse_toml, position_of
from holdfast.core import BUDGET_DIMENSIONS, DIMENSIONS, Limits, Value, budget_dimension
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.session import Settings
from holdfast.store import Home, read_settings

PROJECT_CONFIG = Path(".holdfast") / "config.toml"
Kind = TypeVar("Kind", bound=Value)
_HINT = "docs/reference/config.md lists every field; `holdfast config` shows the current values"
_PROJECT_HINT = "a project may only set limits, in a table [budget]; put the rest into your own config.toml"


class ProjectSettings(Value, forbid_unknown_fields=True):
    """What a project's own file may set. It comes with the project's files, so it can only lower limits."""

    budget: Limits = Limits()
    """Of a session that works in the project. The lower of this and your own limit applies."""


class Configured(Value):
    """The settings in effect, and where each one that is not a default comes from."""

    settings: Settings
    sources: dict[str, str]
    """Dotted key to its source: a file with line and column, or an environment variable."""
    notes: tuple[str, ...] = ()
    """One line for each key in the file that has a new name."""


def load_config(
    home: Home, environ: Mapping[str, str] | None = None, *, project: Path | None = None
) -> Settings:
    """The settings in effect. Reports keys with old names on stderr. Raises InvalidConfig with line and column."""
    configured = read_config(home, environ, project=project)
    for note in configured.notes:
        _print_once(note)
    return configured.settings


def read_config(
    home: Home, environ: Mapping[str, str] | None = None, *, project: Path | None = None
) -> Configured:
    """The settings in effect, their sources and notes about old names. Raises InvalidConfig with line and column."""
    environ = os.environ if environ is None else environ
    settings, sources, notes = _read_file(home.config, Settings)
    if environ.get("HOLDFAST_POLICY"):
        settings = msgspec.structs.replace(settings, policy=environ["HOLDFAST_POLICY"])
        sources["policy"] = "$HOLDFAST_POLICY"
    if environ.get("HOLDFAST_MODEL"):
        # `resolve_model` reads the variable itself; it is repeated here so that a person sees the value in effect.
        settings = msgspec.structs.replace(settings, model=environ["HOLDFAST_MODEL"])
        sources["model"] = "$HOLDFAST_MODEL"
    if project is not None:
        settings = _narrow(settings, sources, project / PROJECT_CONFIG)
    return Configured(settings=settings, sources=sources, notes=notes)


def project_budget(budget: Limits, project: Path) -> Limits:
    """A budget for sessions in a project: the lower of this and the project's own. Raises InvalidConfig."""
    narrower, _, _ = _read_file(project / PROJECT_CONFIG, ProjectSettings)
    return budget.narrowed(narrower.budget)


def check_config(text: str, path: Path) -> None:
    """Check that a text is a valid configuration for this file. Raises InvalidConfig."""
    _parse(text, path, Settings)


@cache
def _print_once(note: str) -> None:
    print(f"note: {note}", file=sys.stderr)


def _narrow(settings: Settings, sources: dict[str, str], path: Path) -> Settings:
    narrower, project_sources, _ = _read_file(path, ProjectSettings)
    budget = settings.budget.narrowed(narrower.budget)
    for dimension in DIMENSIONS:
        if getattr(settings.budget, dimension) != getattr(budget, dimension):
            sources[f"budget.{dimension}"] = project_sources[f"budget.{dimension}"]
    return msgspec.structs.replace(settings, budget=budget)


def _read_file(path: Path, kind: type[Kind]) -> tuple[Kind, dict[str, str], tuple[str, ...]]:
    try:
        text = read_settings(path).decode("utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: {error}", hint="fix it, or move the file away") from error
    return _parse(text, path, kind)


def _parse(text: str, path: Path, kind: type[Kind]) -> tuple[Kind, dict[str, str], tuple[str, ...]]:
    written = parse_toml(text, str(path))
    table, old_keys = with_current_keys(written) if kind is Settings else (written, {})

    def locate(key: str) -> str:
        position = position_of(text, written_key(text, old_keys.get(key, key)))
        return f"{path}:{position.line}:{position.column}" if position else str(path)

    table = _with_budget_fields(table, kind, locate)
    _check_known(table, kind, locate)
    try:
        settings = msgspec.convert(_over_defaults(table, kind), kind)
        if key := _negative_number(table):
            raise InvalidInput(f"{key} must be 0 or more")
    except (msgspec.ValidationError, InvalidInput) as error:
        what, _, key = str(error).partition(" - at `$.")
        raise InvalidConfig(
            f"{locate(key.rstrip('`') or _negative_number(table))}: {what}", hint=_HINT
        ) from error
    notes = [
        f"{path}:{_line(text, old)}: {old} is now called {current_key(old)}" for old in old_keys_in(written)
    ]
    return settings, {key: locate(key) for key in dotted_keys(table)}, tuple(notes)


def _line(text: str, key: str) -> int:
    position = position_of(text, key)
    return position.line if position else 1


def _with_budget_fields(
    table: Mapping[str, object], kind: type[Value], locate: Callable[[str], str]
) -> dict[str, object]:
    """The table with budgets under their field names: `usd` and `time` are accepted, and quantities such as "5m"."""
    named = dict(table)
    for field in msgspec.structs.fields(kind):
        given = table.get(field.name)
        if field.type is Limits and isinstance(given, str):
            raise InvalidConfig(
                f"{locate(field.name)}: {field.name} is a table of limits, not text",
                hint=f'for example: {field.name} = {{usd = 1, tokens = "50k"}}',
            )
        if field.type is not Limits or not isinstance(given, dict):
            continue
        limits: dict[str, object] = {}
        for word, value in given.items():
            known = next((each for each in BUDGET_DIMENSIONS if word in (each.word, *each.aliases)), None)
            name = word if known is None else known.field
            key = f"{field.name}.{word}"
            if name in limits:
                raise InvalidConfig(f"{locate(key)}: {key} is given twice", hint="give each dimension once")
            try:
                limits[name] = known.parse(value) if known is not None and isinstance(value, str) else value
            except InvalidInput as error:
                raise InvalidConfig(f"{locate(key)}: {error}", hint=error.hint) from error
        named[field.name] = limits
    return named


def written_key(text: str, key: str) -> str:
    """The key as a file spells it: `budget.usd` for `budget.cost_usd` where the file uses that word."""
    table, _, name = key.rpartition(".")
    if name in DIMENSIONS:
        dimension = budget_dimension(name)
        of_table = position_of(text, table)
        for word in (name, dimension.word, *dimension.aliases):
            if position_of(text, f"{table}.{word}") != of_table:
                return f"{table}.{word}"
    return key


def _over_defaults(table: Mapping[str, object], kind: type[Value]) -> dict[str, object]:
    """The table with the defaults of its tables filled in: setting one limit must not remove the others."""
    filled = dict(table)
    for field in msgspec.structs.fields(kind):
        given = table.get(field.name)
        if isinstance(given, dict) and isinstance(field.default, Value):
            filled[field.name] = {**msgspec.to_builtins(field.default), **given}
    return filled


def _check_known(
    table: Mapping[str, object], kind: type[Any], locate: Callable[[str], str], prefix: str = ""
) -> None:
    """A misspelt key is an error at any depth: a limit that is silently ignored does not protect anyone."""
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in table.items():
        if name not in known:
            hint = _PROJECT_HINT if kind is ProjectSettings else _suggestion(name, known)
            raise InvalidConfig(f"{locate(prefix + name)}: there is no field {prefix + name!r}", hint=hint)
        if isinstance(value, dict) and isinstance(known[name], type) and issubclass(known[name], Value):
            _check_known(value, known[name], locate, f"{prefix}{name}.")


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}? {_HINT}" if close else _HINT


def _negative_number(table: Mapping[str, object]) -> str:
    """The key of the first number that is negative or NaN. Limits report such a number without its key."""
    for key in dotted_keys(table):
        value: object = table
        for name in key.split("."):
            value = value[name] if isinstance(value, dict) else None
        if isinstance(value, int | float) and not value >= 0:
            return key
    return ""
