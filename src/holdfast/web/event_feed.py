"""The event feed of all sessions for the browsers: one reader of the store, and a bounded queue for each browser.

A browser that is too far behind gets one `reset` frame and loads its page again, instead of an endless stream of old events.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

from holdfast.core import Value, encode
from holdfast.core.events import (
    CallRefused,
    CallSettled,
    EscalationAnswered,
    EscalationExpired,
    ModelReplied,
    RunEnded,
    TurnEnded,
)
from holdfast.services import ConversationItem, items_of
from holdfast.store import Store, StreamedEvent

MAX_BEHIND = 5_000
QUEUE_SIZE = 1_000
ALIVE_SECONDS = 15.0
MAX_LIVE_CHARACTERS = 20_000
_ENDS: dict[type, frozenset[str]] = {
    ModelReplied: frozenset({"text", "thinking"}),
    CallSettled: frozenset({"output"}),
    CallRefused: frozenset({"output"}),
    RunEnded: frozenset({"output"}),
    TurnEnded: frozenset({"text", "thinking", "output"}),
}
"""The events with which the text that arrived before is on record."""


class NewsFrame(Value, omit_defaults=False):
    """One event for the browser: what happened where, and what the conversation shows of it."""

    row: int
    session: str
    seq: int
    at_ms: int
    event: str
    """The tag of the event."""
    items: list[ConversationItem]
    settled: str = ""
    """The escalation that this event answers or ends."""


def frame_of(streamed: StreamedEvent) -> bytes:
    """The frame of an event, as the event stream format of the HTML standard."""
    event = streamed.event
    settled = str(event.escalation) if isinstance(event, EscalationAnswered | EscalationExpired) else ""
    frame = NewsFrame(
        row=streamed.row,
        session=streamed.session,
        seq=streamed.seq,
        at_ms=streamed.at_ms,
        event=str(type(event).__struct_config__.tag),
        items=items_of(streamed.seq, streamed.at_ms, event),
        settled=settled,
    )
    return b"id: %d\ndata: %s\n\n" % (streamed.row, encode(frame))


class LiveText(Value, omit_defaults=False):
    """The end of what arrives right now, such as the output of a program. `end` only increases, so that no piece counts twice."""

    text: str
    end: int


RESET = b"event: reset\ndata: {}\n\n"
ALIVE = b": alive\n\n"


class _Reader:
    """One browser."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(QUEUE_SIZE)
        self.is_lost = False

    def put(self, row: int, frame: bytes) -> None:
        try:
            self.queue.put_nowait((row, frame))
        except asyncio.QueueFull:
            self.is_lost = True


class EventFeed:
    """Reads what any process records, and passes it on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: set[_Reader] = set()
        self._live: dict[str, dict[str, LiveText]] = {}
        self.row = 0
        """The last row that was passed on."""
        self._has_started = asyncio.Event()
        """Set once `row` is that of the store. A browser that comes back before would seem to be ahead of it."""

    async def run(self) -> None:
        """Pass on every new event until cancelled."""
        with self._store.watch() as watch:
            self.row = await self._store.last_row()
            self._has_started.set()
            while True:
                while some := await self._store.events_after(self.row):
                    for streamed in some:
                        self.row = streamed.row
                        self._settle(streamed)
                        if self._readers:
                            self._send(streamed.row, frame_of(streamed))
                await watch.changed()

    def send_text(self, session: str, kind: str, text: str) -> None:
        """Pass on a piece of a reply or of output while it arrives. It is not recorded, so it has no row."""
        kinds = self._live.setdefault(session, {})
        before = kinds.get(kind, LiveText(text="", end=0))
        end = before.end + len(text)
        kinds[kind] = LiveText(text=(before.text + text)[-MAX_LIVE_CHARACTERS:], end=end)
        if self._readers:
            body = encode({"session": session, "kind": kind, "text": text, "end": end})
            self._send(0, b"event: text\ndata: %s\n\n" % body)

    def live(self, session: str) -> dict[str, LiveText]:
        """What arrives right now in a session, by kind, for a page that opens in the middle of it."""
        return dict(self._live.get(session, {}))

    def _settle(self, streamed: StreamedEvent) -> None:
        """Forget what is on record now."""
        kinds = self._live.get(streamed.session, {})
        for ended, settled in _ENDS.items():
            if isinstance(streamed.event, ended):
                for kind in settled & kinds.keys():
                    kinds[kind] = LiveText(text="", end=kinds[kind].end)

    def _send(self, row: int, frame: bytes) -> None:
        for reader in self._readers:
            reader.put(row, frame)

    async def frames(self, after: int | None) -> AsyncIterator[bytes]:
        """The stream of one browser: what it missed since a row, then everything new."""
        reader = _Reader()
        self._readers.add(reader)
        try:
            yield b"retry: 500\n\n"
            await self._has_started.wait()
            last = self.row if after is None else after
            if self.row - last > MAX_BEHIND or last > self.row:
                yield RESET
                last = self.row
            while last < self.row and (missed := await self._store.events_after(last)):
                for streamed in missed:
                    last = streamed.row
                    yield frame_of(streamed)
            while not reader.is_lost:
                try:
                    async with asyncio.timeout(ALIVE_SECONDS):
                        row, frame = await reader.queue.get()
                except TimeoutError:
                    yield ALIVE
                    continue
                if row == 0 or row > last:
                    yield frame
                    last = max(last, row)
            yield RESET
        finally:
            self._readers.discard(reader)


async def follow(frames: AsyncIterator[bytes], closed: asyncio.Event) -> AsyncIterator[bytes]:
    """The frames until the server closes, so that an open stream does not hold it up."""
    ending = asyncio.ensure_future(closed.wait())
    try:
        async with aclosing(frames) as source:  # type: ignore[type-var]
            while True:
                step = asyncio.ensure_future(anext(source))
                await asyncio.wait({step, ending}, return_when=asyncio.FIRST_COMPLETED)
                if not step.done():
                    step.cancel()
                    with suppress(asyncio.CancelledError, StopAsyncIteration):
                        await step
                    return
                try:
                    yield step.result()
                except StopAsyncIteration:
                    return
    finally:
        ending.cancel()
