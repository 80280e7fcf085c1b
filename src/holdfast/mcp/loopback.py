"""HTTP servers on loopback, for clients on this machine. Who may call is up to the app; every app here requires a token."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp

HOST = "127.0.0.1"
MAX_HEADER_BYTES = 64 * 1024


@contextlib.asynccontextmanager
async def serve_on_loopback(app: "ASGIApp", *, port: int) -> AsyncIterator[str]:
    """Serve until the block exits; yields the address, such as `http://127.0.0.1:8000`."""
    import uvicorn

    from holdfast.mcp.loopback_guards import LocalOnlyMiddleware, TimedHeaderProtocol

    with socket.create_server((HOST, port)) as listening_socket:
        # Connections inherit it. Without it, an answer in two packets waits 40 ms for the acknowledgement of the first.
        listening_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        authority = f"{HOST}:{listening_socket.getsockname()[1]}"
        # At shutdown, open streams are closed at once and without a log message.
        config = uvicorn.Config(
            LocalOnlyMiddleware(app, authority),
            log_level="critical",
            access_log=False,
            lifespan="on",
            timeout_graceful_shutdown=0,
            http=TimedHeaderProtocol,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        )
        listener = uvicorn.Server(config)
        serving = asyncio.create_task(listener.serve([listening_socket]))
        try:
            while not listener.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.005)
            yield f"http://{authority}"
        finally:
            listener.should_exit = True
            await serving
