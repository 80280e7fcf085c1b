"""Routes of the inbox: what waits for a person, the answers, and what was answered before."""

from typing import Literal

from holdfast.core import (
    Escalation,
    EscalationId,
    JsonObject,
    Response,
    Scope,
    SessionId,
    Value,
    escape_invisible,
)
from holdfast.core.approval_text import SAVED_LENGTHS, describe_effect
from holdfast.core.errors import EscalationUnknown, HoldfastError, InvalidInput
from holdfast.core.events import EscalationAnswered, EscalationExpired, EscalationOpened
from holdfast.services import (
    Delivered,
    WaitingCall,
    check_response,
    deliver_answer,
    saved_rule,
    select_waiting,
    waiting,
)
from holdfast.store import StreamedEvent
from holdfast.web.context import WebRequest
from holdfast.web.devices import has_right
from holdfast.web.route import get, post

RECENT_ROWS = 5_000
MAX_ANSWERED = 200


class AnswerBody(Value, forbid_unknown_fields=True):
    """A person's answer, with the digest of the call that was shown."""

    verdict: Literal["approve", "deny"]
    digest: str
    scope: Scope = "once"
    amount: int | None = None
    offer: int | None = None
    reason: str | None = None
    arguments: JsonObject | None = None
    """The arguments as the person edited them; the policy judges them again."""
    rule: str = ""
    """What a saved approval covers and how long, as it was shown. Without it, only a single call is approved."""


class GivenAnswer(Delivered):
    """What became of an answer. `problem` says why no process continues the session, and how to continue it."""

    problem: str = ""


class SavedRule(Value, omit_defaults=False):
    """What a saved approval would cover and how long, in the words of every list of grants."""

    text: str


class AnsweredCall(Value, omit_defaults=False):
    """An escalation that was answered, or that expired."""

    session: SessionId
    escalation: EscalationId
    effect: str
    at_ms: int
    verdict: Literal["approve", "deny", "expire"]
    principal: str
    transport: str
    reason: str
    waited_ms: int | None


async def list_waiting(request: WebRequest) -> list[WaitingCall]:
    """What waits, of all sessions or of one."""
    context = request.context
    session = request.query.get("session")
    return await waiting(context.store, session, now_ms=context.clock.now_ms(), kept=context.words)


async def answer(request: WebRequest) -> GivenAnswer:
    """Answer one call or question, if it is still the one that was shown."""
    context, body = request.context, request.given(AnswerBody)
    is_more = body.scope != "once" or body.arguments is not None
    if is_more and not has_right(request.device, "operate"):
        raise InvalidInput(
            "this device may approve single calls only", hint="save approvals on the machine itself"
        )
    if body.arguments is not None and (body.scope != "once" or body.verdict != "approve"):
        raise InvalidInput("an edited call can only be approved, and only once")
    session = request.session
    found = await waiting(context.store, session, now_ms=context.clock.now_ms())
    shown = select_waiting(found, request.path["id"])
    escalation = shown.escalation
    if body.digest != escalation.digest:
        raise EscalationUnknown("what you were shown is not what waits", hint="look at it again")
    response = Response(
        verdict=body.verdict,
        scope=body.scope,
        amount=body.amount,
        offer=body.offer,
        reason=body.reason,
        arguments=body.arguments,
    )
    is_text = bool(body.reason and body.reason.strip()) and body.verdict == "approve"
    check_response(escalation, response, is_text=is_text and shown.is_question)
    if body.verdict == "approve" and body.scope != "once":
        if body.scope == "always" and body.offer is None:
            raise InvalidInput("an approval for always must name one of the offers that were shown")
        if body.rule != _rule(escalation, response, context.clock.now_ms()):
            raise EscalationUnknown("what you were shown is not what would be saved", hint="look at it again")
    done = await deliver_answer(
        context.home,
        context.store,
        session,
        escalation,
        response,
        transport="web",
        clock=context.clock,
        principal=request.device.principal,
    )
    # The answer counts, whether or not the session goes on.
    problem = await _continue(request, shown) if done.delivery == "recorded" else ""
    return GivenAnswer(
        session=done.session,
        escalation=done.escalation,
        verdict=done.verdict,
        delivery=done.delivery,
        problem=problem,
    )


