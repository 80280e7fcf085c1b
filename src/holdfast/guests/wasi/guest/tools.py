"""Tools as the code sees them: `group.verb(...)`, each call one step out to the host."""

import builtins
import datetime
import json
import keyword
import pathlib
import re
from collections.abc import Callable
from typing import Any

from .limits import LimitReached

Door = Callable[[str], str]


class Verb:
    """One tool. Positional arguments take the names of its parameters in their order."""

    def __init__(self, operation: str, parameters: list[str], description: str, door: Door) -> None:
        self.__name__ = operation
        self.__doc__ = description
        self._operation = operation
        self._parameters = parameters
        self._door = door

    def __call__(self, *values: object, **arguments: object) -> Any:
        if len(values) > len(self._parameters):
            raise TypeError(
                f"{self._operation}() takes at most {len(self._parameters)} positional arguments, {len(values)} were given"
            )
        for name, value in zip(self._parameters, values, strict=False):
            if name in arguments:
                raise TypeError(f"{self._operation}() got two values for {name!r}")
            arguments[name] = value
        request = {"operation": self._operation, "arguments": arguments}
        return _settle(json.loads(self._door(json.dumps(request, default=_plain, allow_nan=False))))

    def __repr__(self) -> str:
        return f"<tool {self._operation}({', '.join(self._parameters)})>"


class Group:
    """The tools of one server."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<tools of {self._name}>"


def named(tools: list[dict[str, Any]], door: Door) -> dict[str, Group | Verb]:
    """What the code finds under which name: a group, or a tool that belongs to none."""
    found: dict[str, Group | Verb] = {}
    for tool in tools:
        group, _, verb = tool["name"].partition(".")
        carrier = Verb(tool["name"], tool["parameters"], tool["description"], door)
        if not verb:
            found[_identifier(group)] = carrier
            continue
        holder = found.setdefault(_identifier(group), Group(group))
        setattr(holder, _identifier(verb), carrier)
    return found


def _settle(answer: dict[str, Any]) -> Any:
    """The value of a call that was carried out, or the exception that says why it was not."""
    kind = answer["kind"]
    if kind == "returned":
        return answer.get("value")
    if kind == "refused":
        raise PermissionError(answer["reason"])
    if kind == "limit":
        raise LimitReached(answer["reason"])
    raise _exception(answer["error"])(answer["reason"])


def _exception(name: str) -> type[Exception]:
    """The built-in exception of that name where code may sensibly catch it, else RuntimeError."""
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, OSError | ValueError | TypeError):
        return found
    return RuntimeError


def _identifier(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    if plain[:1].isdigit():
        plain = f"_{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _plain(value: object) -> object:
    """JSON has no paths, times, sets or bytes; the code need not know."""
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, bytes | bytearray):
        return value.decode()
    raise TypeError(f"a tool takes text, numbers, lists and dictionaries, not {type(value).__name__}")
