"""Housekeeping: idle members are put to sleep, the busiest woken beforehand, old conversations marked as at rest."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from holdfast.core import Clock
from holdfast.core.errors import HoldfastError, JournalDamaged, SessionHeld
from holdfast.store import SessionSummary
from holdfast.teams.conversations import Conversations
from holdfast.teams.delivery import Delivery
from holdfast.teams.mailbox import DAY_MS
from holdfast.teams.pairs import Pair
from holdfast.teams.pool import Pool
from holdfast.teams.roster import Roster


class Housekeeping:
    """Looks after the members and conversations of one roster."""

    def __init__(
        self, *, roster: Roster, conversations: Conversations, delivery: Delivery, pool: Pool, clock: Clock
    ) -> None:
        self._roster = roster
        self._conversations = conversations
        self._delivery = delivery
        self._pool = pool
        self._clock = clock

    async def go_on(self) -> None:
        """Do it for as long as the task runs."""
        settings = self._roster.settings
        while True:
            await asyncio.sleep(min(settings.health_seconds, settings.idle_seconds))
            # What goes wrong this time may go well the next: a disk that is full, a member that does not end.
            with suppress(HoldfastError, OSError):
                await self._pool.sweep()
                await self.archive()

    async def archive(self) -> list[Pair]:
        """Mark as at rest what was not used for the days that the roster says; returns what was."""
        oldest = self._clock.now_ms() - self._roster.settings.archive_days * DAY_MS
        lines = await self._conversations.lines()
        done: list[Pair] = []
        for pair in self._pairs(
            [line for line in lines if line.active_ms < oldest and line.lifecycle == "open"]
        ):
            key = self._conversations.key(pair)
            async with self._delivery.alone(key):
                await self._pool.sleep(key)
                try:
                    await self._conversations.archive(pair)
                except (SessionHeld, JournalDamaged):
                    continue  # another process uses it, or who asks next hears what is wrong
                done.append(pair)
        return done

    async def wake_the_busiest(self) -> None:
        """Have as many members ready as the roster says, those of the pairs that talked most."""
        lines = sorted(await self._conversations.lines(), key=lambda line: -line.turns)
        for pair in self._pairs(lines)[: self._roster.settings.awake_at_start]:
            try:
                await self._delivery.wake(pair)
            except HoldfastError:
                continue  # nobody has asked yet; who does hears what is wrong

    def _pairs(self, lines: Sequence[SessionSummary]) -> list[Pair]:
        """The pairs of these lines whose teams are still on the roster."""
        pairs = [Pair.read(line.description) for line in lines]
        return [pair for pair in pairs if pair is not None and pair.receiver in self._roster.teams]
