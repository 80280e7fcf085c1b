"""What waits for a person: calls that need approval and questions of agents, over all sessions, with the words to show."""

from collections.abc import Sequence

import msgspec

from holdfast.core import Escalation, EscalationId, SessionId, Value, escape_invisible, is_question
from holdfast.core.approval_text import (
    describe_effect,
    describe_offers,
    describe_provenance,
    describe_reason,
    describe_undo,
    runs_of,
    seconds_left,
)
from holdfast.core.errors import EscalationUnknown
from holdfast.gate import LargeValues, grant_description
from holdfast.services.call_text import exact_call
from holdfast.store import Store, WaitingEscalation

MAX_TITLE = 80
MAX_KEPT = 2_000
MAX_KEPT_CHARACTERS = 4_000
"""Of the exact call. With these, kept words take at most a few megabytes."""


class WaitingCall(Value, omit_defaults=False):
    """An escalation that no one has answered, its session, and what a person must know to answer it."""

    session: SessionId
    name: str | None
    """The name of the session."""
    title: str
    """The title of the session, or else the start of its first message; nothing in it is invisible."""
    escalation: Escalation
    runs_when: tuple[str, ...]
    """What makes the files run that the call would change."""
    seconds_left: float | None
    """How long it waits before silence is a denial; None if it waits until it is answered."""
    is_question: bool
    effect: str
    """What would happen."""
    call: tuple[str, ...]
    """The exact call, line by line; nothing in it is invisible."""
    reason: str
    values_from: str
    undo: str
    offers: tuple[str, ...]
    """What a saved approval can cover, narrowest first."""
    covers: str
    """What a saved approval covers if no offer is chosen; empty if the call can only be approved once."""


class KeptWords:
    """The words of the last list. A page asks for the list at every news, and most of it is as it was before."""

    def __init__(self) -> None:
        self._kept: dict[tuple[SessionId, EscalationId], tuple[WaitingEscalation, WaitingCall]] = {}

    def find(self, each: WaitingEscalation, *, now_ms: int) -> WaitingCall | None:
        """The words of an escalation, if they were kept and nothing about it differs."""
        before, words = self._kept.get((each.session, each.escalation.id), (None, None))
        if words is None or before != each:
            return None
        left = seconds_left(each.escalation, now_ms)
        return words if left is None else msgspec.structs.replace(words, seconds_left=left)

    def keep(self, found: Sequence[tuple[WaitingEscalation, WaitingCall]]) -> None:
        """Keep the words of a whole list, and forget all others."""
        self._kept = {
            (words.session, words.escalation.id): (each, words)
            for each, words in found[:MAX_KEPT]
            if sum(map(len, words.call)) <= MAX_KEPT_CHARACTERS
        }


async def waiting(
    store: Store, reference: str | None = None, *, now_ms: int, kept: KeptWords | None = None
) -> list[WaitingCall]:
    """The calls and questions that wait, in one session or in all, with all of their arguments, newest session first."""
    session = await store.find(reference) if reference is not None else None
    large_values, kept = LargeValues(store.blob), kept or KeptWords()
    found: list[tuple[WaitingEscalation, WaitingCall]] = []
    for each in await store.waiting(session):
        # With no process left, an escalation whose time is up is a denial that is not recorded yet.
        if each.escalation.expires_ms is not None and each.escalation.expires_ms <= now_ms:
            continue
        words = kept.find(each, now_ms=now_ms)
        if words is None:
            whole = await large_values.whole_escalation(each.escalation)
            words = describe_waiting(each.session, each.name, whole, title=each.title, now_ms=now_ms)
        found.append((each, words))
    if session is None:
        kept.keep(found)
    return [words for _, words in found]


def describe_waiting(
    session: SessionId, name: str | None, escalation: Escalation, *, title: str, now_ms: int
) -> WaitingCall:
    """The words for one escalation."""
    return WaitingCall(
        session=session,
        name=name,
        title=" ".join(escape_invisible(title[:MAX_TITLE]).split()),
        escalation=escalation,
        runs_when=tuple(runs_of(escalation)),
        seconds_left=seconds_left(escalation, now_ms),
        is_question=is_question(escalation),
        effect=describe_effect(escalation),
        call=tuple(exact_call(escalation.call)),
        reason=describe_reason(escalation),
        values_from=describe_provenance(escalation),
        undo=describe_undo(escalation),
        offers=tuple(describe_offers(escalation)),
        covers=escape_invisible(grant_description(escalation)),
    )


def select_waiting(found: Sequence[WaitingCall], wanted: str | None) -> WaitingCall:
    """The call with this id, or the only one. Raises EscalationUnknown."""
    matching = [each for each in found if wanted in (None, each.escalation.id)]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        what = (
            "no call waits for approval"
            if wanted is None
            else f"{wanted!r} does not wait: it was answered, it expired, or the id is wrong"
        )
        raise EscalationUnknown(what, hint="nothing was changed; list waiting calls with: holdfast waiting")
    raise EscalationUnknown(f"{len(matching)} calls wait; name one", hint="list them with: holdfast waiting")
