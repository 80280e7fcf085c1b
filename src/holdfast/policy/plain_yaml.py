"""A safe subset of YAML: one document of mappings, lists and scalars. Anchors, aliases and deep nesting are refused."""

from typing import TYPE_CHECKING, Any

from holdfast.core import MAX_DEPTH

if TYPE_CHECKING:
    import yaml


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


def line_and_column(content: bytes, position: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte position in UTF-8 text."""
    before = content[:position].decode("utf-8", "replace").split("\n")
    return len(before), len(before[-1]) + 1


def _check_events(text: str, loader: Any) -> None:
    """Refuse anchors, aliases and deep nesting before any node is built.

    A few aliases of aliases expand to billions of values, and endless nested lists exhaust the parser's stack.
    """
    import yaml

    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        problem = ""
        if getattr(event, "anchor", None) is not None:
            problem = "anchors and aliases are not supported; repeat the value instead"
        elif depth > MAX_DEPTH:
            problem = f"is nested more than {MAX_DEPTH} levels deep"
        if problem:
            mark = event.start_mark
            raise YamlError(problem, line=mark.line + 1, column=mark.column + 1)
