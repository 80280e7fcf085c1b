"""The web application in this process, without a socket: requests as a browser on our own page sends them."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from tests.web.http import Answer

from holdfast.app import Runtime
from holdfast.commands import CommandSandboxes
from holdfast.core import SystemClock
from holdfast.session import Settings
from holdfast.store import Right
from holdfast.web.application import WebApplication
from holdfast.web.context import WebContext
from holdfast.web.devices import Devices
from holdfast.web.event_feed import EventFeed
from holdfast.web.hosted import HostedSessions
from holdfast.web.session_host import WorkerSessions
from holdfast.worker import shared_by_workers

ORIGIN = "http://127.0.0.1:7788"


class WebClient:
    """A browser of one device, in memory."""

    def __init__(self, app: WebApplication, context: WebContext, token: str) -> None:
        self.app = app
        self.context = context
        self.token = token

    def as_device(self, right: Right) -> "WebClient":
        """Another device with a right."""
        token, _ = self.context.devices.enter(self.context.devices.new_code(right), name=right)
        return WebClient(self.app, self.context, token)

    async def get(self, path: str) -> Answer:
        return await self.send("GET", path)

    async def post(self, path: str, body: object) -> Answer:
        return await self.send("POST", path, json.dumps(body).encode())

    async def send(self, method: str, path: str, body: bytes = b"", *more: tuple[bytes, bytes]) -> Answer:
        """Send one request and read the whole answer."""
        sent: list[MutableMapping[str, Any]] = []
        parts = [{"type": "http.request", "body": body}]

        async def receive() -> MutableMapping[str, Any]:
            if parts:
                return parts.pop(0)
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        await self.app(self.scope(method, path, *more), receive, send)
        start, *rest = sent
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], headers, b"".join(each["body"] for each in rest))

    def scope(self, method: str, path: str, *more: tuple[bytes, bytes]) -> MutableMapping[str, Any]:
        """The ASGI scope of a request."""
        place, _, query = path.partition("?")
        headers = [
            (b"host", b"127.0.0.1:7788"),
            (b"origin", ORIGIN.encode()),
            (b"sec-fetch-site", b"same-origin"),
            (b"content-type", b"application/json"),
            (b"authorization", b"Bearer " + self.token.encode()),
            *more,
        ]
        return {
            "type": "http",
            "method": method,
            "path": place,
            "query_string": query.encode(),
            "headers": headers,
            "client": None,
        }


@asynccontextmanager
async def web_client(
    home: Path, *, sandboxes: CommandSandboxes | None = None, store_url: str | None = None
) -> AsyncIterator[WebClient]:
    """The application over a home, and a client that may do everything. With an address, workers run the sessions."""
    runtime = await Runtime.start(
        home=home, settings=Settings(), servers=(), sandboxes=sandboxes, store_url=store_url
    )
    feed = EventFeed(runtime.store)
    clock = SystemClock()
    shared = shared_by_workers(runtime.store) if store_url is not None else None
    context = WebContext(
        home=runtime.home,
        store=runtime.store,
        runtime=runtime,
        clock=clock,
        devices=Devices(clock),
        feed=feed,
        hosted=HostedSessions(runtime, feed) if shared is None else WorkerSessions(runtime, *shared),
        keys=None if shared is None else shared[0],
        origin=ORIGIN,
    )
    reading = asyncio.ensure_future(feed.run())
    try:
        app = WebApplication(context, origins=(ORIGIN,), port=7788)
        yield WebClient(app, context, "").as_device("operate")
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading
        await context.hosted.close()
        await runtime.close()
