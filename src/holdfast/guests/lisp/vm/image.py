"""Everything a program is, as JSON and back: values, closures with their frames, code as the tree it was compiled from.

An image is a table of objects that name each other by number, so sharing, cycles and any depth are kept. Only the classes
listed here can be in one; nothing in it is ever executed to read it. Procedures of the language are kept by name.
"""

import hashlib
from dataclasses import fields
from typing import Any

import msgspec

import holdfast.guests.lisp.lang.nodes as nodes
from holdfast.core import Json
from holdfast.guests.lisp.data import (
    EMPTY,
    UNBOUND,
    Keyword,
    LispOutcome,
    Operation,
    Pair,
    Primitive,
    Symbol,
)
from holdfast.guests.lisp.errors import LispError, Place
from holdfast.guests.lisp.lang.trampoline import collection_paused
from holdfast.guests.lisp.vm.environment import Cell, Closure, Level, Root, Template
from holdfast.guests.lisp.vm.limits import Budget
from holdfast.guests.lisp.vm.registers import Control
from holdfast.guests.lisp.vm.state import Artifact, ArtifactStore, Context, Fact, FactStore, Tracker

FORMAT = 1
MAX_KEY_PARTS = 100_000
"""Of what a memo refers to: naming it is done at each use, and at once."""
_LONG = 64
"""Text of more characters is an object: many places may share it."""

_NODES: tuple[type[Any], ...] = (
    nodes.Constant,
    nodes.Variable,
    nodes.Builtin,
    nodes.Conditional,
    nodes.Either,
    nodes.Sequence,
    nodes.Definition,
    nodes.Assignment,
    nodes.Lambda,
    nodes.Call,
    nodes.Bindings,
)
_FIELDS: dict[type[Any], tuple[str, ...]] = {
    Pair: ("first", "rest", "place"),
    Closure: ("template", "frame"),
    LispOutcome: ("tag", "fields"),
    Operation: ("name", "operation", "positions"),
    Template: ("node", "scope", "root"),
    Fact: ("expression", "evidence", "value", "asserted_ms"),
    FactStore: ("facts",),
    Budget: ("limits", "outer", "depth", "used"),
    Tracker: ("dependencies", "outer", "depth"),
    Context: ("root", "facts", "budget", "tracker"),
    Artifact: ("expression", "dependencies", "value"),
    **{node: tuple(field.name for field in fields(node)) for node in _NODES},
}
_CLASSES = {cls.__name__: cls for cls in _FIELDS}


class BadImage(Exception):
    """The image is not one of ours, or names what no longer exists. Never leaves the package."""


def encode_image(root: object, *, natives: dict[str, Template]) -> bytes:
    """The JSON of an object and everything that hangs on it."""
    with collection_paused():
        return _encoded(root, natives)


def _encoded(root: object, natives: dict[str, Template]) -> bytes:
    # Apart, so that the writer is gone when the collector looks again: it holds a list for each object.
    writer = _Writer({id(template): name for name, template in natives.items()}, is_key=False)
    return msgspec.json.encode({"format": FORMAT, "root": writer.write(root), "objects": writer.objects})


def decode_image(data: bytes, *, library: Root, natives: dict[str, Template]) -> Any:
    """What was encoded. Raises BadImage. Any: the caller knows what it put in."""
    try:
        with collection_paused():
            image = msgspec.json.decode(data)
            if image["format"] != FORMAT:
                raise BadImage(f"the image has format {image['format']}, this version reads {FORMAT}")
            return _Reader(image["objects"], library, natives).read(image["root"])
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise BadImage(f"the image cannot be read: {type(error).__name__}") from error


def graph_key(root: object) -> tuple[str, int]:
    """A digest that two objects share when they are made alike, and of how many parts. Places and top levels do not count."""
    writer = _Writer({}, is_key=True)
    encoded = [writer.write(root), writer.objects]
    return hashlib.sha256(msgspec.json.encode(encoded)).hexdigest(), len(writer.objects)


