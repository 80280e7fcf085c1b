"""The log of a pair: a second journal with its queued messages and notices.

The pair's own journal is leased to the member that answers. Queueing a message or a notice must not wait for that
lease and must survive a restart, so both are recorded here, and so are their receipts.
"""

import asyncio
from collections.abc import Sequence
from uuid import uuid4
from weakref import WeakValueDictionary

import msgspec

from holdfast.core import Clock, Outcome, SessionId, Value, pluralize
from holdfast.core.errors import SessionExists, SessionNotFound
from holdfast.core.events import (
    Event,
    MessageQueued,
    MessageSettled,
    NoticeQueued,
    NoticesDelivered,
    RecordedEvent,
    SessionOpened,
)
from holdfast.core.projection import imported_through
from holdfast.store import Store, open_when_released
from holdfast.teams.contract import TeamMessage
from holdfast.teams.errors import AskRefused, with_recovery_hint
from holdfast.teams.message_text import MAX_TEXT
from holdfast.teams.pairs import Pair

LEASE_SECONDS = 10.0
_PREFIX = "mail "
_PREFIXES = "team-", "mail-"
"""How the id of a pair's session begins, and that of its log."""
_LOCKS: "WeakValueDictionary[tuple[int, SessionId], asyncio.Lock]" = WeakValueDictionary()
"""One writer at a time within this process, so that its tasks wait for each other and do not poll for the lease."""


def message_queue_of(session: SessionId) -> SessionId | None:
    """The session with the queued messages of a pair's session; None for any other session."""
    own, queue = _PREFIXES
    return SessionId(session.replace(own, queue, 1)) if session.startswith(own) else None


class PairLog:
    """The journal of one pair's queued messages and notices."""

    def __init__(self, pair: Pair, *, store: Store, folder: str) -> None:
        self.pair = pair
        self._store = store
        self._folder = folder
        self._session = SessionId(pair.session_id(folder).replace(*_PREFIXES, 1))

    async def append(self, event: Event) -> None:
        """Append an event; it is durable when this returns."""
        opened = SessionOpened(
            principal=self.pair.principal,
            folder=_log_folder(self._folder),
            workspace="",
            policy="",
            policy_digest="",
            model="",
            description=f"{_PREFIX}{self.pair}",
        )
        async with _LOCKS.setdefault((id(self._store), self._session), asyncio.Lock()):
            try:
                journal = await self._store.create(opened, session=self._session)
            except SessionExists:
                with with_recovery_hint(self._session):
                    journal = await open_when_released(
                        self._store, self._session, timeout_seconds=LEASE_SECONDS
                    )
            try:
                await journal.append(event)
            finally:
                await journal.release()

    async def read(self) -> Sequence[RecordedEvent]:
        """All events, oldest first. What an imported file queued is not delivered here."""
        try:
            with with_recovery_hint(self._session):
                recorded = await self._store.read(self._session)
        except SessionNotFound:
            return ()
        imported = imported_through(recorded)
        return [entry for entry in recorded if entry.seq > imported] if imported else recorded


async def pair_logs(store: Store, folder: str) -> list[PairLog]:
    """The log of every pair, least recently used first."""
    pairs = [
        Pair.parse(line.description.removeprefix(_PREFIX))
        for line in await store.sessions(folder=_log_folder(folder))
    ]
    return [PairLog(pair, store=store, folder=folder) for pair in reversed(pairs) if pair is not None]


def _log_folder(folder: str) -> str:
    return f"{folder}/mail"


DAY_MS = 86_400_000
MAX_NOTICES = 100
"""Notices of one pair that wait to be delivered. All of them are part of the next message."""


class Notice(Value):
    """A text for another team that needs no answer, and its delivery."""

    id: str
    text: str
    left_ms: int
    expires_ms: int
    delivered_with: str = ""
    """The id of the message that it was delivered with."""
    delivered_ms: int = 0


