"""The fields of the configuration, read from the settings classes: key, kind, default and description."""

import ast
import inspect
import textwrap
import types
from decimal import Decimal
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from holdfast.core import Value
from holdfast.session import Settings


class ConfigField(NamedTuple):
    """One field of the configuration."""

    key: str
    """Dotted, as in `budget.tokens`."""
    kind: str
    """In words: `text`, `number`, `true or false`, or the possible values."""
    type: Any
    """The annotation; Any because it may be a union."""
    default: object
    description: str
    """From the source; empty if the name is enough."""


@cache
def fields(kind: type[Value] = Settings, prefix: str = "") -> tuple[ConfigField, ...]:
    """Every field by its dotted key: first the top-level ones, then those of each table."""
    descriptions = _descriptions(kind)
    top: list[ConfigField] = []
    in_tables: list[ConfigField] = []
    for field in msgspec.structs.fields(kind):
        key = f"{prefix}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, Value):
            in_tables += [
                inner._replace(default=getattr(field.default, inner.key.rpartition(".")[2]))
                for inner in fields(field.type, f"{key}.")
            ]
        else:
            top.append(
                ConfigField(
                    key, _kind(field.type), field.type, _default(field), descriptions.get(field.name, "")
                )
            )
    return (*top, *in_tables)


def tables(kind: type[Value] = Settings) -> dict[str, str]:
    """The tables and their descriptions."""
    names = {field.key.rpartition(".")[0] for field in fields(kind)}
    return {name: text for name, text in _descriptions(kind).items() if name in names}


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default is msgspec.NODEFAULT and field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _descriptions(kind: type[Value]) -> dict[str, str]:
    """The docstrings of the fields, read from the source because Python discards them."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    descriptions: dict[str, str] = {}
    for field, next_statement in zip(body.body, body.body[1:], strict=False):
        match field, next_statement:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                descriptions[name] = " ".join(text.split())
            case _:
                pass
    return descriptions


def _kind(annotation: Any) -> str:
    options = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return " or ".join(str(option) for option in options)
    if get_origin(annotation) is dict:
        return "tables"
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_kind(option) for option in options)
    return {bool: "true or false", str: "text", int: "whole number", float: "number", Decimal: "number"}.get(
        annotation, str(annotation)
    )