class _Writer:
    def __init__(self, natives: dict[int, str], *, is_key: bool) -> None:
        self.objects: list[list[Json]] = []
        self._natives = natives
        self._is_key = is_key
        self._numbers: dict[int, int] = {}
        self._texts: dict[str, int] = {}
        self._waiting: list[tuple[int, object]] = []
        self._alive: list[object] = []
        """Keeps what is numbered from being freed, and its id from being given to another."""

    def write(self, root: object) -> Json:
        encoded = self._value(root)
        while self._waiting:
            number, item = self._waiting.pop()
            self.objects[number] = self._object(item)
        return encoded

    def _value(self, item: Any) -> Json:
        """A value in place, or the number of an object."""
        if item is None or isinstance(item, (bool, int, float)):
            return item
        if isinstance(item, str):
            return item if len(item) <= _LONG else [self._text(item)]
        if isinstance(item, Symbol):
            return ["y", self._value(item.name)]
        if isinstance(item, Keyword):
            return ["k", self._value(item.name)]
        if isinstance(item, (Primitive, Control)):
            return ["b", item.name]
        if item is EMPTY:
            return ["e"]
        if item is UNBOUND:
            return ["u"]
        if isinstance(item, Place):
            return None if self._is_key else ["p", *item]
        if isinstance(item, Level):
            return ["v", list(item.names), item.arguments]
        if isinstance(item, tuple):
            return ["t", *map(self._value, item)]
        if isinstance(item, Root) and (item.base is None or self._is_key):
            return ["r"]
        if isinstance(item, Closure) and item.frame is None and item.template.root.base is None:
            return ["b", item.template.node.name]
        if id(item) in self._natives:
            return ["n", self._natives[id(item)]]
        return [self._number(item)]

    def _number(self, item: object) -> int:
        number = self._numbers.get(id(item))
        if number is None:
            number = self._numbers[id(item)] = self._add([])
            self._alive.append(item)
            self._waiting.append((number, item))
        return number

    def _text(self, text: str) -> int:
        """By content: two strings that are equal are one."""
        number = self._texts.get(text)
        if number is None:
            number = self._texts[text] = self._add(["str", text])
        return number

    def _add(self, encoded: list[Json]) -> int:
        if self._is_key and len(self.objects) >= MAX_KEY_PARTS:
            raise LispError("too-large", f"a memo refers to at most {MAX_KEY_PARTS} parts of data")
        self.objects.append(encoded)
        return len(self.objects) - 1

    def _object(self, item: Any) -> list[Json]:
        if isinstance(item, list):
            return ["list", *map(self._value, item)]
        if isinstance(item, dict):
            return ["dict", *(self._value(part) for entry in item.items() for part in entry)]
        if isinstance(item, Root):
            return ["Root", self._value(item.defined()), self._value(item.macros)]
        if isinstance(item, ArtifactStore):
            counts = (item.capacity, item.hits, item.misses, item.evictions)
            return ["ArtifactStore", self._value(dict(item.entries())), *counts]
        return [type(item).__name__, *(self._value(getattr(item, name)) for name in _FIELDS[type(item)])]


class _Reader:
    def __init__(self, objects: list[list[Any]], library: Root, natives: dict[str, Template]) -> None:
        self._library, self._natives = library, natives
        self._encoded = objects
        self._objects = [self._shell(*encoded) for encoded in objects]
        templates = []
        for shell, (kind, *parts) in zip(self._objects, objects, strict=True):
            if kind == "Template":
                templates.append((shell, parts))
            else:
                self._fill(shell, kind, parts)
        for template, parts in templates:  # last: they look into their node
            node, scope, root = map(self.read, parts)
            template.__init__(node, scope, root)
        for shell, (kind, *parts) in zip(self._objects, objects, strict=True):
            if kind == "ArtifactStore":
                for key, artifact in self.read(parts[0]).items():
                    shell.put(key, artifact)

    def _shell(self, kind: str, *parts: Any) -> Any:
        if kind == "str":
            return str(parts[0])
        if kind == "list":
            return []
        if kind == "dict":
            return {}
        if kind == "Root":
            return Root(self._library)
        if kind == "ArtifactStore":
            return ArtifactStore(0)
        cls = _CLASSES[kind]
        return object.__new__(cls)

    def _fill(self, shell: Any, kind: str, parts: list[Any]) -> None:
        if kind == "str":
            pass  # whole already
        elif kind == "list":
            shell.extend(map(self.read, parts))
        elif kind == "dict":
            shell.update(zip(map(self.read, parts[::2]), map(self.read, parts[1::2]), strict=True))
        elif kind == "ArtifactStore":
            shell.capacity, shell.hits, shell.misses, shell.evictions = parts[1:]
        elif kind == "Root":
            self._fill_root(shell, parts)
        else:
            for name, part in zip(_FIELDS[type(shell)], parts, strict=True):
                object.__setattr__(shell, name, self.read(part))

    def _fill_root(self, root: Root, parts: list[Any]) -> None:
        # Straight from the encoded tables: the dicts themselves may not be filled yet.
        for target, part in zip(("cells", "macros"), parts, strict=True):
            _, *entries = self._encoded[part[0]]
            for name, value in zip(entries[::2], entries[1::2], strict=True):
                known, decoded = self.read(name), self.read(value)
                getattr(root, target)[known] = Cell(known, decoded) if target == "cells" else decoded

    def read(self, encoded: Any) -> Any:
        if not isinstance(encoded, list):
            return encoded
        match encoded:
            case [int(number)]:
                return self._objects[number]
            case ["y", name]:
                return Symbol(self.read(name))
            case ["k", name]:
                return Keyword(self.read(name))
            case ["b", name]:
                return self._library.cells[name].value
            case ["e"]:
                return EMPTY
            case ["u"]:
                return UNBOUND
            case ["p", line, column]:
                return Place(line, column)
            case ["v", names, arguments]:
                return Level(tuple(names), arguments)
            case ["t", *items]:
                return tuple(map(self.read, items))
            case ["r"]:
                return self._library
            case ["n", name]:
                return self._natives[name]
        raise BadImage(f"the image holds an unknown kind of value: {encoded[:1]!r}")
