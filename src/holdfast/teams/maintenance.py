"""Housekeeping: idle members are put to sleep, the busiest woken beforehand, old conversations marked as at rest.

Discovery: what the programs of members have kept, held against our own record when the teams are first served.

A conversation that a program has and we have no record of is entered again; one that we have a record of and the program has
lost is told. Nothing is deleted, and nothing is begun: that happens with the next message.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.core import Clock, SessionId, Value
from holdfast.core.errors import HoldfastError, JournalDamaged, SessionHeld, SessionNotFound
from holdfast.store import SessionSummary, Store
from holdfast.teams.config.roster import Roster
from holdfast.teams.conversations import Conversations
from holdfast.teams.dispatch import Dispatcher
from holdfast.teams.members.agent_home import agent_homes, read_owner
from holdfast.teams.pair_log import DAY_MS, pair_logs
from holdfast.teams.pairs import Pair
from holdfast.teams.pool import Pool


class Maintenance:
    """Looks after the members and conversations of one roster."""

    def __init__(
        self,
        *,
        roster: Roster,
        conversations: Conversations,
        dispatcher: Dispatcher,
        pool: Pool,
        clock: Clock,
    ) -> None:
        self._roster = roster
        self._conversations = conversations
        self._dispatcher = dispatcher
        self._pool = pool
        self._clock = clock

    async def run_forever(self) -> None:
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
        summaries = await self._conversations.summaries()
        done: list[Pair] = []
        for pair in self._pairs(
            [summary for summary in summaries if summary.active_ms < oldest and summary.lifecycle == "open"]
        ):
            key = self._conversations.session_id(pair)
            async with self._dispatcher.session_lock(key):
                await self._pool.sleep(key)
                try:
                    await self._conversations.archive(pair)
                except (SessionHeld, JournalDamaged):
                    continue  # another process uses it, or who asks next hears what is wrong
                done.append(pair)
        return done

    async def wake_busiest(self) -> None:
        """Have as many members ready as the roster says, those of the pairs that talked most."""
        summaries = sorted(await self._conversations.summaries(), key=lambda summary: -summary.turns)
        for pair in self._pairs(summaries)[: self._roster.settings.awake_at_start]:
            try:
                await self._dispatcher.wake(pair)
            except HoldfastError:
                continue  # nobody has asked yet; who does hears what is wrong

    def _pairs(self, summaries: Sequence[SessionSummary]) -> list[Pair]:
        """The pairs of these summaries whose teams are still on the roster."""
        pairs = [Pair.parse(summary.description) for summary in summaries]
        return [pair for pair in pairs if pair is not None and pair.receiver in self._roster.teams]


class PairProblem(Value):
    """Something that a person should know of a pair."""

    pair: str
    what: str


class Reconciler:
    """Looks through the quarters of a company's members."""

    def __init__(self, *, roster: Roster, folder: Path, store: Store, conversations: Conversations) -> None:
        self._roster = roster
        self._folder = folder
        self._store = store
        self._conversations = conversations

    async def reconcile(self) -> list[PairProblem]:
        """Enter what was lost from our record, and tell what a program has lost."""
        found: list[PairProblem] = []
        for home in agent_homes(self._folder):
            pair = read_owner(home)
            if pair is None or self._conversations.session_id(pair) != home.name:
                continue
            if pair.receiver not in self._roster.teams:
                continue
            found += await self._compare(pair, home)
        return found + await self._damaged_pair_logs()

    async def _damaged_pair_logs(self) -> list[PairProblem]:
        found: list[PairProblem] = []
        for log in await pair_logs(self._store, str(self._folder)):
            try:
                await log.read()
            except JournalDamaged as damage:
                found.append(_damaged(log.pair, damage))
        return found

    async def _compare(self, pair: Pair, home: Path) -> list[PairProblem]:
        try:
            await self._store.summary(SessionId(home.name))
        except SessionNotFound:
            await self._conversations.ensure(pair)
            return [
                PairProblem(pair=str(pair), what="our record was lost; the conversation is entered again")
            ]
        try:
            attached = (await self._conversations.history(pair)).attached
        except JournalDamaged as damage:
            return [_damaged(pair, damage)]
        team = self._roster.team(pair.receiver)
        if attached is None or team.member != "claude" or attached.kind != "claude":
            return []
        from holdfast.teams.claude.transcripts import resume_problem

        trouble = resume_problem(home, attached.conversation, team.project)
        return (
            [PairProblem(pair=str(pair), what=f"{trouble}; the next message begins anew")] if trouble else []
        )


def _damaged(pair: Pair, damage: JournalDamaged) -> PairProblem:
    return PairProblem(pair=str(pair), what=f"{damage}. {damage.hint}")
