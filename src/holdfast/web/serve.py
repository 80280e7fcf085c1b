"""Running the web server: it listens on this machine, prints a link that works once, and ends with Ctrl-C."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.app import Runtime
from holdfast.core import SystemClock
from holdfast.core.errors import InvalidInput
from holdfast.gate import WebAddress, published_address
from holdfast.store import WorkStore
from holdfast.web.application import WebApplication
from holdfast.web.context import WebContext
from holdfast.web.devices import Devices
from holdfast.web.event_feed import EventFeed
from holdfast.web.hosted import HostedSessions
from holdfast.web.session_host import SessionHost, WorkerSessions
from holdfast.worker import shared_by_workers

MAX_CONNECTIONS = 64
DEFAULT_PORT = 7788


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that accepts requests."""

    context: WebContext
    port: int

    def link(self) -> str:
        """A new link that works once. The code is in the fragment, which browsers do not send."""
        return f"{self.context.origin}/#enter={self.context.devices.new_code('operate')}"


@asynccontextmanager
async def serve_web(
    runtime: Runtime, *, port: int = DEFAULT_PORT, origin: str | None = None, is_remote: bool = False
) -> AsyncIterator[RunningServer]:
    """Serve the sessions of a runtime on this machine for the duration of the block.

    `origin` is where a TLS proxy on this machine offers the server to others, such as `https://box.example`. With `is_remote`,
    workers run the sessions, and this process only posts to them.
    """
    import uvicorn

    from holdfast.web.timed_connection import TimedConnection

    if origin is not None:
        _check_origin(origin)
    listener = _listen(port)
    port = listener.getsockname()[1]
    origins = (f"http://127.0.0.1:{port}", f"http://localhost:{port}", *((origin,) if origin else ()))
    feed = EventFeed(runtime.store)
    hosted: SessionHost = HostedSessions(runtime, feed)
    keys: WorkStore | None = None
    if is_remote:
        shared = shared_by_workers(runtime.store)
        if shared is None:
            raise InvalidInput("only sessions of a store in PostgreSQL are run by workers")
        keys = shared[0]
        hosted = WorkerSessions(runtime, *shared)
        await shared[0].announce("web server")
    clock = SystemClock()
    context = WebContext(
        home=runtime.home,
        store=runtime.store,
        runtime=runtime,
        clock=clock,
        devices=Devices(clock),
        feed=feed,
        hosted=hosted,
        keys=keys,
        origin=origin or origins[0],
    )
    config = uvicorn.Config(
        WebApplication(context, origins=origins, port=port),
        log_config=None,
        access_log=False,  # an address may hold what nobody should keep
        server_header=False,
        date_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=2,
        http=TimedConnection,
        ws="none",
        proxy_headers=False,
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(_serve(server, listener))
    reading = asyncio.ensure_future(feed.run())
    try:
        await _until_started(server, serving)
        address = WebAddress(origin=context.origin, since_ms=clock.now_ms(), port=port)
        with published_address(runtime.home, address):
            yield RunningServer(context=context, port=port)
    finally:
        context.closed.set()
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=True)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await hosted.close()
        listener.close()


async def _serve(server: "uvicorn.Server", listener: socket.socket) -> None:  # type: ignore[name-defined]  # noqa: F821
    # Not `serve`, which takes over the signals of the process.
    await server._serve(sockets=[listener])


async def _until_started(server: object, serving: "asyncio.Future[None]") -> None:
    while not getattr(server, "started", False):
        if serving.done():
            await serving
            raise InvalidInput("the web server did not start")
        await asyncio.sleep(0.005)


def _listen(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it. Without it, an answer in two packets waits 40 ms for the acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as problem:
        listener.close()
        raise InvalidInput(
            f"port {port} cannot be used: {problem.strerror}",
            hint="choose another one: holdfast web --port 0",
        ) from None
    listener.listen(MAX_CONNECTIONS)
    return listener


def _check_origin(origin: str) -> None:
    host = origin.removeprefix("https://")
    if host == origin or not host or any(char in host for char in "/?#@ "):
        raise InvalidInput(
            f"{origin!r} is not an origin that others can use safely",
            hint="put a TLS proxy in front of it, and give its name: --origin https://NAME",
        )
