"""Reading the configuration: config.toml of the home, then the environment, then what a project may narrow."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from holdfast.config.edit import parse, place_of
from holdfast.core import BUDGET_DIMENSIONS, DIMENSIONS, Limits, Value, budget_dimension
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.session import Settings
from holdfast.store import Home

PROJECT_CONFIG = Path(".holdfast") / "config.toml"
Kind = TypeVar("Kind", bound=Value)
_HINT = "docs/reference/config.md lists every field; holdfast config shows what is read"
_PROJECT_HINT = "a project may only set limits, in a table [budget]; the rest is for your own config.toml"


class ProjectSettings(Value, forbid_unknown_fields=True):
    """What a project may say for itself. It comes with the files, so it can only narrow: it is never trusted to widen."""

    budget: Limits = Limits()
    """Of a session that works in it; the stricter of this and your own holds."""


class Configured(Value):
    """The settings in force, and where each that is not a default comes from."""

    settings: Settings
    sources: dict[str, str]
    """Dotted key and its source: a file with its line, or a variable."""


def load_config(
    home: Home, environ: Mapping[str, str] | None = None, *, project: Path | None = None
) -> Settings:
    """The settings in force. Raises InvalidConfig, naming file, line, column and field."""
    return read_config(home, environ, project=project).settings


def read_config(
    home: Home, environ: Mapping[str, str] | None = None, *, project: Path | None = None
) -> Configured:
    """The settings in force and their sources. Raises InvalidConfig, naming file, line, column and field."""
    environ = os.environ if environ is None else environ
    settings, sources = _read(home.config, Settings)
    if environ.get("HOLDFAST_POLICY"):
        settings = msgspec.structs.replace(settings, policy=environ["HOLDFAST_POLICY"])
        sources["policy"] = "$HOLDFAST_POLICY"
    if environ.get("HOLDFAST_MODEL"):
        # Models read it themselves; it is told here so that a person sees what is in force.
        settings = msgspec.structs.replace(settings, model=environ["HOLDFAST_MODEL"])
        sources["model"] = "$HOLDFAST_MODEL"
    if project is not None:
        settings = _narrowed(settings, sources, project / PROJECT_CONFIG)
    return Configured(settings=settings, sources=sources)


def _narrowed(settings: Settings, sources: dict[str, str], path: Path) -> Settings:
    narrower, places = _read(path, ProjectSettings)
    budget = settings.budget.narrowed(narrower.budget)
    for dimension in DIMENSIONS:
        if getattr(settings.budget, dimension) != getattr(budget, dimension):
            sources[f"budget.{dimension}"] = places[f"budget.{dimension}"]
    return msgspec.structs.replace(settings, budget=budget)


def check_config(text: str, path: Path) -> None:
    """Make sure that a text would be understood as the configuration in this file. Raises InvalidConfig."""
    _understood(text, path, Settings)


def _read(path: Path, kind: type[Kind]) -> tuple[Kind, dict[str, str]]:
    if path.exists() and not path.is_file():
        raise InvalidConfig(f"{path}: it is no plain file", hint="move it away")
    try:
        text = path.read_text(encoding="utf-8-sig") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: {error}", hint="fix it, or move the file away") from error
    return _understood(text, path, kind)


def _understood(text: str, path: Path, kind: type[Kind]) -> tuple[Kind, dict[str, str]]:
    try:
        table = _with_budget_fields(parse(text, str(path)), kind)
    except InvalidInput as error:
        raise InvalidConfig(f"{path}: {error}", hint=error.hint) from error
    _check_known(table, kind, path, text)
    try:
        settings = msgspec.convert(_over_defaults(table, kind), kind)
        if key := _out_of_bounds(table):
            raise InvalidInput(f"{key} has to be 0 or more")
    except (msgspec.ValidationError, InvalidInput) as error:
        what, _, key = str(error).partition(" - at `$.")
        place = _stands(path, text, key.rstrip("`") or _out_of_bounds(table))
        raise InvalidConfig(f"{place}: {what}", hint=_HINT) from error
    return settings, {key: _stands(path, text, key) for key in _keys(table)}


def _with_budget_fields(table: Mapping[str, object], kind: type[Value]) -> dict[str, object]:
    """The table with budgets under their field names: `usd` and `time` are accepted, and quantities such as "5m"."""
    named = dict(table)
    for field in msgspec.structs.fields(kind):
        given = table.get(field.name)
        if field.type is not Limits or not isinstance(given, dict):
            continue
        limits: dict[str, object] = {}
        for word, value in given.items():
            known = next((each for each in BUDGET_DIMENSIONS if word in (each.word, *each.aliases)), None)
            name = word if known is None else known.field
            if name in limits:
                raise InvalidInput(f"{field.name}.{word} is given twice", hint="give each dimension once")
            limits[name] = known.parse(value) if known is not None and isinstance(value, str) else value
        named[field.name] = limits
    return named


def written_key(text: str, key: str) -> str:
    """The key as a file spells it: `budget.usd` for `budget.cost_usd` where the file uses that word."""
    table, _, name = key.rpartition(".")
    if name in DIMENSIONS:
        dimension = budget_dimension(name)
        for word in (name, dimension.word, *dimension.aliases):
            if place_of(text, f"{table}.{word}"):
                return f"{table}.{word}"
    return key


def _over_defaults(table: Mapping[str, object], kind: type[Value]) -> dict[str, object]:
    """The table with what it leaves out of a table below filled in: to set one limit must not lift the others."""
    filled = dict(table)
    for field in msgspec.structs.fields(kind):
        given = table.get(field.name)
        if isinstance(given, dict) and isinstance(field.default, Value):
            filled[field.name] = {**msgspec.to_builtins(field.default), **given}
    return filled


def _check_known(
    table: Mapping[str, object], kind: type[Any], path: Path, text: str, above: str = ""
) -> None:
    """Misspelt fields are an error at any depth: one that is silently ignored is a limit that does not hold."""
    known = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for name, value in table.items():
        if name not in known:
            place = _stands(path, text, f"{above}{name}")
            hint = _PROJECT_HINT if kind is ProjectSettings else _near(name, known)
            raise InvalidConfig(f"{place}: there is no field {above + name!r}", hint=hint)
        if isinstance(value, dict) and isinstance(known[name], type) and issubclass(known[name], Value):
            _check_known(value, known[name], path, text, f"{above}{name}.")


def _near(name: str, known: Mapping[str, object]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}? {_HINT}" if close else _HINT


def _stands(path: Path, text: str, key: str) -> str:
    place = place_of(text, written_key(text, key))
    return f"{path}:{place.line}:{place.column}" if place else str(path)


def _out_of_bounds(table: Mapping[str, object]) -> str:
    """The key of a number that is none to count with: what a limit complains of without knowing where it stands."""
    for key in _keys(table):
        value: object = table
        for name in key.split("."):
            value = value[name] if isinstance(value, dict) else None
        if isinstance(value, int | float) and not value >= 0:
            return key
    return ""


def _keys(table: Mapping[str, object], above: str = "") -> list[str]:
    found = []
    for name, value in table.items():
        found += _keys(value, f"{above}{name}.") if isinstance(value, dict) else [f"{above}{name}"]
    return found
