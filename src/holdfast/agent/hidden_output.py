"""Output that the model does not see in words: it gets a name, a size and a type, and the host fills the words into its answer.

Otherwise the first mail that a model reads would lower the author of everything that it writes later in the session.
"""

import re
from collections.abc import Callable, Iterable

from holdfast.core import Json, pluralize
from holdfast.core.events import RecordedEvent, RunEnded

_HANDLE = re.compile(r"\{\{out_(\d{1,6})_(\d{1,6})\}\}")


def handle_of(ended: RunEnded) -> str:
    """The name of a run's output."""
    return f"{{{{out_{ended.turn}_{ended.run}}}}}"


def describe_hidden(ended: RunEnded) -> str:
    """What the model gets instead of the words."""
    sizes = [f"{len(ended.printed):,} characters printed"] if ended.printed.strip() else []
    if ended.value is not None:
        sizes.append(f"a value: {_shape(ended.value)}")
    failed = [] if ended.status == "ok" else [f"It ended with an error: {_error_kind(ended.error)}."]
    return "\n".join(
        [
            f"[Not shown: the output has words of a {ended.hidden}. It is kept as {handle_of(ended)}: {' and '.join(sizes) or 'nothing'}.]",
            *failed,
            "The variables of the program are there for later programs. To learn something from the words, ask llm.complete in a program and "
            f"keep its answer in a variable. To give the words to the person, write {handle_of(ended)} in your answer.",
        ]
    )


def fill_handles(text: str, recorded: Iterable[RecordedEvent], *, render: Callable[[RunEnded], str]) -> str:
    """The answer as the person gets it: with the words in place of their names."""
    if _HANDLE.search(text) is None:
        return text
    outputs = {
        handle_of(entry.event): entry.event
        for entry in recorded
        if isinstance(entry.event, RunEnded) and entry.event.hidden is not None
    }

    def words(match: re.Match[str]) -> str:
        ended = outputs.get(match[0])
        return render(ended) if ended is not None else match[0]

    return _HANDLE.sub(words, text)


def _shape(value: Json) -> str:
    match value:
        case str():
            return f"a text of {pluralize(len(value), 'character')}"
        case list():
            return f"a list of {pluralize(len(value), 'element')}"
        case dict():
            return f"an object of {pluralize(len(value), 'field')}"
        case bool() | None:
            return "true or false"
        case _:
            return "a number"


def _error_kind(error: str) -> str:
    """The class of an exception; its message may carry anything."""
    last = error.strip().splitlines()[-1] if error.strip() else ""
    kind = last.partition(":")[0]
    return kind if kind.isidentifier() and len(kind) <= 40 else "an exception"
