"""YAML and JSON nodes with positions: every error names its line and column, and what was expected there."""

import json
import re
from typing import NoReturn

import yaml

from holdfast.core import Json
from holdfast.core.errors import InvalidConfig
from holdfast.policy import YamlError, parse_plain_yaml, scalar_value

MAX_CHARACTERS = 1 << 20
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"?|//[^\n]*')
"""A string may lack its end, and what it matched is never tried again, so that the time grows with the text and no faster."""


class ConfigNode:
    """One value of a document and its position."""

    def __init__(self, raw: yaml.Node, source: str) -> None:
        self._raw = raw
        self._source = source

    def fail(self, message: str, *, hint: str | None = None) -> NoReturn:
        """Raise InvalidConfig for this value."""
        mark = self._raw.start_mark
        raise InvalidConfig(f"{self._source}:{mark.line + 1}:{mark.column + 1}: {message}", hint=hint)

    @property
    def span(self) -> tuple[int, int]:
        """Its start and end in characters of the text. A block value may end where the next one starts."""
        return self._raw.start_mark.index, self._raw.end_mark.index

    @property
    def is_flow(self) -> bool:
        """Whether it is written in brackets, as all of JSON is."""
        return isinstance(self._raw, yaml.CollectionNode) and bool(self._raw.flow_style)

    def fields(self) -> dict[str, tuple["ConfigNode", "ConfigNode"]]:
        """The fields of a mapping, by name: key and value."""
        if not isinstance(self._raw, yaml.MappingNode):
            self.fail("expected a mapping")
        found: dict[str, tuple[ConfigNode, ConfigNode]] = {}
        for raw_key, raw_value in self._raw.value:
            key = ConfigNode(raw_key, self._source)
            name = key.text()
            if name in found:
                key.fail(f"{name!r} appears a second time")
            found[name] = key, ConfigNode(raw_value, self._source)
        return found

    def texts(self) -> tuple[str, ...]:
        """The value as a list of strings."""
        if not isinstance(self._raw, yaml.SequenceNode):
            self.fail("expected a list")
        return tuple(ConfigNode(raw, self._source).text() for raw in self._raw.value)

    def text(self) -> str:
        """The value as a string."""
        value = self._scalar()
        return (
            value if isinstance(value, str) else self.fail("expected text", hint="quote it to make it text")
        )

    def boolean(self) -> bool:
        """The value as a boolean."""
        value = self._scalar()
        return value if isinstance(value, bool) else self.fail("expected true or false")

    def number(self, low: float, high: float) -> float:
        """The value as a number within these bounds."""
        value = self._scalar()
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            self.fail(f"expected a number from {low:g} to {high:g}")
        return value

    def integer(self, low: int, high: int) -> int:
        """The value as an integer within these bounds."""
        value = self.number(low, high)
        return value if isinstance(value, int) else self.fail("expected a whole number")

    def is_null(self) -> bool:
        """Whether the value is null."""
        return isinstance(self._raw, yaml.ScalarNode) and self._scalar() is None

    def _scalar(self) -> Json:
        if not isinstance(self._raw, yaml.ScalarNode):
            return []
        try:
            return scalar_value(self._raw)
        except ValueError:
            self.fail(f"{self._raw.value[:100]!r} cannot be read", hint="quote it to make it text")


def read_document(text: str, source: str) -> ConfigNode:
    """Parse a document, as JSON if the name ends in .json. Raises InvalidConfig."""
    if is_json(source):
        text = _without_comments(text)
        _check_json(text, source)
        # JSON may be indented with tabs, YAML may not. A JSON string holds no raw tab.
        text = text.replace("\t", " ")
    try:
        return ConfigNode(parse_plain_yaml(text, max_characters=MAX_CHARACTERS), source)
    except YamlError as error:
        place = f":{error.line}:{error.column}" if error.line else ""
        raise InvalidConfig(f"{source}{place}: {error.problem}", hint="see: holdfast teams init") from None


def is_json(source: str) -> bool:
    """Whether a file is read as JSON."""
    return source.endswith(".json")


def _without_comments(text: str) -> str:
    """JSON with its `//` comments replaced by spaces, so that positions stay the same."""
    return _STRING_OR_COMMENT.sub(
        lambda found: " " * len(found[0]) if found[0].startswith("//") else found[0], text
    )


def _check_json(text: str, source: str) -> None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise InvalidConfig(
            f"{source}:{error.lineno}:{error.colno}: is not valid JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise InvalidConfig(f"{source}: is nested too deeply") from None
    except ValueError:  # Python converts no integer of more than 4,300 digits
        raise InvalidConfig(f"{source}: has a number with too many digits") from None
