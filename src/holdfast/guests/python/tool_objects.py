"""Resolves `group.verb(...)` in guest code to a tool and its arguments.

The interpreter knows a group as an empty object whose id is derived from the group's name. A call on it therefore names its tool
in any process and in any restored snapshot.
"""

import uuid
from collections.abc import Callable
from typing import Any

import pydantic_monty as monty

from holdfast.core import Json, JsonObject, Tool, pluralize
from holdfast.guests.python.host_calls import GuestException
from holdfast.guests.python.json_values import JsonConverter, NotPlain
from holdfast.guests.tool_stubs import parameters, python_name

_NAMESPACE = uuid.UUID("6f2c1f0a-3c67-5f5e-9d0a-7d1f5a0b9c11")


class ToolObjects:
    """The tools of one run, by the names that Python code uses for them."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {
            (python_name(tool.group), tool.verb and python_name(tool.verb)): tool for tool in tools
        }
        self._parameters: dict[str, dict[str, str]] = {}
        """For each tool: its own parameter names by their Python names, in call order."""
        self._groups = {_object_id(group): group for group, verb in self._tools if verb}

    @property
    def groups(self) -> frozenset[str]:
        """The names of the groups, and of the tools that are in none."""
        return frozenset(group for group, _ in self._tools)

    def look_up(self, object_id: uuid.UUID | None, name: str) -> Any:
        """What the interpreter binds to a name, or to an attribute of a group; None if there is no such tool.

        A tool that is not called at once becomes a function. Calls of that function carry the name it gets here.
        """
        if object_id is None and name in self._groups.values():
            return _group_object(name)
        tool_name = name if object_id is None else f"{self._groups.get(object_id)}.{name}"
        return placeholder(tool_name) if self._tool(None, tool_name) else None

    def bind(
        self, object_id: uuid.UUID | None, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Tool, JsonObject]:
        """The tool that a call means, and the arguments under the tool's own names. Raises GuestException."""
        tool = self._tool(object_id, name)
        if tool is None:
            kind = "NameError" if object_id is None else "AttributeError"
            raise GuestException(kind, f"there is no tool {name!r}")
        if tool.name not in self._parameters:
            self._parameters[tool.name] = {each.python: each.name for each in parameters(tool)}
        return tool, _bind(tool, self._parameters[tool.name], args, kwargs)

    def _tool(self, object_id: uuid.UUID | None, name: str) -> Tool | None:
        if object_id is not None:
            return self._tools.get((self._groups.get(object_id, ""), name))
        group, _, verb = name.partition(".")
        return self._tools.get((group, verb))


def _bind(tool: Tool, names: dict[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonObject:
    if len(args) > len(names):
        expected = pluralize(len(names), "argument")
        raise GuestException("TypeError", f"{tool.name}() takes {expected} but was given {len(args)}")
    given = dict(zip(names.values(), args, strict=False))
    for keyword, value in kwargs.items():
        # A tool may accept more than its schema lists; the gate checks arguments against the schema.
        name = names.get(keyword, keyword)
        if name in given:
            raise GuestException("TypeError", f"{tool.name}() got multiple values for argument {keyword!r}")
        given[name] = value
    converter = JsonConverter(is_strict=True)
    return {name: _convert(tool, name, value, converter) for name, value in given.items()}


def _convert(tool: Tool, name: str, value: Any, converter: JsonConverter) -> Json:
    try:
        return converter.convert(value)
    except NotPlain as error:
        message = f"{tool.name}() argument {name!r} must be plain data: {error}"
        raise GuestException("TypeError", message) from None


def _group_object(group: str) -> monty.ClassInstance:
    kind = type(group, (), {})
    class_type = monty.ClassType(kind, id=uuid.uuid5(_NAMESPACE, f"class {group}"))
    return monty.ClassInstance(kind(), id=_object_id(group), class_type=class_type)


def placeholder(name: str) -> Callable[[], None]:
    """The function that the interpreter binds to a name whose calls go to the host."""

    def never_called() -> None:
        raise AssertionError("the interpreter passes calls to the host; it never makes them itself")

    never_called.__name__ = never_called.__qualname__ = name
    return never_called


def _object_id(group: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, group)
