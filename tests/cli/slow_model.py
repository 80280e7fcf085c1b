"""A slow model server: it answers when the test allows it, or after a time limit."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.provider_stub import StubServer

from holdfast.core import JsonObject
from holdfast.models import Reply


class SlowModel:
    """Its address, and the event that lets it answer."""

    def __init__(self, reply: Reply, limit_seconds: float) -> None:
        self.may_answer = threading.Event()
        self.spec = ""
        self._reply = reply
        self._limit_seconds = limit_seconds
        self._ready = threading.Event()

    def answer(self, request: JsonObject) -> Reply:
        """The reply, late."""
        self.may_answer.wait(self._limit_seconds)
        return self._reply

    async def serve(self, over: asyncio.Event) -> None:
        """Serve until `over` is set, in a loop that a late answer may block."""
        async with StubServer(self.answer, key="stub-key") as stub:
            self.spec = f"server:{stub.url}/v1#any"
            self._ready.set()
            await over.wait()

    @contextmanager
    def serving(self) -> Iterator["SlowModel"]:
        """Serve while the block runs."""
        loop, over = asyncio.new_event_loop(), asyncio.Event()
        thread = threading.Thread(target=lambda: loop.run_until_complete(self.serve(over)))
        thread.start()
        assert self._ready.wait(30)
        try:
            yield self
        finally:
            self.may_answer.set()
            loop.call_soon_threadsafe(over.set)
            thread.join(30)
            loop.close()
