"""OpenTelemetry traces of turns, model calls, gate calls and waits, named by the GenAI conventions.

A span is made of two recorded events and has their times, so a trace says what the journal says. It has names, counts and results,
and no contents.
"""

from collections.abc import Mapping
from typing import Any, Protocol

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
from holdfast.session import LiveSessions, Session

_NS = 1_000_000


class Tracer(Protocol):
    """The part of OpenTelemetry's tracer that is used. Any: its own types, which are loaded only if traces are on."""

    def start_span(
        self, name: str, context: Any = None, *, attributes: Any = None, start_time: int | None = None
    ) -> Any:
        """Begin a span at a time in nanoseconds."""
        ...


def system_tracer() -> Tracer:
    """The tracer that the environment configures (`OTEL_*`). Raises EngineMissing without OpenTelemetry's SDK."""
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"traces need {problem.name!r}",
            hint="install it with: pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http",
        ) from problem
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    tracer: Tracer = trace.get_tracer("holdfast")
    return tracer


class Traces:
    """Makes spans of what the sessions of this process record from now on."""

    def __init__(self, live: LiveSessions, tracer: Tracer) -> None:
        self._tracer = tracer
        live.on_open(self._follow)

    def _follow(self, session: Session) -> None:
        before, spans = session.last_seq, _SessionSpans(self._tracer, session.id)

        def trace(recorded: RecordedEvent) -> None:
            if recorded.seq > before:
                spans.add(recorded)

        session.follow(trace)


class _SessionSpans:
    """The open spans of one session."""

    def __init__(self, tracer: Tracer, session: str) -> None:
        self._tracer = tracer
        self._session = session
        self._open: dict[tuple[str, object], Any] = {}
        self._turn: Any = None

    def add(self, recorded: RecordedEvent) -> None:
        """Begin or end what an event begins or ends."""
        at = recorded.at_ms * _NS
        match event := recorded.event:
            case MessagePosted() | CodePosted():
                self._turn = None
                self._turn = self._begin(
                    ("turn", event.turn),
                    "invoke_agent holdfast",
                    at,
                    {
                        "gen_ai.operation.name": "invoke_agent",
                        "holdfast.turn": event.turn,
                    },
                )
            case ModelAsked():
                self._begin(
                    ("model", event.step),
                    f"chat {event.model}",
                    at,
                    {
                        "gen_ai.operation.name": "chat",
                        "gen_ai.request.model": event.model,
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
                )
            case ModelFailed():
                self._end(("model", event.step), at, {"error.type": event.code})
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
                self._end(("call", event.call), at, error)
            case EscalationOpened():
                operation = event.escalation.call.operation
                self._begin(
                    ("wait", event.escalation.id), f"wait {operation}", at, {"gen_ai.tool.name": operation}
                )
            case EscalationAnswered():
                self._end(("wait", event.escalation), at, {"holdfast.verdict": event.response.verdict})
            case EscalationExpired():
                self._end(("wait", event.escalation), at, {"holdfast.verdict": "expire"})
            case TurnEnded():
                tag = str(type(event.outcome).__struct_config__.tag)
                self._end(("turn", event.turn), at, {"holdfast.outcome": tag})
            case _:
                pass

    def _begin(self, key: tuple[str, object], name: str, at: int, attributes: dict[str, object]) -> Any:
        context = None
        if self._turn is not None:
            from opentelemetry import trace

            context = trace.set_span_in_context(self._turn)
        attributes["gen_ai.conversation.id"] = self._session
        self._open[key] = self._tracer.start_span(name, context, attributes=attributes, start_time=at)
        return self._open[key]

    def _end(self, key: tuple[str, object], at: int, attributes: Mapping[str, object]) -> None:
        span = self._open.pop(key, None)  # None if another process began it
        if span is not None:
            span.set_attributes(dict(attributes))
            span.end(end_time=at)
