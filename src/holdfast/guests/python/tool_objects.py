"""What `group.verb(...)` in guest code means: which tool, with which arguments.

A group is an object without anything in it, known to the interpreter by an id that is derived from the group's name; so
a call on it comes out of a worker in any process, of any restored snapshot, and still names its tool.
"""

import uuid
from collections.abc import Callable
from typing import Any

import pydantic_monty as monty

from holdfast.core import Json, JsonObject, Tool, pluralize
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
        """What each tool calls its parameters, by what Python calls them, in their order."""
        self._groups = {_object_id(group): group for group, verb in self._tools if verb}

    @property
    def groups(self) -> frozenset[str]:
        """The names that stand for groups."""
        return frozenset(self._groups.values())

    def value(self, object_id: uuid.UUID | None, name: str) -> Any:
        """What the interpreter binds to a name, or to a name of a group; None where there is no such tool.

        A tool that is not called at once becomes a function, whose calls carry the name it is given here.
        """
        if object_id is None and name in self.groups:
            return self._group_object(name)
        tool_name = name if object_id is None else f"{self._groups.get(object_id)}.{name}"
        return _stand_in(tool_name) if self.tool(None, tool_name) else None

    def tool(self, object_id: uuid.UUID | None, name: str) -> Tool | None:
        """The tool that a call means, None where there is no such tool."""
        if object_id is not None:
            return self._tools.get((self._groups.get(object_id, ""), name))
        group, _, verb = name.partition(".")
        return self._tools.get((group, verb))

    def bind(self, tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonObject:
        """The arguments of a call under the tool's own names. Raises TypeError as Python would."""
        if tool.name not in self._parameters:
            known = parameters(tool)
            self._parameters[tool.name] = {parameter.python: parameter.name for parameter in known}
        return _bound(tool, self._parameters[tool.name], args, kwargs)

    def _group_object(self, group: str) -> monty.ClassInstance:
        kind = type(group, (), {})
        class_type = monty.ClassType(kind, id=uuid.uuid5(_NAMESPACE, f"class {group}"))
        return monty.ClassInstance(kind(), id=_object_id(group), class_type=class_type)


def _bound(tool: Tool, names: dict[str, str], args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonObject:
    if len(args) > len(names):
        raise TypeError(f"{tool.name}() takes {pluralize(len(names), 'argument')} but was given {len(args)}")
    given = dict(zip(names.values(), args, strict=False))
    for keyword, value in kwargs.items():
        # A tool may take more than its schema lists; the gate holds arguments against the schema.
        name = names.get(keyword, keyword)
        if name in given:
            raise TypeError(f"{tool.name}() got multiple values for argument {keyword!r}")
        given[name] = value
    together = JsonConverter(is_strict=True)
    return {name: _argument(tool, name, value, together) for name, value in given.items()}


def _argument(tool: Tool, name: str, value: Any, together: JsonConverter) -> Json:
    try:
        return together.convert(value)
    except NotPlain as error:
        raise TypeError(f"{tool.name}() argument {name!r} must be plain data: {error}") from None


def _stand_in(name: str) -> Callable[[], None]:
    def never_called() -> None:
        raise AssertionError("the interpreter hands calls out; it never makes them")

    never_called.__name__ = never_called.__qualname__ = name
    return never_called


def _object_id(group: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, group)
