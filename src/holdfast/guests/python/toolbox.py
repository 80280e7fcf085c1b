"""What `group.verb(...)` in guest code means: which tool, with which arguments.

A group is an object without anything in it, known to the interpreter by an id that is derived from the group's name; so
a call on it comes out of a worker in any process, of any restored snapshot, and still names its tool.
"""

import uuid
from collections.abc import Callable
from typing import Any

import pydantic_monty as monty

from holdfast.core import Json, JsonObject, Tool
from holdfast.guests.python.plain import NotPlain, plain
from holdfast.guests.stubs import parameters, python_name

_NAMESPACE = uuid.UUID("6f2c1f0a-3c67-5f5e-9d0a-7d1f5a0b9c11")


class Toolbox:
    """The tools of one run, by the names that Python code uses for them."""

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self._tools = {(python_name(tool.group), python_name(tool.verb)): tool for tool in tools}
        self._groups = {_object_id(group): group for group, _ in self._tools}

    @property
    def groups(self) -> frozenset[str]:
        """The names that stand for groups."""
        return frozenset(self._groups.values())

    def group_object(self, group: str) -> monty.ClassInstance:
        """What the interpreter binds to a group's name."""
        kind = type(group, (), {})
        class_type = monty.ClassType(kind, id=uuid.uuid5(_NAMESPACE, f"class {group}"))
        return monty.ClassInstance(kind(), id=_object_id(group), class_type=class_type)

    def method(self, object_id: uuid.UUID, verb: str) -> Callable[..., None] | None:
        """What the interpreter binds to `group.verb` where it is not called at once: its calls carry that name."""
        group = self._groups.get(object_id)
        if (group, verb) not in self._tools:
            return None

        def stand_in() -> None:
            raise AssertionError("the interpreter hands calls out; it never makes them")

        stand_in.__name__ = stand_in.__qualname__ = f"{group}.{verb}"
        return stand_in

    def tool(self, object_id: uuid.UUID | None, name: str) -> Tool | None:
        """The tool that a call means, None where there is no such tool."""
        if object_id is not None:
            return self._tools.get((self._groups.get(object_id, ""), name))
        group, _, verb = name.partition(".")
        return self._tools.get((group, verb))


def bind(tool: Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JsonObject:
    """The arguments of a call under the tool's own names. Raises TypeError as Python would."""
    known = parameters(tool)
    if len(args) > len(known):
        raise TypeError(f"{tool.name}() takes {len(known)} arguments but {len(args)} were given")
    names = {parameter.python: parameter.name for parameter in known}
    given = {parameter.name: value for parameter, value in zip(known, args, strict=False)}
    for keyword, value in kwargs.items():
        # A tool may take more than its schema lists; the gate holds arguments against the schema.
        name = names.get(keyword, keyword)
        if name in given:
            raise TypeError(f"{tool.name}() got multiple values for argument {keyword!r}")
        given[name] = value
    return {name: _argument(tool, name, value) for name, value in given.items()}


def _argument(tool: Tool, name: str, value: Any) -> Json:
    try:
        return plain(value, is_strict=True)
    except NotPlain as error:
        raise TypeError(f"{tool.name}() argument {name!r} must be plain data: {error}") from None


def _object_id(group: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, group)
