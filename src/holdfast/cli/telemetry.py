"""The options for metrics and traces of a process that runs sessions for others."""

import argparse
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from holdfast.app import Runtime
from holdfast.cli.option_types import port_number
from holdfast.cli.terminal.console import Console
from holdfast.services import Metrics, Traces, serve_metrics, system_exporter


def add_telemetry_options(parser: argparse.ArgumentParser) -> None:
    """Add `--metrics-port` and `--traces`."""
    parser.add_argument(
        "--metrics-port",
        type=port_number,
        metavar="N",
        help="serve counts for Prometheus at /metrics of this port, on this machine only",
    )
    parser.add_argument(
        "--traces",
        action="store_true",
        help="send OpenTelemetry traces to where $OTEL_EXPORTER_OTLP_ENDPOINT says",
    )


@asynccontextmanager
async def telemetry(arguments: argparse.Namespace, runtime: Runtime, console: Console) -> AsyncIterator[None]:
    """What the options ask for, for the duration of the block."""
    async with AsyncExitStack() as stack:
        if arguments.traces:
            Traces(runtime.live_sessions, system_exporter())
        if arguments.metrics_port is not None:
            metrics = Metrics(runtime.live_sessions, runtime.store)
            port = await stack.enter_async_context(serve_metrics(metrics.text, arguments.metrics_port))
            console.say(f"metrics: http://127.0.0.1:{port}/metrics", "dim")
        yield
