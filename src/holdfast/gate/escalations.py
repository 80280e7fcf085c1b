"""Escalations: calls that wait for approval. The journal record comes first; every transport reads it from there."""

import asyncio
from collections.abc import Sequence
from typing import Literal

from holdfast.core import (
    Call,
    CallId,
    CallLevels,
    Clock,
    Escalation,
    EscalationId,
    Principal,
    Response,
    Value,
)
from holdfast.core.errors import EscalationUnknown, InvalidInput
from holdfast.core.events import (
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    RecordedEvent,
    SessionOpened,
)
from holdfast.core.projection import Projection, imported_through
from holdfast.gate.grants import check_offer
from holdfast.store import Journal


class Ruling(Value):
    """How an escalation ended. No answer is a denial."""

    escalation: Escalation
    verdict: Literal["approve", "deny", "expire"]
    reason: str
    response: Response | None = None
    principal: Principal | None = None


_Handled = EscalationOpened | EscalationAnswered | EscalationExpired | SessionOpened


class Escalations(Projection[_Handled]):
    """Open escalations and rulings. The first valid answer wins; a later one raises EscalationUnknown."""

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._record = journal
        self._imported_through = imported_through(journal.recorded)
        self._clock = clock
        self._answering = asyncio.Lock()
        """Held while an escalation is being settled, so that it is settled once."""
        # Not part of `reset`: a rewind does not turn a withdrawn approval back into an approval.
        self._withdrawn: dict[EscalationId, str] = {}
        super().__init__(journal)

    def reset(self) -> None:
        self._open: dict[EscalationId, Escalation] = {}
        self._rulings: dict[EscalationId, Ruling] = {}
        self._by_call: dict[str, EscalationId] = {}
        self._changed = asyncio.Event()

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case EscalationOpened():
                escalation = event.escalation
                self._open[escalation.id] = escalation
                self._by_call[escalation.call.id] = escalation.id
                if entry.seq <= self._imported_through:
                    # What a file asks need not be what its digest stands for, and anyone can write that you approved it.
                    self._withdrawn.setdefault(escalation.id, "it was asked in another home")
                    self._withdraw(escalation.id)
            case EscalationAnswered():
                if answered := self._open.pop(event.escalation, None):
                    self._rulings[event.escalation] = Ruling(
                        escalation=answered,
                        verdict=event.response.verdict,
                        reason=event.response.reason or "",
                        response=event.response,
                        principal=event.principal,
                    )
                    self._withdraw(event.escalation)
            case EscalationExpired():
                self._withdrawn[event.escalation] = event.reason
                self._withdraw(event.escalation)
            case SessionOpened():
                for id in map(EscalationId, event.taken_back):
                    self._withdrawn[id] = (
                        "its approval was revoked in the session that this one was forked from"
                    )
                    self._withdraw(id)
        self._changed.set()
        self._changed = asyncio.Event()

    def _withdraw(self, id: EscalationId) -> None:
        """Deny an open escalation, or an approval that was given elsewhere and not yet acted on."""
        ruled = self._rulings.get(id)
        escalation = self._open.pop(id, None) or (ruled.escalation if ruled is not None else None)
        if escalation is not None and id in self._withdrawn:
            self._rulings[id] = Ruling(escalation=escalation, verdict="expire", reason=self._withdrawn[id])

    def waiting(self) -> tuple[Escalation, ...]:
        """Every open escalation, oldest first."""
        return tuple(self._open.values())

    def find(self, call: Call) -> Escalation | Ruling | None:
        """The escalation of this call if open, its ruling if settled, None if there is none."""
        asked = self._by_call.get(call.id)
        if asked is None:
            return None
        return self._open.get(asked) or self._rulings[asked]

    def call(self, id: CallId) -> Call | None:
        """The call that was escalated under this id, as it was recorded."""
        asked = self._by_call.get(id)
        if asked is None:
            return None
        return self._open[asked].call if asked in self._open else self._rulings[asked].escalation.call

    def recorded_levels(self, call: Call) -> CallLevels | None:
        """The levels that this call had when a person was asked about it."""
        asked = self.find(call)
        escalation = asked.escalation if isinstance(asked, Ruling) else asked
        facts = escalation.decision.facts if escalation is not None else None
        return facts.levels if facts is not None else None

    def response_to(self, call: Call) -> Response | None:
        """A person's response about this call."""
        asked = self.find(call)
        return asked.response if isinstance(asked, Ruling) else None

    async def open(self, escalation: Escalation, *, blobs: Sequence[bytes] = ()) -> None:
        """Record an escalation, and the blobs of its call's large arguments."""
        await self._record.append(EscalationOpened(escalation=escalation), blobs=blobs)

    def check_offer(self, id: EscalationId, number: int) -> None:
        """Raise InvalidInput if an answer names an offer that was not shown; a late answer is reported later."""
        if id in self._open:
            check_offer(self._open[id], number)

    async def answer(
        self, id: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> Ruling:
        """Record a person's answer. Raises EscalationUnknown if there is nothing to answer or the answer is too late.

        The principal that made a call may withdraw it but not approve it: that raises InvalidInput.
        """
        async with self._answering:
            await self._expire_overdue()
            if id not in self._open:
                raise EscalationUnknown(self._why_unanswerable(id), hint="this answer changed nothing")
            if response.verdict == "approve" and principal == self._open[id].call.principal:
                raise InvalidInput(f"{principal} made this call and cannot approve it", hint="ask a person")
            await self._record.append(
                EscalationAnswered(escalation=id, response=response, principal=principal, transport=transport)
            )
        return self._rulings[id]

    async def expire(self, id: EscalationId, reason: str) -> None:
        """Settle an escalation without an answer, which is a denial."""
        async with self._answering:
            await self._expire(id, reason)

    async def expire_overdue(self) -> None:
        """Expire the escalations whose time is up."""
        async with self._answering:
            await self._expire_overdue()

    async def _expire(self, id: EscalationId, reason: str) -> None:
        if id in self._open:
            await self._record.append(EscalationExpired(escalation=id, reason=reason))

    async def _expire_overdue(self) -> None:
        now_ms = self._clock.now_ms()
        for escalation in self.waiting():
            if escalation.expires_ms is not None and escalation.expires_ms <= now_ms:
                await self._expire(escalation.id, "no one answered in time")

    async def wait(self, id: EscalationId) -> Ruling:
        """Wait until an escalation is answered, or its time is up if it has a limit."""
        while id in self._open:
            changed = self._changed
            expires_ms = self._open[id].expires_ms
            left = None if expires_ms is None else max(0.0, (expires_ms - self._clock.now_ms()) / 1000)
            try:
                async with asyncio.timeout(left):
                    await changed.wait()
            except TimeoutError:
                await self.expire_overdue()
        if id not in self._rulings:
            raise EscalationUnknown(f"there is no escalation {id!r}")
        return self._rulings[id]

    def _why_unanswerable(self, id: EscalationId) -> str:
        ruling = self._rulings.get(id)
        if ruling is None:
            return f"there is no escalation {id!r}"
        if ruling.verdict == "expire":
            return f"the answer to {id!r} is too late: {ruling.reason}"
        return f"{id!r} was already answered: {ruling.verdict}"
