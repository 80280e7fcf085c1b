"""OpenTelemetry traces of turns, model calls, gate calls and waits, named by the GenAI conventions.

A span is made of two recorded events and has their times, so a trace says what the journal says. It has names, counts and results,
and no contents. The first event may be of another process, which parked the turn or died: the process that records the second one sends
the span. The ids of a turn follow from its session and its number, so that the spans of all processes are one trace.
"""

import hashlib
from collections.abc import Mapping

from holdfast.core import Value
from holdfast.core.errors import EngineMissing
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    MessagePosted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    TurnEnded,
)
from holdfast.services.telemetry.trace_span import SpanExporter, TraceSpan
from holdfast.session import LiveSessions, Session

_NS = 1_000_000


def system_exporter() -> SpanExporter:
    """The exporter that the environment configures (`OTEL_*`). Raises EngineMissing without OpenTelemetry's SDK."""
    try:
        from holdfast.services.telemetry.otlp_exporter import OtlpExporter
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"traces need {problem.name!r}",
            hint="install it with: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
        ) from problem
    return OtlpExporter()


class Traces:
    """Makes spans of what the sessions of this process record from now on."""

    def __init__(self, live: LiveSessions, exporter: SpanExporter) -> None:
        self._exporter = exporter
        live.on_open(self._follow)

    def _follow(self, session: Session) -> None:
        before, spans = session.last_seq, _SessionSpans(self._exporter, session.id)

        def trace(recorded: RecordedEvent) -> None:
            spans.add(recorded, is_new=recorded.seq > before)

        session.follow(trace)


class _Begun(Value):
    name: str
    at: int
    attributes: Mapping[str, object]


class _SessionSpans:
    """What began in one session and did not end."""

    def __init__(self, exporter: SpanExporter, session: str) -> None:
        self._exporter = exporter
        self._session = session
        self._begun: dict[tuple[str, object], _Begun] = {}
        self._turn = 0

    def add(self, recorded: RecordedEvent, *, is_new: bool) -> None:
        """Begin or end what an event begins or ends. What ended before belongs to another process, which sent it."""
        at = recorded.at_ms * _NS
        match event := recorded.event:
            case MessagePosted() | CodePosted():
                self._turn = event.turn
                self._begin(
                    ("turn", event.turn),
                    "invoke_agent holdfast",
                    at,
                    {
                        "gen_ai.operation.name": "invoke_agent",
                        "gen_ai.agent.name": "holdfast",
                        "holdfast.turn": event.turn,
                    },
                )
            case ModelAsked():
                provider, _, model = event.model.partition(":")
                self._begin(
                    ("model", event.step),
                    f"chat {model or provider}",
                    at,
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.provider.name": provider,
                        "gen_ai.request.model": model or provider,
                    },
                )
            case ModelReplied():
                self._end(
                    ("model", event.step),
                    at,
                    {
                        "gen_ai.response.finish_reasons": (event.finish,),
                        "gen_ai.usage.input_tokens": event.usage.input_tokens,
                        "gen_ai.usage.output_tokens": event.usage.output_tokens,
                    },
                    is_new=is_new,
                )
            case ModelFailed():
                self._end(("model", event.step), at, {"error.type": event.code}, is_new=is_new)
            case CallIntended():
                self._begin(
                    ("call", event.call.id),
                    f"execute_tool {event.call.operation}",
                    at,
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": event.call.operation,
                        "gen_ai.tool.call.id": event.call.id,
                        "holdfast.verdict": event.decision.verdict,
                    },
                )
            case CallSettled():
                error = {} if event.status == "ok" else {"error.type": event.status}
                self._end(("call", event.call), at, error, is_new=is_new)
            case EscalationOpened():
                operation = event.escalation.call.operation
                self._begin(
                    ("wait", event.escalation.id), f"wait {operation}", at, {"gen_ai.tool.name": operation}
                )
            case EscalationAnswered():
                self._end(
                    ("wait", event.escalation),
                    at,
                    {"holdfast.verdict": event.response.verdict},
                    is_new=is_new,
                )
            case EscalationExpired():
                self._end(("wait", event.escalation), at, {"holdfast.verdict": "expire"}, is_new=is_new)
            case TurnEnded():
                tag = str(type(event.outcome).__struct_config__.tag)
                self._end(("turn", event.turn), at, {"holdfast.outcome": tag}, is_new=is_new)
            case _:
                pass

    def _begin(self, key: tuple[str, object], name: str, at: int, attributes: dict[str, object]) -> None:
        attributes["gen_ai.conversation.id"] = self._session
        self._begun[key] = _Begun(name=name, at=at, attributes=attributes)

    def _end(
        self, key: tuple[str, object], at: int, attributes: Mapping[str, object], *, is_new: bool
    ) -> None:
        begun = self._begun.pop(key, None)
        if begun is None or not is_new:
            return
        digest = hashlib.sha256(f"{self._session} {self._turn}".encode()).digest()
        trace, turn = int.from_bytes(digest[:16], "big"), int.from_bytes(digest[16:24], "big")
        span = TraceSpan(
            name=begun.name,
            start=begun.at,
            end=at,
            attributes={**begun.attributes, **attributes},
            trace=trace,
            id=turn if key[0] == "turn" else 0,
            parent=turn if key[0] != "turn" else 0,
        )
        self._exporter.export(span)
