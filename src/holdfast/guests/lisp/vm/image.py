"""Images: the state of a program as JSON, with values, closures and their frames, and code as its syntax tree.

An image is a table of objects that refer to each other by number, so it preserves sharing, cycles and any depth. It can
contain only the classes listed here, and reading it executes nothing. Procedures of the language are stored by name.
"""

import base64
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
from holdfast.guests.lisp.errors import LispError, SourcePlace
from holdfast.guests.lisp.lang.trampoline import garbage_collection_paused
from holdfast.guests.lisp.long_text import LongText
from holdfast.guests.lisp.vm.environment import Cell, Closure, Level, Root, Template
from holdfast.guests.lisp.vm.limits import ScopedBudget
from holdfast.guests.lisp.vm.registers import Control
from holdfast.guests.lisp.vm.state import Artifact, ArtifactStore, Context, Fact, FactStore, Tracker

FORMAT = 1
MAX_KEY_PARTS = 100_000
"""Parts of data that a memo may refer to: its key is computed at each use, without interruption."""
_MAX_INLINE_CHARACTERS = 64
"""Longer text is stored once, as an object, because it may be shared."""

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
    nodes.Application,
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
    ScopedBudget: ("limits", "outer", "depth", "used"),
    Tracker: ("dependencies", "outer", "depth"),
    Context: ("root", "facts", "budget", "tracker"),
    Artifact: ("expression", "dependencies", "value"),
    **{node: tuple(field.name for field in fields(node)) for node in _NODES},
}
_IMAGE_NAMES: dict[type[Any], str] = {ScopedBudget: "Budget", nodes.Application: "Call"}
"""Classes that are stored under another name than their own, because images of earlier versions contain it."""
_CLASSES = {_IMAGE_NAMES.get(cls, cls.__name__): cls for cls in _FIELDS}


def image_name(cls: type[Any]) -> str:
    """The name of a class in an image."""
    return _IMAGE_NAMES.get(cls, cls.__name__)


class BadImage(Exception):
    """The image is malformed, or refers to something that does not exist. Never leaves the package."""


def encode_image(root: object, *, natives: dict[str, Template]) -> bytes:
    """Encode an object and everything reachable from it."""
    with garbage_collection_paused():
        return _encoded(root, natives)


def _encoded(root: object, natives: dict[str, Template]) -> bytes:
    # A separate function, so that the writer is freed before garbage collection resumes: it has a list for each object.
    writer = _Writer({id(template): name for name, template in natives.items()}, is_key=False)
    return msgspec.json.encode({"format": FORMAT, "root": writer.write(root), "objects": writer.objects})


def decode_image(data: bytes, *, library: Root, natives: dict[str, Template]) -> Any:
    """Decode an image. Raises BadImage. Any: the caller knows what it encoded."""
    try:
        with garbage_collection_paused():
            image = msgspec.json.decode(data)
            if image["format"] != FORMAT:
                raise BadImage(f"the image has format {image['format']}, this version reads {FORMAT}")
            return _Reader(image["objects"], library, natives).read(image["root"])
    except (msgspec.DecodeError, KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise BadImage(f"the image cannot be read: {type(error).__name__}") from error


def content_key(root: object) -> tuple[str, int]:
    """A digest that is equal for equal structures, and the number of parts. Source places and top levels do not count."""
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
        self._pending: list[tuple[int, object]] = []
        self._alive: list[object] = []
        """Keeps numbered objects alive, so that no other object gets the same id."""

    def write(self, root: object) -> Json:
        encoded = self._value(root)
        while self._pending:
            number, item = self._pending.pop()
            self.objects[number] = self._object(item)
        return encoded

    def _value(self, item: Any) -> Json:
        """An inline value, or the number of an object."""
        if item is None or isinstance(item, (bool, int, float)):
            return item
        if isinstance(item, str):
            return item if len(item) <= _MAX_INLINE_CHARACTERS else [self._text(item)]
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
        if isinstance(item, SourcePlace):
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
            self._pending.append((number, item))
        return number

    def _text(self, text: str) -> int:
        """Strings are numbered by content, so equal strings are stored once."""
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
        if isinstance(item, LongText):
            return ["LongText", item.content]  # type: ignore[list-item]  # as base64, without another copy
        if isinstance(item, Root):
            return ["Root", self._value(item.defined()), self._value(item.macros)]
        if isinstance(item, ArtifactStore):
            counts = (item.capacity, item.hits, item.misses, item.evictions)
            return ["ArtifactStore", self._value(dict(item.entries())), *counts]
        return [image_name(type(item)), *(self._value(getattr(item, name)) for name in _FIELDS[type(item)])]


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
        for template, parts in templates:  # last, because they read their node
            node, scope, root = map(self.read, parts)
            template.__init__(node, scope, root)
        for shell, (kind, *parts) in zip(self._objects, objects, strict=True):
            if kind == "ArtifactStore":
                for key, artifact in self.read(parts[0]).items():
                    shell.put(key, artifact)

    def _shell(self, kind: str, *parts: Any) -> Any:
        if kind == "str":
            return str(parts[0])
        if kind == "LongText":
            return LongText(base64.b64decode(parts[0]))
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
        if kind in ("str", "LongText"):
            pass  # complete already
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
        # Read from the encoded tables, because the decoded dicts may not be filled yet.
        for target, part in zip(("cells", "macros"), parts, strict=True):
            _, *entries = self._encoded[part[0]]
            for name, value in zip(entries[::2], entries[1::2], strict=True):
                key, decoded = self.read(name), self.read(value)
                getattr(root, target)[key] = Cell(key, decoded) if target == "cells" else decoded

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
                return SourcePlace(line, column)
            case ["v", names, arguments]:
                return Level(tuple(names), arguments)
            case ["t", *items]:
                return tuple(map(self.read, items))
            case ["r"]:
                return self._library
            case ["n", name]:
                return self._natives[name]
        raise BadImage(f"the image contains an unknown kind of value: {encoded[:1]!r}")
