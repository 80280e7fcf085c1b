"""YAML with places: every error names line and column, and what was expected there.

Anchors, tags of one's own, repeated keys and other surprises of YAML are refused; a policy is to read as it is written.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, TypeVar

import yaml

from holdfast.core import Json
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.plain_yaml import YamlError, parse_plain_yaml

MAX_CHARACTERS = 16 << 20
_KINDS = {"str": "text", "bool": "true or false", "int": "a number", "float": "a number", "null": "nothing"}
_Result = TypeVar("_Result")


class Field(NamedTuple):
    """A value in a mapping, with its key."""

    key: str
    key_node: "Node"
    node: "Node"


class Node:
    """One value of a document, in its place."""

    def __init__(self, raw: yaml.Node, source: str) -> None:
        self._raw = raw
        self.source = source
        self.line: int = raw.start_mark.line + 1
        self.column: int = raw.start_mark.column + 1

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Say what is wrong here."""
        raise InvalidPolicy(message, source=self.source, line=self.line, column=self.column, hint=hint)

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.source}:{self.line}"

    @property
    def kind(self) -> str:
        """What stands here, in words."""
        if isinstance(self._raw, yaml.MappingNode):
            return "a mapping"
        if isinstance(self._raw, yaml.SequenceNode):
            return "a list"
        return _KINDS.get(self._raw.tag.rpartition(":")[2], f"a value of kind {self._raw.tag!r}")

    def text(self) -> str:
        """The text that stands here."""
        if not isinstance(self._raw, yaml.ScalarNode):
            self.fail(f"expected text, found {self.kind}")
        if self._raw.tag != "tag:yaml.org,2002:str":
            self.fail(f"expected text, found {self.kind}", hint="quote it to make it text")
        return str(self._raw.value)

    def truth(self) -> bool:
        """The truth value that stands here."""
        value = self.json()
        return value if isinstance(value, bool) else self.fail(f"expected true or false, found {self.kind}")

    def number(self) -> float:
        """The number that stands here."""
        value = self.json()
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.fail(f"expected a number, found {self.kind}")
        return value

    def items(self) -> "Iterator[Node]":
        """The elements of a list; a single value counts as a list of one."""
        if isinstance(self._raw, yaml.SequenceNode):
            self._check_untagged("seq")
            for raw in self._raw.value:
                yield Node(raw, self.source)
        elif isinstance(self._raw, yaml.MappingNode):
            self.fail("expected a list, found a mapping")
        else:
            yield self

    def fields(self) -> "dict[str, Field]":
        """The fields of a mapping."""
        if not isinstance(self._raw, yaml.MappingNode):
            self.fail(f"expected a mapping, found {self.kind}")
        self._check_untagged("map")
        found: dict[str, Field] = {}
        for raw_key, raw_value in self._raw.value:
            key = Node(raw_key, self.source)
            name = key.text()
            if name in found:
                key.fail(f"{name!r} stands here a second time")
            found[name] = Field(name, key, Node(raw_value, self.source))
        return found

    def json(self) -> Json:
        """The plain value that stands here."""
        if isinstance(self._raw, yaml.MappingNode):
            return {key: field.node.json() for key, field in self.fields().items()}
        if isinstance(self._raw, yaml.SequenceNode):
            return [item.json() for item in self.items()]
        tag = self._raw.tag.rpartition(":")[2]
        if tag not in _KINDS:
            self.fail(f"expected text, a number, true, false or null, found {self.kind}", hint="quote it")
        try:
            value = _SCALARS.construct_object(self._raw)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError
            return value  # type: ignore[no-any-return]
        except (yaml.YAMLError, ValueError):
            self.fail(f"{self._raw.value!r} cannot be read as {_KINDS[tag]}", hint="quote it to make it text")

    def choice(self, choices: tuple[str, ...], what: str) -> str:
        """One of some words."""
        word = self.text()
        if word not in choices:
            self.fail(f"{word!r} is no {what}; expected one of {', '.join(choices)}")
        return word

    def each(self, read: "Callable[[Node], _Result]") -> tuple[_Result, ...]:
        """Every element, read the same way."""
        return tuple(read(item) for item in self.items())

    def some(self, read: "Callable[[Node], _Result]") -> tuple[_Result, ...]:
        """Every element, read the same way; at least one. An empty test holds for everything or for nothing, by chance."""
        return self.each(read) or self.fail("expected at least one; leave the field out where none is meant")

    def name(self) -> str:
        """A text that something can be called by."""
        return self.text() if self.text().strip() else self.fail("expected a name, found an empty text")

    def _check_untagged(self, kind: str) -> None:
        if self._raw.tag != f"tag:yaml.org,2002:{kind}":
            self.fail(f"expected no tag, found {self._raw.tag!r}")


def read_nodes(text: str, source: str) -> Node:
    """The document in a text. Raises InvalidPolicy."""
    try:
        return Node(parse_plain_yaml(text, max_characters=MAX_CHARACTERS), source)
    except YamlError as error:
        problem = "is empty; expected a policy" if error.problem == "is empty" else error.problem
        raise InvalidPolicy(problem, source=source, line=error.line, column=error.column) from None


def only(fields: dict[str, Field], known: tuple[str, ...], what: str) -> None:
    """Refuse fields that nobody reads: a misspelt condition must not widen a rule."""
    for key, field in fields.items():
        if key not in known:
            field.key_node.fail(f"{what} has no field {key!r}; expected one of {', '.join(known)}")


_SCALARS = yaml.SafeLoader("")
