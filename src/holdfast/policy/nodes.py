"""YAML with places: every error names line and column, and what was expected there.

Anchors, tags of one's own, repeated keys and other surprises of YAML are refused; a policy is to read as it is written.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, NoReturn, TypeVar

import yaml

from holdfast.core import Json
from holdfast.core.errors import InvalidPolicy

MAX_CHARACTERS = 16 << 20
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
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
            return _SCALARS.construct_object(self._raw)  # type: ignore[no-any-return]
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


def read_nodes(text: str, source: str) -> Node:
    """The document in a text. Raises InvalidPolicy."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidPolicy(f"is larger than {MAX_CHARACTERS} characters", source=source)
    try:
        raw = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise InvalidPolicy(
            f"is no YAML: {error.problem or error.context}", source=source, line=line, column=column
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InvalidPolicy(f"is no YAML: {str(error).splitlines()[0]}", source=source) from None
    if raw is None:
        raise InvalidPolicy("is empty; expected a policy", source=source, line=1, column=1)
    _refuse_aliases(raw, source)
    return Node(raw, source)


def only(fields: dict[str, Field], known: tuple[str, ...], what: str) -> None:
    """Refuse fields that nobody reads: a misspelt condition must not widen a rule."""
    for key, field in fields.items():
        if key not in known:
            field.key_node.fail(f"{what} has no field {key!r}; expected one of {', '.join(known)}")


def _refuse_aliases(root: yaml.Node, source: str) -> None:
    """A few aliases of aliases unfold into billions of values."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        raw = waiting.pop()
        if id(raw) in seen:
            Node(raw, source).fail("anchors and aliases are not read; write the value out each time")
        seen.add(id(raw))
        if isinstance(raw, yaml.MappingNode):
            waiting += [part for pair in raw.value for part in pair]
        elif isinstance(raw, yaml.SequenceNode):
            waiting += raw.value


_SCALARS = yaml.SafeLoader("")
