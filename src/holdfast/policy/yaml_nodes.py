"""YAML nodes with their positions: every error names the line, the column and what was expected there.

Anchors, custom tags and repeated keys are refused, so that a policy means what it appears to say.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, TypeVar

import yaml

from holdfast.core import Json
from holdfast.core.errors import InvalidPolicy
from holdfast.policy.plain_yaml import YamlError, parse_plain_yaml, scalar_value

MAX_CHARACTERS = 16 << 20
_KINDS = {"str": "text", "bool": "true or false", "int": "a number", "float": "a number", "null": "nothing"}
_Result = TypeVar("_Result")


class YamlField(NamedTuple):
    """A value in a mapping, with its key."""

    key: str
    key_node: "YamlNode"
    node: "YamlNode"


class YamlNode:
    """One value of a document, with its position."""

    def __init__(self, raw: yaml.Node, source: str, spent: Counter[str] | None = None) -> None:
        self._raw = raw
        self._spent: Counter[str] = Counter() if spent is None else spent
        self.source = source
        self.line: int = raw.start_mark.line + 1
        self.column: int = raw.start_mark.column + 1

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise InvalidPolicy at this position."""
        raise InvalidPolicy(message, source=self.source, line=self.line, column=self.column, hint=hint)

    def spend(self, what: str, amount: int, most: int) -> None:
        """Add to what all values of the document cost together, and fail here if that is more than the most."""
        self._spent[what] += amount
        if self._spent[what] > most:
            self.fail(f"a policy has at most {most:,} {what}, all rules together")

    @property
    def place(self) -> str:
        """`file:line`."""
        return f"{self.source}:{self.line}"

    @property
    def kind(self) -> str:
        """The kind of this value, in words."""
        if isinstance(self._raw, yaml.MappingNode):
            return "a mapping"
        if isinstance(self._raw, yaml.SequenceNode):
            return "a list"
        return _KINDS.get(self._raw.tag.rpartition(":")[2], f"a value of kind {self._raw.tag[:100]!r}")

    def text(self) -> str:
        """The value as text."""
        if not isinstance(self._raw, yaml.ScalarNode):
            self.fail(f"expected text, found {self.kind}")
        if self._raw.tag != "tag:yaml.org,2002:str":
            self.fail(f"expected text, found {self.kind}", hint="quote it to make it text")
        return str(self._raw.value)

    def boolean(self) -> bool:
        """The value as true or false."""
        value = self.json()
        return value if isinstance(value, bool) else self.fail(f"expected true or false, found {self.kind}")

    def number(self) -> float:
        """The value as a number."""
        value = self.json()
        if not isinstance(value, int | float) or isinstance(value, bool):
            self.fail(f"expected a number, found {self.kind}")
        return value

    def items(self) -> "Iterator[YamlNode]":
        """The elements of a list; a single value counts as a list of one."""
        if isinstance(self._raw, yaml.SequenceNode):
            self._check_untagged("seq")
            for raw in self._raw.value:
                yield self._part(raw)
        elif isinstance(self._raw, yaml.MappingNode):
            self.fail("expected a list, found a mapping")
        else:
            yield self

    def fields(self) -> "dict[str, YamlField]":
        """The fields of a mapping."""
        if not isinstance(self._raw, yaml.MappingNode):
            self.fail(f"expected a mapping, found {self.kind}")
        self._check_untagged("map")
        found: dict[str, YamlField] = {}
        for raw_key, raw_value in self._raw.value:
            key = self._part(raw_key)
            name = key.text()
            if name in found:
                key.fail(f"{name!r} is repeated")
            found[name] = YamlField(name, key, self._part(raw_value))
        return found

    def json(self) -> Json:
        """The value as JSON."""
        if isinstance(self._raw, yaml.MappingNode):
            return {key: field.node.json() for key, field in self.fields().items()}
        if isinstance(self._raw, yaml.SequenceNode):
            return [item.json() for item in self.items()]
        tag = self._raw.tag.rpartition(":")[2]
        if tag not in _KINDS:
            self.fail(f"expected text, a number, true, false or null, found {self.kind}", hint="quote it")
        try:
            value = scalar_value(self._raw)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError
            return value
        except ValueError:
            self.fail(
                f"{self._raw.value[:100]!r} cannot be read as {_KINDS[tag]}", hint="quote it to make it text"
            )

    def choice(self, choices: tuple[str, ...], what: str) -> str:
        """The value as one of the given words."""
        word = self.text()
        if word not in choices:
            self.fail(f"{word!r} is not a {what}; expected one of {', '.join(choices)}")
        return word

    def each(self, read: "Callable[[YamlNode], _Result]") -> tuple[_Result, ...]:
        """Every element, converted by `read`."""
        return tuple(read(item) for item in self.items())

    def at_least_one(self, read: "Callable[[YamlNode], _Result]") -> tuple[_Result, ...]:
        """Like `each`, but at least one: it would be unclear whether an empty test matches everything or nothing."""
        return self.each(read) or self.fail("expected at least one value; otherwise leave the field out")

    def name(self) -> str:
        """The value as a name: text that is not blank."""
        return self.text() if self.text().strip() else self.fail("expected a name, found an empty text")

    def _part(self, raw: yaml.Node) -> "YamlNode":
        return YamlNode(raw, self.source, self._spent)

    def _check_untagged(self, kind: str) -> None:
        if self._raw.tag != f"tag:yaml.org,2002:{kind}":
            self.fail(f"expected no tag, found {self._raw.tag[:100]!r}")


def read_nodes(text: str, source: str) -> YamlNode:
    """The document in a text. Raises InvalidPolicy."""
    try:
        return YamlNode(parse_plain_yaml(text, max_characters=MAX_CHARACTERS), source)
    except YamlError as error:
        problem = "is empty; expected a policy" if error.problem == "is empty" else error.problem
        raise InvalidPolicy(problem, source=source, line=error.line, column=error.column) from None


def refuse_unknown_fields(fields: dict[str, YamlField], known: tuple[str, ...], what: str) -> None:
    """Refuse unknown fields: a misspelled condition must not widen a rule."""
    for key, field in fields.items():
        if key not in known:
            field.key_node.fail(f"{what} has no field {key!r}; expected one of {', '.join(known)}")
