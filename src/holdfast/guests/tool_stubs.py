"""Renders tools as typed Python stubs: one object per group, one method per tool. A tool without a group is a function.

The model reads the same text that the type checker enforces. A name that is not a Python identifier (`read-file`, a parameter
called `class`) gets the nearest one. Only `parameters` and `python_name` know how, and the engines map names back through them.
"""

import builtins
import json
import keyword
import re
from collections.abc import Iterable
from itertools import groupby

from holdfast.core import Json, JsonObject, Tool, Value

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_BUILTINS = frozenset(dir(builtins))
_MAX_CHOICES = 20


class Parameter(Value):
    """One parameter of a tool: its name in Python, its own name, and its schema."""

    python: str
    name: str
    schema: JsonObject
    is_required: bool


def python_name(name: str) -> str:
    """The Python identifier for a name."""
    identifier = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if identifier[0].isdigit() or keyword.iskeyword(identifier):
        identifier = f"{identifier}_" if keyword.iskeyword(identifier) else f"_{identifier}"
    return identifier


def class_name(group: str) -> str:
    """The stub class of a group: `filesystem` -> `FilesystemTools`."""
    words = re.split(r"[\W_]+", group, flags=re.ASCII)
    return python_name("".join(word[:1].upper() + word[1:] for word in words if word) + "Tools")


def call_name(tool: Tool) -> str:
    """What Python code calls a tool: `group.verb`, or its name alone."""
    return f"{python_name(tool.group)}.{python_name(tool.verb)}" if tool.verb else python_name(tool.name)


def parameters(tool: Tool) -> tuple[Parameter, ...]:
    """The parameters of a tool in call order: required ones first, otherwise in the order of the schema."""
    properties = _object(tool.parameters.get("properties"))
    required = _strings(tool.parameters.get("required"))
    taken = {"self"}
    found = []
    for name, schema in properties.items():
        python = python_name(name)
        while python in taken:
            python += "_"
        taken.add(python)
        is_required = name in required
        found.append(Parameter(python=python, name=name, schema=_object(schema), is_required=is_required))
    return tuple(sorted(found, key=lambda parameter: not parameter.is_required))


def describe_tool(tool: Tool) -> Json:
    """A tool with the names that its stubs have, for an interpreter in another process."""
    return {
        "operation": tool.name,
        "group": python_name(tool.group),
        "verb": tool.verb and python_name(tool.verb),
        "parameters": [[parameter.python, parameter.name] for parameter in parameters(tool)],
        "description": tool.description,
    }


def render_stubs(tools: Iterable[Tool]) -> str:
    """Typed Python stubs of tools, grouped by server and sorted by name."""
    ordered = sorted(tools, key=lambda tool: (python_name(tool.group), tool.verb, tool.name))
    blocks = ["from typing import Any, Literal\n"]
    for group, members in groupby(ordered, key=lambda tool: python_name(tool.group)):
        listed = list(members)
        methods = [tool for tool in listed if tool.verb]
        blocks += [f"{_function(tool)}\n" for tool in listed if not tool.verb]
        if methods:
            blocks.append(f"{_class(group, methods)}\n{group}: {class_name(group)}\n")
    return "\n".join(blocks)


def annotation(schema: Json) -> str:
    """The Python type of a JSON schema; `Any` if Python has no type for it."""
    if not isinstance(schema, dict):
        return "Any"
    choices = schema.get("enum")
    if isinstance(choices, list) and 0 < len(choices) <= _MAX_CHOICES and all(map(_is_literal, choices)):
        return f"Literal[{', '.join(repr(choice) for choice in choices)}]"
    for key in ("anyOf", "oneOf"):
        options = schema.get(key)
        if isinstance(options, list) and options:
            return _union(annotation(option) for option in options)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(annotation({**schema, "type": each}) for each in kind)
    match kind:
        case "array":
            return f"list[{annotation(schema.get('items'))}]"
        case "object":
            return f"dict[str, {annotation(schema.get('additionalProperties'))}]"
        case str():
            return _SCALARS.get(kind, "Any")
        case _:
            return "Any"


def _class(group: str, tools: list[Tool]) -> str:
    hidden = {python_name(tool.verb) for tool in tools} & _BUILTINS
    methods = (
        _definition(python_name(tool.verb), tool, first=["self"], hidden=hidden, indent="    ")
        for tool in tools
    )
    return "\n".join([f"class {class_name(group)}:", *methods])


def _function(tool: Tool) -> str:
    return _definition(python_name(tool.name), tool, first=[], hidden=set(), indent="")


def _definition(name: str, tool: Tool, *, first: list[str], hidden: set[str], indent: str) -> str:
    arguments = first + [
        f"{each.python}: {_annotation_unless_hidden(each.schema, hidden)}{'' if each.is_required else ' = ...'}"
        for each in parameters(tool)
    ]
    head = f"{indent}def {name}({', '.join(arguments)}) -> {_annotation_unless_hidden(tool.returns, hidden)}:"
    description = " ".join(tool.description.split())
    if not description:
        return f"{head} ..."
    return f"{head}\n{indent}    {_docstring(description)}\n{indent}    ..."


def _annotation_unless_hidden(schema: Json, hidden: set[str]) -> str:
    """The annotation, or `Any` if a method of the class (`list`, `dict`) hides a type that it uses."""
    text = annotation(schema)
    return "Any" if hidden & set(re.findall(r"\w+", text)) else text


def _docstring(text: str) -> str:
    """A string literal of any text. A server's description cannot close it and continue as code."""
    is_simple = text.isprintable() and not set(text) & {'"', "\\"}
    return f'"""{text}"""' if is_simple else json.dumps(text)


def _union(options: Iterable[str]) -> str:
    distinct = list(dict.fromkeys(options))
    return "Any" if "Any" in distinct else " | ".join(distinct)


def _is_literal(choice: Json) -> bool:
    return choice is None or isinstance(choice, (str, int, bool))


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _strings(value: Json) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
