"""The mailbox of a pair: word that was left without a question, until it is handed over with the next one."""

from uuid import uuid4

import msgspec

from holdfast.core import Clock, Value
from holdfast.core.events import NoticeLeft, NoticesDelivered
from holdfast.teams.postbox import Postbox

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


class Mailbox:
    """Leaves, hands over and lists word for one pair."""

    def __init__(self, postbox: Postbox, *, clock: Clock) -> None:
        self._postbox = postbox
        self._clock = clock

    async def leave(self, text: str, *, ttl_days: float) -> Notice:
        """Leave word; durable when it returns."""
        now = self._clock.now_ms()
        notice = Notice(id=str(uuid4()), text=text, left_ms=now, expires_ms=now + round(ttl_days * DAY_MS))
        await self._postbox.put(
            NoticeLeft(
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
                case NoticeLeft() as left:
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
