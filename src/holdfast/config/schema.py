"""The fields that a configuration may have, read off the classes that hold them: key, kind, default and what it is for."""

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


class Field(NamedTuple):
    """One field."""

    key: str
    """Dotted, as in `budget.tokens`."""
    kind: str
    """In words: `text`, `number`, `yes or no`, or the values that it may have."""
    type: Any
    """As annotated; Any because it may be a union."""
    default: object
    what: str
    """From the source; empty where the name says it all."""


@cache
def fields(kind: type[Value] = Settings, above: str = "") -> tuple[Field, ...]:
    """Every field: first those of the top, then those of each table, by their dotted keys."""
    said = _said(kind)
    found: list[Field] = []
    below: list[Field] = []
    for field in msgspec.structs.fields(kind):
        key = f"{above}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, Value):
            below += [
                inner._replace(default=getattr(field.default, inner.key.rpartition(".")[2]))
                for inner in fields(field.type, f"{key}.")
            ]
        else:
            found.append(Field(key, _kind(field.type), field.type, field.default, said.get(field.name, "")))
    return (*found, *below)


def tables(kind: type[Value] = Settings) -> dict[str, str]:
    """The tables there are and what each is for."""
    names = {field.key.rpartition(".")[0] for field in fields(kind)}
    return {name: what for name, what in _said(kind).items() if name in names}


def _said(kind: type[Value]) -> dict[str, str]:
    """The strings that stand below fields in the source, which Python itself throws away."""
    [body] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    said: dict[str, str] = {}
    for field, below in zip(body.body, body.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                said[name] = " ".join(text.split())
            case _:
                pass
    return said


def _kind(annotation: Any) -> str:
    options = [each for each in get_args(annotation) if each is not type(None)]
    if get_origin(annotation) is Literal:
        return " or ".join(str(option) for option in options)
    if get_origin(annotation) in (Union, types.UnionType):
        return " or ".join(_kind(option) for option in options)
    return {bool: "true or false", str: "text", int: "whole number", float: "number", Decimal: "number"}.get(
        annotation, str(annotation)
    )
