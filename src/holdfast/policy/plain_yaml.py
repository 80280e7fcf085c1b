"""A safe subset of YAML: one document of mappings, lists and scalars, of bounded size.

Anchors, aliases, tag directives and deep nesting are refused.
"""

import re
from typing import TYPE_CHECKING, Any

from holdfast.core import MAX_DEPTH, Json

if TYPE_CHECKING:
    import yaml

MAX_VALUES = 200_000
"""Keys, values, lists and mappings of a document: each takes some hundred bytes of memory, however short its text is."""
MAX_UNQUOTED_CHARACTERS = 64 << 10
"""Of one scalar. The patterns that look for numbers take 60 times its size in memory."""
MAX_NUMBER_CHARACTERS = 1000
"""The time to convert a number in base 60, as in `1:30`, grows with the square of its length."""
_TAG_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%TAG")
_KINDS = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("str", "bool", "int", "float", "null"))
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


class YamlError(Exception):
    """A text is not in the safe subset. `line` and `column` count from 1, or are 0 if the position is unknown."""

    def __init__(self, problem: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


def parse_plain_yaml(text: str, *, max_characters: int) -> "yaml.Node":
    """The root node of a document. Raises YamlError."""
    import yaml  # slower to import than the rest of the package

    if len(text) > max_characters:
        raise YamlError(f"is larger than {max_characters} characters")
    if found := _TAG_DIRECTIVE.search(text):  # the parser compares each of them with all others
        line, column = line_and_column(text[: found.end() - 4].encode("utf-8", "surrogatepass"), found.end())
        raise YamlError("tag directives are not supported", line=line, column=column)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(text, loader)
        root: yaml.Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise YamlError(
            f"is not valid YAML: {error.problem or error.context}", line=line, column=column
        ) from None
    except yaml.reader.ReaderError as error:
        line, column = line_and_column(text.encode("utf-8", "surrogatepass"), error.position)
        raise YamlError(
            f"is not valid YAML: {str(error).splitlines()[0]}", line=line, column=column
        ) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"is not valid YAML: {str(error).splitlines()[0]}") from None
    if root is None:
        raise YamlError("is empty", line=1, column=1)
    return root


def scalar_value(node: "yaml.Node") -> Json:
    """The value of a scalar by its tag; a date is text. Raises ValueError if its tag is unknown or does not fit the text."""
    import yaml

    if node.tag == _TIMESTAMP:
        return str(node.value)
    if node.tag not in _KINDS:
        raise ValueError(f"unknown tag {node.tag!r}")
    if node.tag != _KINDS[0] and len(node.value) > MAX_NUMBER_CHARACTERS:
        raise ValueError(f"more than {MAX_NUMBER_CHARACTERS} characters")
    try:  # a constructor keeps each node that it converts, so each value gets its own
        value: Json = yaml.constructor.SafeConstructor().construct_object(node)
    except (yaml.YAMLError, ArithmeticError, LookupError) as error:
        raise ValueError(str(error)) from None
    return value


def line_and_column(content: bytes, position: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte position in UTF-8 text."""
    before = content[:position].decode("utf-8", "replace").split("\n")
    return len(before), len(before[-1]) + 1


def _check_events(text: str, loader: Any) -> None:
    """Refuse anchors, aliases, deep nesting and too many values before any node is built.

    A few aliases of aliases expand to billions of values, and endless nested lists exhaust the parser's stack.
    """
    import yaml

    depth = values = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        values += isinstance(event, yaml.NodeEvent)
        problem = ""
        if getattr(event, "anchor", None) is not None:
            problem = "anchors and aliases are not supported; repeat the value instead"
        elif depth > MAX_DEPTH:
            problem = f"is nested more than {MAX_DEPTH} levels deep"
        elif values > MAX_VALUES:
            problem = f"has more than {MAX_VALUES:,} values"
        elif (
            isinstance(event, yaml.ScalarEvent)
            and event.implicit[0]
            and len(event.value) > MAX_UNQUOTED_CHARACTERS
        ):
            problem = f"has a value of more than {MAX_UNQUOTED_CHARACTERS:,} characters without quotes"
        if problem:
            mark = event.start_mark
            raise YamlError(problem, line=mark.line + 1, column=mark.column + 1)