async def _continue(request: WebRequest, answered: WaitingCall) -> str:
    """Run a session here that no process holds. Returns why it does not go on, or nothing."""
    try:
        if not has_right(request.device, "operate"):
            raise InvalidInput("this device may only answer")
        await request.context.hosted.advance(request.session)
    except HoldfastError as error:
        resume = f"holdfast -r {answered.name or answered.session}"
        return escape_invisible(f"no process continues the session: {error}; continue it with: {resume}")
    return ""


async def show_rule(request: WebRequest) -> SavedRule:
    """What an approval for longer than once would save, before it is given."""
    context, query = request.context, request.query
    found = await waiting(context.store, request.session, now_ms=context.clock.now_ms())
    escalation = select_waiting(found, request.path["id"]).escalation
    scope = next((each for each in SAVED_LENGTHS if each == query.get("scope")), None)
    if scope is None:
        raise InvalidInput(f"{query.get('scope')!r} is not a length", hint=f"use {', '.join(SAVED_LENGTHS)}")
    response = Response(
        verdict="approve",
        scope=scope,
        amount=request.number("amount", 0) or None,
        offer=request.number("offer", 0) or None,
    )
    return SavedRule(text=_rule(escalation, response, context.clock.now_ms()))


def _rule(escalation: Escalation, response: Response, now_ms: int) -> str:
    return escape_invisible(saved_rule(escalation, response, now_ms=now_ms))


async def list_answered(request: WebRequest) -> list[AnsweredCall]:
    """What was answered or expired among the last events of all sessions, newest first."""
    store = request.context.store
    last = await store.last_row()
    opened: dict[EscalationId, EscalationOpened] = {}
    found: list[AnsweredCall] = []
    row = max(0, last - RECENT_ROWS)
    while some := await store.events_after(row):
        row = some[-1].row
        for streamed in some:
            event = streamed.event
            if isinstance(event, EscalationOpened):
                opened[event.escalation.id] = event
                continue
            if isinstance(event, EscalationAnswered | EscalationExpired):
                found.append(_answered(streamed, event, opened.get(event.escalation)))
    return found[: -MAX_ANSWERED - 1 : -1]


def _answered(
    streamed: StreamedEvent, event: EscalationAnswered | EscalationExpired, asked: EscalationOpened | None
) -> AnsweredCall:
    verdict: Literal["approve", "deny", "expire"] = "expire"
    principal = transport = reason = ""
    match event:
        case EscalationAnswered():
            verdict, principal, transport = event.response.verdict, str(event.principal), event.transport
            reason = event.response.reason or ""
        case EscalationExpired():
            reason = event.reason
    return AnsweredCall(
        session=streamed.session,
        escalation=event.escalation,
        effect=describe_effect(asked.escalation) if asked is not None else "",
        at_ms=streamed.at_ms,
        verdict=verdict,
        principal=principal,
        transport=transport,
        reason=escape_invisible(reason),
        waited_ms=streamed.at_ms - asked.escalation.opened_ms if asked is not None else None,
    )


ROUTES = (
    get(
        "/api/waiting",
        list_waiting,
        list[WaitingCall],
        "What waits for a person, as `holdfast waiting --json` prints it",
        query=("session",),
    ),
    post(
        "/api/waiting/{session}/{id}",
        answer,
        AnswerBody,
        GivenAnswer,
        "Approve or deny a call, or answer a question",
        right="answer",
    ),
    get(
        "/api/waiting/{session}/{id}/rule",
        show_rule,
        SavedRule,
        "What an approval for longer than once would save",
        query=("scope", "amount", "offer"),
    ),
    get("/api/answered", list_answered, list[AnsweredCall], "What was answered among the last events"),
)