class Notices:
    """Queues, delivers and lists the notices of one pair."""

    def __init__(self, log: PairLog, *, clock: Clock) -> None:
        self._log = log
        self._clock = clock

    async def add(self, text: str, *, ttl_days: float) -> Notice:
        """Queue a notice; it is durable when this returns. Raises AskRefused if too much waits already."""
        waiting = await self.pending()
        if len(waiting) >= MAX_NOTICES or sum(len(each.text) for each in waiting) + len(text) > MAX_TEXT:
            raise AskRefused(
                f"{pluralize(len(waiting), 'notice')} to {self._log.pair.receiver!r} wait already; at most "
                f"{MAX_NOTICES} may, with {MAX_TEXT:,} characters together",
                hint="send a message: the notices are delivered with it",
            )
        now = self._clock.now_ms()
        notice = Notice(id=str(uuid4()), text=text, left_ms=now, expires_ms=now + round(ttl_days * DAY_MS))
        await self._log.append(
            NoticeQueued(
                notice=notice.id,
                text=text,
                principal=self._log.pair.principal,
                expires_ms=notice.expires_ms,
            )
        )
        return notice

    async def all(self) -> list[Notice]:
        """Every notice, oldest first."""
        found: dict[str, Notice] = {}
        for entry in await self._log.read():
            match entry.event:
                case NoticeQueued() as left:
                    found[left.notice] = Notice(
                        id=left.notice, text=left.text, left_ms=entry.at_ms, expires_ms=left.expires_ms
                    )
                case NoticesDelivered() as delivered:
                    for id in delivered.notices:
                        found[id] = msgspec.structs.replace(
                            found[id], delivered_with=delivered.message, delivered_ms=entry.at_ms
                        )
                case _:
                    pass
        return list(found.values())

    async def pending(self) -> list[Notice]:
        """The notices that are neither delivered nor expired."""
        now = self._clock.now_ms()
        return [each for each in await self.all() if not each.delivered_with and each.expires_ms > now]

    async def mark_delivered(self, notices: list[Notice], *, message_id: str) -> None:
        """Record that notices were delivered with a message."""
        await self._log.append(
            NoticesDelivered(notices=tuple(notice.id for notice in notices), message=message_id)
        )


class SentMessage(Value):
    """A message that was queued, and its outcome; None until it is settled."""

    message: TeamMessage
    sent_ms: int
    outcome: Outcome | None = None


class QueuedMessages:
    """Queues, settles and lists the messages of one pair that no caller waits for."""

    def __init__(self, log: PairLog) -> None:
        self._log = log

    async def add(self, message: TeamMessage) -> None:
        """Queue a message; it is durable when this returns. A known message id is ignored."""
        if message.id not in {each.message.id for each in await self.sent()}:
            left = MessageQueued(
                message=message.id, text=message.text, principal=message.principal, hops=message.hops
            )
            await self._log.append(left)

    async def settle(self, message_id: str, outcome: Outcome) -> None:
        """Record the receipt of a message."""
        await self._log.append(MessageSettled(message=message_id, outcome=outcome))

    async def sent(self) -> list[SentMessage]:
        """Every queued message, oldest first."""
        left: dict[str, tuple[MessageQueued, int]] = {}
        settled: dict[str, Outcome] = {}
        for entry in await self._log.read():
            if isinstance(entry.event, MessageQueued):
                left[entry.event.message] = entry.event, entry.at_ms
            elif isinstance(entry.event, MessageSettled):
                settled[entry.event.message] = entry.event.outcome
        return [
            SentMessage(message=self._message(event), sent_ms=at_ms, outcome=settled.get(message_id))
            for message_id, (event, at_ms) in left.items()
        ]

    async def pending(self) -> list[TeamMessage]:
        """The messages without a receipt, oldest first."""
        return [each.message for each in await self.sent() if each.outcome is None]

    def _message(self, left: MessageQueued) -> TeamMessage:
        return TeamMessage(
            id=left.message,
            text=left.text,
            sender=self._log.pair.sender,
            principal=left.principal,
            hops=left.hops,
        )
