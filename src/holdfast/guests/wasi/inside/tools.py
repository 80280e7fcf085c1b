"""Tools as the code sees them: `group.verb(...)`, each call one step out to the host."""

import builtins
import datetime
import json
import pathlib
from collections.abc import Callable
from typing import Any

from .runner import LimitReached

Door = Callable[[str], str]

_STANDS_FOR = {"PathRefused": "PermissionError", "QuotaExceeded": "OSError", "ToolTimeout": "TimeoutError"}
"""Errors of the host under the names that Python code knows."""


class Verb:
    """One tool. Positional arguments take the names of its parameters in their order."""

    def __init__(self, told: dict[str, Any], door: Door) -> None:
        self.__name__ = self._operation = told["operation"]
        self.__doc__ = told["description"]
        self._parameters: dict[str, str] = dict(told["parameters"])
        """What the tool calls each parameter, by what Python calls it."""
        self._door = door

    def __call__(self, *values: object, **named: object) -> Any:
        if len(values) > len(self._parameters):
            raise TypeError(
                f"{self._operation}() takes {len(self._parameters)} arguments but {len(values)} were given"
            )
        arguments = dict(zip(self._parameters.values(), values, strict=False))
        for python, value in named.items():
            # A tool may take more than its schema lists; the gate holds arguments against the schema.
            name = self._parameters.get(python, python)
            if name in arguments:
                raise TypeError(f"{self._operation}() got multiple values for argument {python!r}")
            arguments[name] = value
        request = {"operation": self._operation, "arguments": arguments}
        # Not in ASCII: text that UTF-8 cannot say (a lone surrogate) is then an error here, where it is caused.
        told = json.dumps(request, default=_plain, allow_nan=False, ensure_ascii=False)
        told.encode()
        return _settle(json.loads(self._door(told)))

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
    for told in tools:
        if not told["verb"]:
            found[told["group"]] = Verb(told, door)
            continue
        group = found.setdefault(told["group"], Group(told["group"]))
        setattr(group, told["verb"], Verb(told, door))
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
    found = getattr(builtins, _STANDS_FOR.get(name, name), None)
    if isinstance(found, type) and issubclass(found, OSError | ValueError | TypeError | KeyError):
        return ValueError if issubclass(found, UnicodeError) else found
    return RuntimeError


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
