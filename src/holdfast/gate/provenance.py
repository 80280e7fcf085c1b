"""Provenance: where the values of a call appeared earlier in its session, shown to the person who is asked to approve it.

A value is found by exact text, whole or in a long enough piece. What the agent changed or composed counts as its own, so a
label can show that a value came from somewhere, never that it did not.
"""

from collections.abc import Iterator

from holdfast.core import PERSON, Call, CallId, Json, Label, Principal, is_person, texts_in
from holdfast.core.events import CallIntended, CallSettled, CodePosted, MessagePosted
from holdfast.core.projection import KNOWN_SIGNERS, imported_through
from holdfast.store import Journal

MIN_VALUE_LENGTH = 4
MIN_PIECE_LENGTH = 12
"""Minimum length of a line or word within a value; shorter ones are found everywhere."""
MAX_PIECES = 60
MAX_SEARCHED_CHARACTERS = 100_000
"""Of a value; the pieces come from its start."""
MAX_TEXTS = 400
"""How many texts are searched, newest first."""
MAX_LABELS = 3
"""Per argument."""


class Provenance:
    """Searches the journal for the words of a call."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def labels_for(self, call: Call) -> tuple[Label, ...]:
        """One label per argument and source, newest first."""
        await self._journal.append()  # a deferred outcome may be the source
        wanted = {name: _pieces(value) for name, value in call.arguments.items()}
        found: dict[str, list[Label]] = {name: [] for name in wanted}
        for text, source, is_trusted in self._texts():
            for name, pieces in wanted.items():
                if len(found[name]) < MAX_LABELS and any(piece in text for piece in pieces):
                    found[name].append(Label(source=f"{name}: {source}", is_trusted=is_trusted))
        return tuple(label for labels in found.values() for label in labels)

    def _texts(self) -> Iterator[tuple[str, str, bool]]:
        """Messages and call results, newest first, each with its source and whether a person wrote it."""
        recorded = self._journal.recorded
        operations: dict[CallId, str] = {
            entry.event.call.id: entry.event.call.operation
            for entry in recorded
            if isinstance(entry.event, CallIntended)
        }
        examined = 0
        imported = imported_through(recorded, trusted=KNOWN_SIGNERS)
        for entry in reversed(recorded):
            match entry.event:
                case (MessagePosted() | CodePosted()) as posted if entry.seq <= imported:
                    text = posted.text if isinstance(posted, MessagePosted) else posted.code
                    yield text, f"turn {posted.turn} of the imported file", False
                case MessagePosted(turn=turn, text=text, principal=sender):
                    yield text, _source("message", turn, sender), is_person(sender)
                case CodePosted(turn=turn, code=text, principal=sender):
                    yield text, _source("code", turn, sender), is_person(sender)
                case CallSettled(call=call, status="ok", result=result):
                    source = f"what {operations.get(call, 'a call')} returned in call {call}"
                    yield "\n".join(texts_in(result)), source, False
                case _:
                    continue
            examined += 1
            if examined == MAX_TEXTS:
                return


def _source(what: str, turn: int, sender: Principal) -> str:
    return f"your {what} of turn {turn}" if sender == PERSON else f"the {what} of turn {turn}, from {sender}"


def _pieces(value: Json) -> tuple[str, ...]:
    """What to search for: whole values, file names, long lines, long words."""
    pieces: dict[str, None] = {}
    for text in texts_in(value):
        text = text[:MAX_SEARCHED_CHARACTERS]
        whole, name = text.strip(), text.rstrip("/").rpartition("/")[2]
        pieces.update(dict.fromkeys(each for each in (whole, name) if len(each) >= MIN_VALUE_LENGTH))
        parts = (part.strip() for part in (*text.splitlines(), *text.split()))
        pieces.update(dict.fromkeys(part for part in parts if len(part) >= MIN_PIECE_LENGTH))
    return tuple(pieces)[:MAX_PIECES]
