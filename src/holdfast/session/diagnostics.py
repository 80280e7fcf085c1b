"""Diagnostics: what happened in a session, as short lines for a log view."""

from collections.abc import Iterable
from typing import Literal

from holdfast.core import Value, encode
from holdfast.core.events import CallIntended, CallRefused, ModelReplied, Noted, RecordedEvent
from holdfast.core.projection import without_rewound

MAX_DIAGNOSTICS = 1000
"""The newest are returned; all are in the journal."""
_PREVIEW_CHARACTERS = 200


class Diagnostic(Value):
    """One line: a note, a call or text of the agent."""

    kind: Literal["note", "call", "text"]
    at_ms: int
    code: str = ""
    """Of a note its code, of a call its operation."""
    text: str
    """Of a note all of it, else the first 200 characters: of the call's arguments, or of what the agent said."""


def diagnostics_of(recorded: Iterable[RecordedEvent]) -> tuple[Diagnostic, ...]:
    """The newest diagnostics, oldest first, without what a rewind undid."""
    found = [line for entry in without_rewound(recorded) if (line := _line(entry)) is not None]
    return tuple(found[-MAX_DIAGNOSTICS:])


def _line(entry: RecordedEvent) -> Diagnostic | None:
    match event := entry.event:
        case Noted():
            return Diagnostic(kind="note", at_ms=entry.at_ms, code=event.code, text=event.text)
        case CallIntended() | CallRefused():
            text = encode(event.call.arguments).decode()[:_PREVIEW_CHARACTERS]
            return Diagnostic(kind="call", at_ms=entry.at_ms, code=event.call.operation, text=text)
        case ModelReplied() if event.message.text:
            return Diagnostic(kind="text", at_ms=entry.at_ms, text=event.message.text[:_PREVIEW_CHARACTERS])
        case _:
            return None
