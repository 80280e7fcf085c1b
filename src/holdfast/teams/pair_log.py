"""The mailbox of a pair: word that was left without a question, until it is handed over with the next one.

The postbox of a pair: a journal beside the pair's own, which is held by whoever answers.

Leaving word and sending without waiting must never wait for that, and must outlive the process that took them in.

The outbox of a pair: letters that nobody waits for, until each has its receipt. They outlive the process.
"""

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from holdfast.core import Clock, Outcome, SessionId, Value
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
from holdfast.store import Store, open_when_released
from holdfast.teams.contract import TeamMessage
from holdfast.teams.errors import with_recovery_hint
from holdfast.teams.pairs import Pair

LEASE_SECONDS = 10.0
_PREFIX = "mail "


class PairLog:
    """What lies between the two of a pair."""

    def __init__(self, pair: Pair, *, store: Store, folder: str) -> None:
        self.pair = pair
        self._store = store
        self._folder = folder
        self._session = SessionId(pair.session(folder).replace("team-", "mail-", 1))

    async def put(self, event: Event) -> None:
        """Record something; durable when it returns."""
        opened = SessionOpened(
            principal=self.pair.principal,
            folder=_place(self._folder),
            workspace="",
            policy="",
            policy_digest="",
            model="",
            description=f"{_PREFIX}{self.pair}",
        )
        try:
            journal = await self._store.create(opened, session=self._session)
        except SessionExists:
            with with_recovery_hint(self._session):
                journal = await open_when_released(self._store, self._session, timeout_seconds=LEASE_SECONDS)
        try:
            await journal.append(event)
        finally:
            await journal.release()

    async def read(self) -> Sequence[RecordedEvent]:
        """Everything ever recorded, oldest first."""
        try:
            with with_recovery_hint(self._session):
                return await self._store.read(self._session)
        except SessionNotFound:
            return ()


async def postboxes(store: Store, folder: str) -> list[PairLog]:
    """Every postbox of a company, the longest unused first."""
    pairs = [
        Pair.read(line.description.removeprefix(_PREFIX))
        for line in await store.sessions(folder=_place(folder))
    ]
    return [PairLog(pair, store=store, folder=folder) for pair in reversed(pairs) if pair is not None]


def _place(folder: str) -> str:
    return f"{folder}/mail"


DAY_MS = 86_400_000


class Notice(Value):
    """One piece of word, and what became of it."""

    id: str
    text: str
    left_ms: int
    expires_ms: int
    delivered_with: str = ""
    """The id of the letter it went with."""
    delivered_ms: int = 0


class Notices:
    """Leaves, hands over and lists word for one pair."""

    def __init__(self, postbox: PairLog, *, clock: Clock) -> None:
        self._postbox = postbox
        self._clock = clock

    async def leave(self, text: str, *, ttl_days: float) -> Notice:
        """Leave word; durable when it returns."""
        now = self._clock.now_ms()
        notice = Notice(id=str(uuid4()), text=text, left_ms=now, expires_ms=now + round(ttl_days * DAY_MS))
        await self._postbox.put(
            NoticeQueued(
                notice=notice.id,
                text=text,
                principal=self._postbox.pair.principal,
                expires_ms=notice.expires_ms,
            )
        )
        return notice

    async def notices(self) -> list[Notice]:
        """Everything ever left, oldest first."""
        found: dict[str, Notice] = {}
        for entry in await self._postbox.read():
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

    async def waiting(self) -> list[Notice]:
        """What was neither delivered nor too old."""
        now = self._clock.now_ms()
        return [each for each in await self.notices() if not each.delivered_with and each.expires_ms > now]

    async def deliver(self, notices: list[Notice], *, message: str) -> None:
        """Record that these went with a letter."""
        await self._postbox.put(
            NoticesDelivered(notices=tuple(notice.id for notice in notices), message=message)
        )


class Sent(Value):
    """A letter that was sent, and what became of it; None while it is on its way."""

    letter: TeamMessage
    sent_ms: int
    outcome: Outcome | None = None


class QueuedMessages:
    """Keeps, settles and lists the letters of one pair."""

    def __init__(self, postbox: PairLog) -> None:
        self._postbox = postbox

    async def keep(self, letter: TeamMessage) -> None:
        """Take a letter in; durable when it returns. One that is known is not taken in again."""
        if letter.id not in {each.letter.id for each in await self.letters()}:
            left = MessageQueued(
                message=letter.id, text=letter.text, principal=letter.principal, hops=letter.hops
            )
            await self._postbox.put(left)

    async def settle(self, message: str, outcome: Outcome) -> None:
        """Record the receipt of a letter."""
        await self._postbox.put(MessageSettled(message=message, outcome=outcome))

    async def letters(self) -> list[Sent]:
        """Everything ever sent, oldest first."""
        left: dict[str, tuple[MessageQueued, int]] = {}
        settled: dict[str, Outcome] = {}
        for entry in await self._postbox.read():
            if isinstance(entry.event, MessageQueued):
                left[entry.event.message] = entry.event, entry.at_ms
            elif isinstance(entry.event, MessageSettled):
                settled[entry.event.message] = entry.event.outcome
        return [
            Sent(letter=self._letter(event), sent_ms=at_ms, outcome=settled.get(message))
            for message, (event, at_ms) in left.items()
        ]

    async def waiting(self) -> list[TeamMessage]:
        """Letters without a receipt, oldest first."""
        return [each.letter for each in await self.letters() if each.outcome is None]

    def _letter(self, left: MessageQueued) -> TeamMessage:
        return TeamMessage(
            id=left.message,
            text=left.text,
            sender=self._postbox.pair.sender,
            principal=left.principal,
            hops=left.hops,
        )
