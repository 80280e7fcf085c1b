"""Sample events for the tests of the store."""

from decimal import Decimal

from holdfast.core import (
    PERSON,
    Call,
    Decision,
    Escalation,
    EscalationId,
    ModelMessage,
    Ok,
    TextPart,
    Usage,
    call_id,
)
from holdfast.core.events import (
    EscalationOpened,
    Event,
    MessagePosted,
    ModelReplied,
    SessionOpened,
    TurnEnded,
)


def opened(*, name: str | None = None, folder: str = "/project") -> SessionOpened:
    return SessionOpened(
        principal=PERSON,
        folder=folder,
        workspace="/project",
        policy="ask-always",
        policy_digest="d",
        model="scripted",
        name=name,
    )


def said(turn: int, text: str = "hello") -> MessagePosted:
    return MessagePosted(turn=turn, text=text, principal=PERSON)


def replied(turn: int, text: str = "yes", *, cost: str | None = "0.25") -> ModelReplied:
    usage = Usage(input_tokens=10, output_tokens=5, cost_usd=None if cost is None else Decimal(cost))
    return ModelReplied(
        turn=turn, step=1, model="scripted", message=ModelMessage(parts=(TextPart(text=text),)), usage=usage
    )


def ended(turn: int) -> TurnEnded:
    return TurnEnded(turn=turn, outcome=Ok(value="done"))


def turn(number: int, text: str = "hello") -> tuple[Event, ...]:
    return said(number, text), replied(number), ended(number)


def asked(number: int, id: str = "e1") -> EscalationOpened:
    call = Call(id=call_id(number, 1), operation="world.delete", arguments={"path": "a.txt"})
    decision = Decision(verdict="escalate", rule="r", reason="because")
    return EscalationOpened(
        escalation=Escalation(
            id=EscalationId(id),
            call=call,
            decision=decision,
            digest=call.digest,
            tool_digest="t",
            policy_digest="p",
            opened_ms=0,
            expires_ms=1,
        )
    )
