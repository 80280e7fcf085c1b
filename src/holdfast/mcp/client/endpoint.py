"""The contract between a connection and the transports: what a connector is given and what it returns."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, NamedTuple

from holdfast.mcp.client.notifications import RateLimiter
from holdfast.mcp.config.servers import ServerSpec
from holdfast.process.supervised import SupervisedProcess

Streams = AsyncIterator[Any]
"""Yields the pair of incoming and outgoing message streams. Any: the MCP library does not export their types."""
Connector = Callable[["Endpoint"], AbstractAsyncContextManager[Any]]
"""Opens the two message streams of a server and closes them when the block exits."""


class Endpoint(NamedTuple):
    """Everything a transport may need to reach one server."""

    spec: ServerSpec
    environ: Mapping[str, str]
    rate_limiter: RateLimiter
    process: SupervisedProcess | None
    """The server's program; None if the transport does not start one."""


def load_connector(spec: ServerSpec) -> Connector:
    """The `connect` function of the transport that a server uses."""
    connector: Connector = import_module(spec.transport.module).connect
    return connector
