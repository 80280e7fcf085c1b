"""Names of sessions: aliases beside the id, unique, never a part of a path."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

import msgspec

from holdfast.core import MAX_NAME_LENGTH, SessionId, sanitise_name
from holdfast.core.errors import InvalidName, SessionAmbiguous, SessionNotFound
from holdfast.core.events import AnyEvent, SessionOpened, SessionRenamed


def alias(name: str) -> str:
    """The form in which a name is kept and compared; raises InvalidName.

    Names in the Latin alphabet become plain ASCII. Where nothing would be left of a name because its script is another
    one, its own letters are kept: a name is no path, so nothing is lost by it.
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
    """The form in which a name that somebody chose is kept; one that would have to be cut is refused. Raises InvalidName."""
    length = len(unicodedata.normalize("NFKC", text).strip())
    if length > MAX_NAME_LENGTH:
        raise InvalidName(
            f"a name has at most {MAX_NAME_LENGTH} characters, this one has {length}",
            hint="choose a shorter one",
        )
    return alias(text)


NAMING = (SessionOpened, SessionRenamed)


def named(event: AnyEvent) -> AnyEvent:
    """The event with its name, if it gives one, in the form in which names are kept."""
    if isinstance(event, NAMING) and event.name is not None:
        return msgspec.structs.replace(event, name=alias(event.name))
    return event


def names_in(events: Iterable[AnyEvent]) -> list[str]:
    """The names that these events give."""
    return [event.name for event in events if isinstance(event, NAMING) and event.name is not None]


def possible_names(reference: str) -> tuple[str, ...]:
    """The forms under which a session could be named so."""
    try:
        return (reference, alias(reference))
    except InvalidName:
        return (reference,)


def the_only(reference: str, fitting: Sequence[SessionId]) -> SessionId:
    """The one session whose id begins so. Raises SessionNotFound or SessionAmbiguous where none or several do."""
    if not reference or not fitting:
        raise SessionNotFound(
            f"no session is called {reference!r}", hint="`holdfast sessions` lists what there is"
        )
    if len(fitting) > 1:
        shown = ", ".join(fitting[:5]) + (", …" if len(fitting) > 5 else "")
        raise SessionAmbiguous(
            f"{reference!r} is the beginning of several sessions: {shown}",
            hint="type more of the id, or the name of the session",
        )
    return fitting[0]
