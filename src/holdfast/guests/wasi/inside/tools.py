"""Tools as guest code sees them: `group.verb(...)`. Each call goes to the host."""

import builtins
import datetime
import json
import pathlib
from collections.abc import Callable
from typing import Any

from .runner import LimitReached

CallHost = Callable[[str], str]

_RAISED_AS = {"PathRefused": "PermissionError", "QuotaExceeded": "OSError", "ToolTimeout": "TimeoutError"}
"""The Python names for errors of the host."""


class Verb:
    """One tool. Positional arguments are matched to its parameters in order."""

    def __init__(self, tool: dict[str, Any], call_host: CallHost) -> None:
        self.__name__ = self._operation = tool["operation"]
        self.__doc__ = tool["description"]
        self._parameters: dict[str, str] = dict(tool["parameters"])
        """The tool's own names of its parameters, by their Python names."""
        self._door = call_host

    def __call__(self, *values: object, **named: object) -> Any:
        if len(values) > len(self._parameters):
            raise TypeError(
                f"{self._operation}() takes {len(self._parameters)} arguments but {len(values)} were given"
            )
        arguments = dict(zip(self._parameters.values(), values, strict=False))
        for python, value in named.items():
            # A tool may accept more than its schema lists; the gate checks arguments against the schema.
            name = self._parameters.get(python, python)
            if name in arguments:
                raise TypeError(f"{self._operation}() got multiple values for argument {python!r}")
            arguments[name] = value
        request = {"operation": self._operation, "arguments": arguments}
        # Not in ASCII, so that text which UTF-8 cannot encode (a lone surrogate) is an error here, where it is caused.
        text = json.dumps(request, default=_to_json, allow_nan=False, ensure_ascii=False)
        text.encode()
        return _unwrap(json.loads(self._door(text)))

    def __repr__(self) -> str:
        return f"<tool {self._operation}({', '.join(self._parameters)})>"


class Group:
    """The tools of one server."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return f"<tools of {self._name}>"


def bind(tools: list[dict[str, Any]], call_host: CallHost) -> dict[str, Group | Verb]:
    """The objects that the code finds under each name: a group, or a tool without a group."""
    names: dict[str, Group | Verb] = {}
    for tool in tools:
        if not tool["verb"]:
            names[tool["group"]] = Verb(tool, call_host)
            continue
        group = names.setdefault(tool["group"], Group(tool["group"]))
        setattr(group, tool["verb"], Verb(tool, call_host))
    return names


def _unwrap(answer: dict[str, Any]) -> Any:
    """The value of a call. Raises an exception that says why there is none."""
    kind = answer["kind"]
    if kind == "returned":
        return answer.get("value")
    if kind == "refused":
        raise PermissionError(answer["reason"])
    if kind == "limit":
        raise LimitReached(answer["reason"])
    raise _exception(answer["error"])(answer["reason"])


def _exception(name: str) -> type[Exception]:
    """The built-in exception of that name if code may want to catch it, else RuntimeError."""
    found = getattr(builtins, _RAISED_AS.get(name, name), None)
    if isinstance(found, type) and issubclass(found, OSError | ValueError | TypeError | KeyError):
        return ValueError if issubclass(found, UnicodeError) else found
    return RuntimeError


def _to_json(value: object) -> object:
    """Convert paths, times, sets and bytes, which JSON does not have."""
    if isinstance(value, pathlib.PurePath):
        return str(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, bytes | bytearray):
        return value.decode()
    raise TypeError(f"a tool accepts text, numbers, lists and dictionaries, not {type(value).__name__}")
