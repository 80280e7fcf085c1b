"""YAML as it is written: one document of mappings, lists and scalars, each in its place. Surprises of YAML are refused."""

from typing import TYPE_CHECKING, Any

from holdfast.core import MAX_DEPTH

if TYPE_CHECKING:
    import yaml


class YamlError(Exception):
    """A text is no YAML of the plain kind; `line` and `column` count from 1, and are 0 where the place is not known."""

    def __init__(self, problem: str, *, line: int = 0, column: int = 0) -> None:
        super().__init__(problem)
        self.problem = problem
        self.line = line
        self.column = column


def parse_plain_yaml(text: str, *, max_characters: int) -> "yaml.Node":
    """The nodes of a document, without anchors and aliases. Raises UnreadableYaml."""
    import yaml  # takes longer than the rest of the package, and is needed only by who reads a file

    if len(text) > max_characters:
        raise YamlError(f"is larger than {max_characters} characters")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_surprises(text, loader)
        root: yaml.Node | None = yaml.compose(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
        raise YamlError(f"is no YAML: {error.problem or error.context}", line=line, column=column) from None
    except yaml.reader.ReaderError as error:
        line, column = place_in(text.encode("utf-8", "surrogatepass"), error.position)
        raise YamlError(f"is no YAML: {str(error).splitlines()[0]}", line=line, column=column) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise YamlError(f"is no YAML: {str(error).splitlines()[0]}") from None
    if root is None:
        raise YamlError("is empty", line=1, column=1)
    return root


def place_in(content: bytes, position: int) -> tuple[int, int]:
    """Line and column, from 1, of a byte in a text of UTF-8."""
    before = content[:position].decode("utf-8", "replace").split("\n")
    return len(before), len(before[-1]) + 1


def _refuse_surprises(text: str, loader: Any) -> None:
    """Refuse what makes little text into more than its reader bears, event by event and before anything is built of it.

    A few aliases of aliases unfold into billions of values; lists in lists without end take the parser's own stack.
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
            problem = "anchors and aliases are not read; write the value out each time"
        elif depth > MAX_DEPTH:
            problem = f"is nested more than {MAX_DEPTH} levels deep"
        if problem:
            mark = event.start_mark
            raise YamlError(problem, line=mark.line + 1, column=mark.column + 1)
