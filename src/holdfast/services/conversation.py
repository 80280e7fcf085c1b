"""The conversation of a session as items to show: messages, replies, code, calls and outcomes.

Items come from single events, so that a page can be built from a journal and kept up to date from a stream. An event that
settles something gives an item with the same key as the one that began it; the later one replaces the earlier one.
"""

from collections.abc import Iterable
from typing import Literal

from holdfast.agent import hidden_output
from holdfast.core import (
    Call,
    Cycle,
    Error,
    Json,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    TextPart,
    ThinkingPart,
    Value,
    encode,
    escape_invisible,
)
from holdfast.core.approval_text import describe_call_lines, describe_effect
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    CodePosted,
    ControlRequestApplied,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    Event,
    HistoryCompacted,
    InstructionsRead,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Noted,
    OutputRevealed,
    ProposalsCommitted,
    ProposalsRejected,
    RunEnded,
    RunStarted,
    SessionRewound,
    ToolReturned,
    TurnEnded,
)

ItemKind = Literal[
    "message", "reply", "thinking", "code", "output", "call", "approval", "outcome", "note", "rewind"
]
MAX_TEXT = 20_000
"""Longer texts are cut in the conversation; the record has them whole."""


class ConversationItem(Value, omit_defaults=False):
    """One thing in the conversation. Its texts have no invisible characters."""

    key: str
    seq: int
    at_ms: int
    kind: ItemKind
    title: str
    text: str = ""
    state: str = ""
    """How it stands: the verdict and result of a call, or the kind of an outcome."""
    hidden: str = ""
    """The name of an output that is kept from the model, and that a person can let it read."""


def conversation(recorded: Iterable[tuple[int, int, Event]]) -> list[ConversationItem]:
    """The items of some events, each given with its position and time."""
    return [item for seq, at_ms, event in recorded for item in items_of(seq, at_ms, event)]


def items_of(seq: int, at_ms: int, event: Event) -> list[ConversationItem]:
    """The items of one event."""

    def item(
        kind: ItemKind, title: str, text: str = "", *, key: str = "", state: str = "", hidden: str = ""
    ) -> ConversationItem:
        return ConversationItem(
            key=key or str(seq),
            seq=seq,
            at_ms=at_ms,
            kind=kind,
            title=escape_invisible(title),
            text=escape_invisible(_cut(text)),
            state=state,
            hidden=hidden,
        )

    def kept() -> list[ConversationItem]:
        name = hidden_output(event)
        title = f"kept from the model as {name}"
        return [item("note", title, key=f"hidden {name}", hidden=name)] if name is not None else []

    match event:
        case MessagePosted():
            return [item("message", str(event.principal), event.text)]
        case CodePosted():
            return [item("code", f"code ({event.language})", event.code)]
        case ModelReplied():
            items: list[ConversationItem] = []
            for number, part in enumerate(event.message.parts):
                match part:
                    case TextPart() if part.text.strip():
                        items.append(item("reply", event.model, part.text, key=f"{seq}.{number}"))
                    case ThinkingPart() if part.text.strip():
                        items.append(item("thinking", "reasoning", part.text, key=f"{seq}.{number}"))
                    case _:
                        pass
            return items
        case ModelFailed():
            return [item("note", "the model did not answer", event.reason, state="error")]
        case RunStarted():
            return [item("code", f"code ({event.engine})", event.code)]
        case RunEnded():
            text = "\n".join(part for part in (event.printed, event.error) if part)
            output = [item("output", "output", text, state=event.status)] if text else []
            return [*output, *kept()]
        case ToolReturned():
            return kept()
        case InstructionsRead():
            return [item("note", f"the model got {event.file}, the instructions for its folder")]
        case OutputRevealed():
            title = f"{event.output} was shown to the model by {event.principal}"
            return [item("note", title, key=f"hidden {event.output}")]
        case CallIntended():
            return [
                item(
                    "call",
                    event.call.operation,
                    _call_text(event.call),
                    key=f"call {event.call.id}",
                    state="running",
                )
            ]
        case CallRefused():
            text = f"{_call_text(event.call)}\n{event.decision.reason}"
            return [item("call", event.call.operation, text, key=f"call {event.call.id}", state="refused")]
        case CallSettled():
            text = event.error or _json_text(event.result)
            return [item("call", "", text, key=f"call {event.call}", state=event.status)]
        case EscalationOpened():
            asked = event.escalation
            return [item("approval", describe_effect(asked), key=f"asked {asked.id}", state="waiting")]
        case EscalationAnswered():
            verdict = "approved" if event.response.verdict == "approve" else "denied"
            words = f"{verdict} by {event.principal}, {event.transport}"
            return [
                item(
                    "approval",
                    words,
                    event.response.reason or "",
                    key=f"asked {event.escalation}",
                    state=verdict,
                )
            ]
        case EscalationExpired():
            return [
                item(
                    "approval", "not answered", event.reason, key=f"asked {event.escalation}", state="expired"
                )
            ]
        case TurnEnded():
            return [item("outcome", *_outcome(event.outcome), state=type(event.outcome).__name__.lower())]
        case ProposalsCommitted():
            paths = "\n".join(change.path for change in event.changes)
            return [item("note", f"committed by {event.principal}", paths, state="good")]
        case ProposalsRejected():
            return [item("note", f"rejected by {event.principal}", "\n".join(event.paths))]
        case SessionRewound():
            return [item("rewind", f"rewound to the end of turn {event.turn}")]
        case HistoryCompacted():
            return [item("note", "earlier turns were summarized", event.summary)]
        case ControlRequestApplied():
            return [
                item(
                    "note",
                    f"{event.action.replace('-', ' ')} from {event.transport}",
                    event.error,
                    state="error" if event.error else "",
                )
            ]
        case Noted():
            return [item("note", event.code, event.text)]
        case _:
            return []


def _outcome(outcome: Outcome) -> tuple[str, str]:
    match outcome:
        case Ok():
            return "done", _json_text(outcome.value)
        case Proposed():
            return "done, with changes to commit", "\n".join(outcome.proposals)
        case Needs():
            return f"needs {outcome.need}", outcome.description
        case Nonconverged():
            return f"stopped: {outcome.reason}", _json_text(outcome.value)
        case Cycle():
            return "stopped: it repeated itself", ""
        case Error():
            return "failed", "\n".join(filter(None, (outcome.message, outcome.hint)))


def _call_text(call: Call) -> str:
    return "\n".join(line.removeprefix("  ") for line in describe_call_lines(call)[1:])


def _json_text(value: Json) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n... {len(text) - MAX_TEXT:,} more characters; `holdfast show --full` has them"
