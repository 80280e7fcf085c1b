"""The mailbox of a pair: word that was left without a question, until it is handed over with the next one.

It has a journal of its own, because the pair's is held by whoever answers and leaving word must never wait for that.
"""

from uuid import uuid4

from holdfast.core import Clock, SessionId, Value
from holdfast.core.errors import SessionExists, SessionNotFound
from holdfast.core.events import NoticeLeft, NoticesDelivered, SessionOpened
from holdfast.store import Journal, Store, open_when_free
from holdfast.teams.pairs import Pair

DAY_MS = 86_400_000
LEASE_SECONDS = 10.0


class Notice(Value):
    """One piece of word, and what became of it."""

    id: str
    text: str
    left_ms: int
    expires_ms: int
    delivered_with: str = ""
    """The id of the letter it went with."""
    delivered_ms: int = 0


class Mailbox:
    """Leaves, hands over and lists word for one pair."""

    def __init__(self, pair: Pair, *, store: Store, folder: str, clock: Clock) -> None:
        self._pair = pair
        self._store = store
        self._folder = folder
        self._clock = clock
        self._session = SessionId(pair.session(folder).replace("team-", "mail-", 1))

    async def leave(self, text: str, *, ttl_days: float) -> Notice:
        """Leave word; durable when it returns."""
        now = self._clock.now_ms()
        notice = Notice(id=str(uuid4()), text=text, left_ms=now, expires_ms=now + round(ttl_days * DAY_MS))
        journal = await self._open()
        try:
            await journal.append(
                NoticeLeft(
                    notice=notice.id, text=text, principal=self._pair.principal, expires_ms=notice.expires_ms
                )
            )
        finally:
            await journal.release()
        return notice

    async def notices(self) -> list[Notice]:
        """Everything ever left, oldest first."""
        try:
            recorded = await self._store.read(self._session)
        except SessionNotFound:
            return []
        found: dict[str, Notice] = {}
        for entry in recorded:
            match entry.event:
                case NoticeLeft() as left:
                    found[left.notice] = Notice(
                        id=left.notice, text=left.text, left_ms=entry.at_ms, expires_ms=left.expires_ms
                    )
                case NoticesDelivered() as delivered:
                    for id in delivered.notices:
                        old = found[id]
                        found[id] = Notice(
                            id=id,
                            text=old.text,
                            left_ms=old.left_ms,
                            expires_ms=old.expires_ms,
                            delivered_with=delivered.message,
                            delivered_ms=entry.at_ms,
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
        journal = await self._open()
        try:
            ids = tuple(notice.id for notice in notices)
            await journal.append(NoticesDelivered(notices=ids, message=message))
        finally:
            await journal.release()

    async def _open(self) -> Journal:
        opened = SessionOpened(
            principal=self._pair.principal,
            folder=f"{self._folder}/mail",
            workspace="",
            policy="",
            policy_digest="",
            model="",
            description=f"mail {self._pair}",
        )
        try:
            return await self._store.create(opened, session=self._session)
        except SessionExists:
            return await open_when_free(self._store, self._session, timeout_seconds=LEASE_SECONDS)
