"""Session names: unique aliases of a session id. A name is never part of a path."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core import MAX_NAME_LENGTH, SessionId, check_session_id, sanitise_name
from holdfast.core.errors import InvalidId, InvalidName, SessionAmbiguous, SessionExists, SessionNotFound
from holdfast.core.events import Event, SessionOpened, SessionRenamed

NAMING_EVENTS = (SessionOpened, SessionRenamed)


class IdTaken(SessionExists):
    """The id is taken; if it was generated, another one is generated."""


def alias(name: str) -> str:
    """Return the form in which a name is stored and compared. Raises InvalidName.

    A name in the Latin alphabet becomes plain ASCII. If that leaves nothing because the name uses another script, its own
    letters are kept, which is safe because a name is not a path.
    """
    try:
        return sanitise_name(name)
    except InvalidName:
        letters = unicodedata.normalize("NFKC", name).strip().lower()
        if letters.isascii() or re.search(r"[\x00-\x1f/\\]|\.\.|[a-z0-9]", letters):
            raise
        kept = re.sub(r"[\W_]+", "-", letters).strip("-")[:MAX_NAME_LENGTH].rstrip("-")
        if not kept:
            raise
        return kept


def chosen_name(text: str) -> str:
    """Return the stored form of a name that a user chose, cut to 64 characters: see `shortened_note`."""
    return alias(text)


def shortened_note(text: str | None) -> str | None:
    """A note for the user whose name was too long; None if it was not."""
    if text is None or len(unicodedata.normalize("NFKC", text).strip()) <= MAX_NAME_LENGTH:
        return None
    return f"the name was cut to {MAX_NAME_LENGTH} characters: {alias(text)}"


def with_alias(event: Event) -> Event:
    """Return the event with its name, if it has one, in stored form."""
    if isinstance(event, NAMING_EVENTS) and event.name is not None:
        return msgspec.structs.replace(event, name=alias(event.name))
    return event


def names_in(events: Iterable[Event]) -> list[str]:
    """List the names that these events give to sessions."""
    return [event.name for event in events if isinstance(event, NAMING_EVENTS) and event.name is not None]


def possible_names(reference: str) -> tuple[str, ...]:
    """List the stored forms that a reference can stand for."""
    try:
        return (reference, alias(reference))
    except InvalidName:
        return (reference,)


def require_single_match(reference: str, matches: Sequence[SessionId]) -> SessionId:
    """Return the only session whose id starts with the reference. Raises SessionNotFound, InvalidId, SessionAmbiguous."""
    if not reference or not matches:
        raise _no_match(reference)
    if len(matches) > 1:
        shown = ", ".join(matches[:5]) + (", …" if len(matches) > 5 else "")
        raise SessionAmbiguous(
            f"{reference!r} matches several sessions: {shown}",
            hint="type more of the id, or the name of the session",
        )
    return matches[0]


def _no_match(reference: str) -> SessionNotFound | InvalidId:
    hint = "`holdfast sessions` lists all sessions"
    if reference and not _is_session_id(reference):
        return InvalidId(f"no session is named {reference!r}, and it is not a valid session id", hint=hint)
    return SessionNotFound(f"there is no session {reference!r}", hint=hint)


def _is_session_id(text: str) -> bool:
    """Whether a text could be a session id."""
    try:
        check_session_id(text)
    except InvalidId:
        return False
    return True
