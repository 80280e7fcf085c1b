"""Output that the model does not see in words: it gets a name, a size and a type, and the host fills the words in where the model names it.

Otherwise the first mail that a model reads would lower the author of everything that it writes later in the session.
"""

import re
from collections.abc import Mapping

import msgspec

from holdfast.core import (
    Answer,
    CallId,
    Failed,
    Json,
    JsonObject,
    Level,
    Origin,
    Refused,
    Returned,
    call_id,
    pluralize,
    texts_in,
)
from holdfast.core.events import Event, OutputRevealed, RecordedEvent, RunEnded, ToolReturned
from holdfast.core.projection import EventSource, Projection
from holdfast.models import OnPiece, ReplyPiece

_HANDLE = re.compile(r"\{\{(?:out|call)_(\d{1,6})_(\d{1,6})\}\}")
_BEGINNING = re.compile(r"\{(?:\{(?:[a-z]{1,4}(?:_[\d_]{0,13}\}?)?)?)?\Z")
"""The end of a piece of text that may be the beginning of a handle."""


def hidden_output(event: Event) -> str | None:
    """The name of the output that an event hides from the model, such as `out_1_1`; None if it hides none."""
    if not isinstance(event, RunEnded | ToolReturned) or event.hidden is None:
        return None
    named = _HANDLE.search(handle_of(event) if isinstance(event, RunEnded) else event.content)
    return named[0].strip("{}") if named is not None else None


class HiddenOutputs(Projection[RunEnded | ToolReturned | OutputRevealed]):
    """The outputs that the model got a name for."""

    def __init__(self, journal: EventSource) -> None:
        super().__init__(journal)

    def reset(self) -> None:
        self.runs: dict[str, RunEnded] = {}
        self.calls: dict[str, CallId] = {}
        self._origins: dict[str, tuple[Origin, Level]] = {}
        """Where the words of each name come from, and their recorded level."""
        self.levels: dict[str, Level] = {}
        """The level of each output that the model may not read yet, by its name."""

    def apply(self, event: RunEnded | ToolReturned | OutputRevealed, entry: RecordedEvent) -> None:
        if isinstance(event, OutputRevealed):
            self.levels.pop(event.output, None)
            return
        if event.hidden is not None and (name := hidden_output(event)) is not None:
            self.levels[name] = event.hidden
        if event.hidden is None:
            return
        if isinstance(event, RunEnded):
            self.runs[handle_of(event)] = event
            self._origins[handle_of(event)] = Origin(kind="session"), event.hidden
        elif (named := _HANDLE.search(event.content)) is not None:
            self.calls[named[0]] = call_id(int(named[1]), int(named[2]))
            origin = Origin(kind="read", operation=event.tool.replace("__", ".", 1))
            self._origins[named[0]] = origin, event.hidden

    def named_in(self, value: Json) -> list[tuple[Origin, Level]]:
        """Where the words that a value names come from, and their recorded level; nothing, if it names none."""
        if not self._origins:
            return []
        named = {found[0] for text in texts_in(value) for found in _HANDLE.finditer(text)}
        return [self._origins[each] for each in named if each in self._origins]


def handle_of(ended: RunEnded) -> str:
    """The name of a run's output."""
    return f"{{{{out_{ended.turn}_{ended.run}}}}}"


def describe_hidden(ended: RunEnded) -> str:
    """What the model gets instead of the words of a run."""
    sizes = [f"{len(ended.printed):,} characters printed"] if ended.printed.strip() else []
    if ended.value is not None:
        sizes.append(f"a value: {_shape(ended.value)}")
    failed = [] if ended.status == "ok" else [f"It ended with an error: {_error_kind(ended.error)}."]
    return "\n".join(
        [
            f"[Not shown: the output has words of a {ended.hidden}. It is kept as {handle_of(ended)}: {' and '.join(sizes) or 'nothing'}.]",
            *failed,
            "The variables of the program are there for later programs. To learn something from the words, ask llm.complete in a program and "
            f"keep its answer in a variable. To give the words to the person, write {handle_of(ended)} in your answer. {_offer(handle_of(ended))}",
        ]
    )


def describe_hidden_call(call: CallId, answer: Returned | Failed | Refused, level: Level) -> str:
    """What the model gets instead of the words of a call that it made itself."""
    handle = f"{{{{call_{call.replace('.', '_')}}}}}"
    if isinstance(answer, Refused):
        return f"[Refused by rule {answer.rule}. Not shown: the reason has words of a {level}.]"
    if isinstance(answer, Failed):
        kind = answer.error if answer.error.replace("-", "").isalnum() else "error"
        return f"[Not shown: the words of the error are a {level}'s. It is kept as {handle}: {kind[:40]}.]"
    return (
        f"[Not shown: the result has words of a {level}. It is kept as {handle}: {_shape(answer.value)}.]\n"
        f"To give the words to the person, or to a tool, write {handle} in your answer or in an argument. {_offer(handle)}"
    )


def _offer(handle: str) -> str:
    return f"Only the person can let you read them: /reveal {handle.strip('{}')}."


def words_of(answer: Answer | None) -> str:
    """The words of a call, as they take the place of their name."""
    match answer:
        case Returned(value=value):
            return value if isinstance(value, str) else msgspec.json.encode(value).decode()
        case Failed(reason=reason):
            return reason
        case _:
            return ""


def fill_handles(text: str, words: Mapping[str, str]) -> str:
    """A text with the words in place of their names. What the words name is not filled in."""
    return _HANDLE.sub(lambda named: words.get(named[0], named[0]), text) if words else text


def fill_arguments(arguments: JsonObject, words: Mapping[str, str]) -> JsonObject:
    """The arguments of a call with the words in place of their names."""
    if not words:
        return arguments
    try:
        return {name: _filled(value, words) for name, value in arguments.items()}
    except RecursionError:  # the gate refuses arguments that are nested so deeply
        return arguments


class FilledPieces:
    """Passes the pieces of an answer on, with the words in place of their names: a name may be cut anywhere."""

    def __init__(self, on_piece: OnPiece, words: Mapping[str, str]) -> None:
        self._on_piece = on_piece
        self._words = words
        self._kept = ""

    def __call__(self, piece: ReplyPiece) -> None:
        if piece.kind != "text":
            self._on_piece(piece)
            return
        text = fill_handles(self._kept + piece.text, self._words)
        beginning = _BEGINNING.search(text)
        self._kept = text[beginning.start() :] if beginning is not None else ""
        if shown := text.removesuffix(self._kept):
            self._on_piece(msgspec.structs.replace(piece, text=shown))

    def flush(self) -> None:
        """Pass on what only looked like a name."""
        if self._kept:
            self._on_piece(ReplyPiece(text=self._kept))
        self._kept = ""


def _filled(value: Json, words: Mapping[str, str]) -> Json:
    match value:
        case str():
            return fill_handles(value, words)
        case list():
            return [_filled(each, words) for each in value]
        case dict():
            return {name: _filled(each, words) for name, each in value.items()}
        case _:
            return value


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
