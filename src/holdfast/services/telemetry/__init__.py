"""Telemetry of one process, for an operator: counts for Prometheus and traces for OpenTelemetry. Off unless it is asked for."""

from holdfast.services.telemetry.metrics import Metrics
from holdfast.services.telemetry.metrics_server import serve_metrics
from holdfast.services.telemetry.trace_span import TraceSpan
from holdfast.services.telemetry.traces import Traces, system_exporter

__all__ = ["Metrics", "TraceSpan", "Traces", "serve_metrics", "system_exporter"]
