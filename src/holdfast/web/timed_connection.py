"""The HTTP/1.1 connection of the web server: it is closed if a whole request does not arrive in time.

Uvicorn limits how many connections there are, and how long one may idle between two requests, but not how long a request
may take to arrive. Without this, a program that begins as many requests as there are connections keeps everyone out.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

READ_SECONDS = 10.0
"""A request that is not there after two of these is given up."""


class TimedConnection(H11Protocol):
    """A connection that must bring its requests whole, and soon."""

    _timer: asyncio.TimerHandle | None = None
    _was_reading = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the clock."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(READ_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """The next request has its own time."""
        self._was_reading = False
        super().on_response_complete()

    def _look(self) -> None:
        is_reading = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_reading and self._was_reading:
            self.transport.abort()
            return
        self._was_reading = is_reading
        self._timer = self.loop.call_later(READ_SECONDS, self._look)
