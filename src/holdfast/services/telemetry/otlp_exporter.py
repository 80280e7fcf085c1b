"""Spans for OpenTelemetry's SDK, which sends them by OTLP. Loaded only if traces are on, because it is not one of our dependencies."""

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

from holdfast.services.telemetry.trace_span import TraceSpan


class OtlpExporter:
    """Sends spans in batches to where the environment says. The last ones leave when the process ends."""

    def __init__(self) -> None:
        self._ids = _Ids()
        self._provider = TracerProvider(id_generator=self._ids)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("holdfast")

    def export(self, span: TraceSpan) -> None:
        # Every process decides about a turn as a whole.
        if not self._provider.sampler.should_sample(None, span.trace, span.name).decision.is_sampled():
            return
        context = Context()
        if span.parent:
            flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
            parent = trace.SpanContext(span.trace, span.parent, is_remote=True, trace_flags=flags)
            context = trace.set_span_in_context(trace.NonRecordingSpan(parent), context)
        is_chat = span.attributes.get("gen_ai.operation.name") == "chat"
        self._ids.of_turn = (span.trace, span.id) if span.id else None
        made = self._tracer.start_span(
            span.name,
            context,
            kind=trace.SpanKind.CLIENT if is_chat else trace.SpanKind.INTERNAL,
            attributes=dict(span.attributes),
            start_time=span.start,
        )
        if "error.type" in span.attributes:
            made.set_status(trace.Status(trace.StatusCode.ERROR))
        made.end(end_time=span.end)


class _Ids(RandomIdGenerator):  # type: ignore[misc]  # the SDK is not installed where types are checked
    """Chooses ids at random, but those of a turn."""

    of_turn: tuple[int, int] | None = None

    def generate_trace_id(self) -> int:
        return self.of_turn[0] if self.of_turn else super().generate_trace_id()

    def generate_span_id(self) -> int:
        return self.of_turn[1] if self.of_turn else super().generate_span_id()
