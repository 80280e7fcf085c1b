"""A person's answer to an escalation: recorded at once if no process holds the session, else delivered to the holder.

Processes of one data directory deliver it by file. A store that workers share keeps it, together with the job for a worker.
"""

import asyncio
from typing import Literal

from holdfast.core import (
    PERSON,
    Clock,
    Escalation,
    EscalationId,
    Principal,
    Response,
    SessionId,
    Value,
    describe_coverage,
    encode,
    is_question,
)
from holdfast.core.errors import EscalationUnknown, InvalidInput, SessionHeld
from holdfast.core.events import EscalationAnswered, EscalationExpired, GrantGiven
from holdfast.gate import (
    AnswerEscalation,
    Escalations,
    LargeValues,
    SavedGrants,
    check_offer,
    describe_grant,
    grant_description,
    grant_for,
    write_first_answer,
)
from holdfast.store import Home, Store

HOLDER_SECONDS = 3.0
"""How long the process that holds a session may take to accept an answer."""
RECENT_EVENTS = 200
"""How far back the answer can be: it was recorded while this process wrote the file."""
Delivery = Literal["recorded", "accepted", "sent", "kept"]
"""Where an answer is: in the journal, accepted by the process that holds the session, sent to it and not confirmed, or kept in a
shared store until a worker applies it."""


class Delivered(Value, omit_defaults=False):
    """What became of an answer."""

    session: SessionId
    escalation: EscalationId
    verdict: Literal["approve", "deny"]
    delivery: Delivery


def check_response(escalation: Escalation, response: Response, *, is_text: bool) -> None:
    """Raise InvalidInput unless the response fits: a question is answered with text, a call is approved or denied."""
    if is_question(escalation) and response.verdict == "approve" and not is_text:
        raise InvalidInput(
            "the agent asks a question, which needs an answer in words",
            hint=f"holdfast answer {escalation.id} TEXT",
        )
    if is_text and not is_question(escalation):
        raise InvalidInput(
            f"{escalation.id!r} is a call, not a question",
            hint=f"holdfast approve {escalation.id}, or holdfast deny {escalation.id}",
        )
    if response.offer is not None:
        check_offer(escalation, response.offer)


def saved_coverage(escalation: Escalation, offer: int | None) -> str:
    """What an approval for longer than once covers, in words. Raises InvalidInput if the call can only be approved once."""
    covered = (
        grant_description(escalation)
        if offer is None
        else describe_coverage(escalation.offers[offer - 1].coverage)
    )
    if not covered:
        raise InvalidInput(
            "the target of this call is unknown, so it can only be approved once", hint="leave out --for"
        )
    return covered


def saved_rule(escalation: Escalation, response: Response, *, now_ms: int) -> str:
    """The grant that a response would save: what it covers and how long, as every list of grants shows it.

    Raises InvalidInput if there would be none.
    """
    if response.offer is not None:
        check_offer(escalation, response.offer)
    if response.scope in ("times", "minutes") and not response.amount:
        raise InvalidInput(f"{response.scope} needs an amount of at least 1")
    grant = grant_for(escalation, response, principal=PERSON, now_ms=now_ms)
    if grant is None:
        raise InvalidInput("this call can only be approved once")
    return describe_grant(grant)


async def deliver_answer(
    home: Home,
    store: Store,
    session: SessionId,
    escalation: Escalation,
    response: Response,
    *,
    transport: str,
    clock: Clock,
    principal: Principal = PERSON,
) -> Delivered:
    """Record the answer, or hand it to the process that holds the session. Raises EscalationUnknown if it is too late."""
    from holdfast.worker import post_request, shared_by_workers  # most stores have no workers

    if (shared := shared_by_workers(store)) is not None:
        answer = AnswerEscalation(
            escalation=escalation.id,
            digest=escalation.digest,
            response=response,
            transport=transport,
            principal=principal,
        )
        await post_request(*shared, session, answer)
        seen = await _await_outcome(store, session, escalation.id, response)
        return Delivered(
            session=session,
            escalation=escalation.id,
            verdict=response.verdict,
            delivery="kept" if seen == "sent" else seen,
        )
    try:
        journal = await store.open(session)
    except SessionHeld:
        _write_response_file(home, session, escalation, response, transport)
        delivery = await _await_outcome(store, session, escalation.id, response)
    else:
        try:
            ruling = await Escalations(journal, clock=clock).answer(
                escalation.id, response, principal=principal, transport=transport
            )
            asked = await LargeValues(store.blob).whole_escalation(ruling.escalation)
            grant = grant_for(asked, response, principal=principal, now_ms=clock.now_ms())
            if grant is not None:
                await journal.append(GrantGiven(grant=grant))
                if grant.scope == "always":
                    await SavedGrants.of(home, store).save(grant)
        finally:
            await journal.release()
        delivery = "recorded"
    return Delivered(session=session, escalation=escalation.id, verdict=response.verdict, delivery=delivery)


def _write_response_file(
    home: Home, session: SessionId, escalation: Escalation, response: Response, transport: str
) -> None:
    decision = "approved" if response.verdict == "approve" else "denied"
    answer: dict[str, object] = {
        "decision": decision,
        "digest": escalation.digest,
        "reason": response.reason,
        "scope": response.scope,
        "amount": response.amount,
        "offer": response.offer,
        "arguments": response.arguments,
        "transport": "web" if transport == "web" else "file",
    }
    write_first_answer(home.escalations(session), escalation.id, encode(answer))


def _gist(response: Response) -> tuple[object, ...]:
    return response.verdict, response.scope, response.amount, response.offer


async def _await_outcome(store: Store, session: SessionId, id: EscalationId, response: Response) -> Delivery:
    """What became of an answer by file, read from the journal that the other process writes."""
    # The journal may be long; the escalation is at or behind the first event that this reads.
    seen = max(0, (await store.summary(session)).events - RECENT_EVENTS)
    with store.watch() as watch:
        try:
            async with asyncio.timeout(HOLDER_SECONDS):
                while True:
                    for entry in await store.read(session, after=seen):
                        seen = entry.seq
                        match event := entry.event:
                            case EscalationAnswered(escalation=answered) if answered == id:
                                if _gist(event.response) != _gist(response):
                                    raise EscalationUnknown(
                                        f"{id!r} was already answered: {event.response.verdict}"
                                    )
                                return "accepted"
                            case EscalationExpired(escalation=expired) if expired == id:
                                raise EscalationUnknown(f"the answer to {id!r} came too late: {event.reason}")
                            case _:
                                pass
                    await watch.changed()
        except TimeoutError:
            return "sent"
