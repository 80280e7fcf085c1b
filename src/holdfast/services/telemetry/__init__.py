"""Telemetry of one process, for an operator: counts for Prometheus and traces for OpenTelemetry. Off unless it is asked for."""

from holdfast.services.telemetry.metrics import Metrics
from holdfast.services.telemetry.metrics_server import serve_metrics
from holdfast.services.telemetry.traces import Traces, system_tracer

__all__ = ["Metrics", "Traces", "serve_metrics", "system_tracer"]
