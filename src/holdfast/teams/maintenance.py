"""Background maintenance of a broker, and reconciliation of agent homes with journals.

`Maintenance` puts idle members to sleep, wakes the busiest in advance and archives old conversations. `Reconciler` runs
when serving starts. It recreates the journal of a conversation that only an agent home still has, and reports one that
the agent has lost. It deletes nothing; the next message creates what is missing.
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
    """Maintains the members and conversations of one roster."""

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
        """Repeat the maintenance until cancelled."""
        settings = self._roster.settings
        while True:
            await asyncio.sleep(min(settings.health_seconds, settings.idle_seconds))
            # The next round may succeed: the disk was full, or a member did not stop.
            with suppress(HoldfastError, OSError):
                await self._pool.evict_idle()
                await self.archive()

    async def archive(self) -> list[Pair]:
        """Archive the conversations unused for `archive_days`; return their pairs."""
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
                    continue  # another process uses it, or the next sender gets the error
                done.append(pair)
        return done

    async def wake_busiest(self) -> None:
        """Wake the members of the pairs with the most messages, as many as `awake_at_start` says."""
        summaries = sorted(await self._conversations.summaries(), key=lambda summary: -summary.turns)
        for pair in self._pairs(summaries)[: self._roster.settings.awake_at_start]:
            try:
                await self._dispatcher.wake(pair)
            except HoldfastError:
                continue  # the first sender gets the error

    def _pairs(self, summaries: Sequence[SessionSummary]) -> list[Pair]:
        """The pairs of these summaries whose teams are still on the roster."""
        pairs = [Pair.parse(summary.description) for summary in summaries]
        return [pair for pair in pairs if pair is not None and pair.receiver in self._roster.teams]


class PairProblem(Value):
    """Something that a person should know about a pair."""

    pair: str
    what: str


class Reconciler:
    """Compares the agent homes with the journals."""

    def __init__(self, *, roster: Roster, folder: Path, store: Store, conversations: Conversations) -> None:
        self._roster = roster
        self._folder = folder
        self._store = store
        self._conversations = conversations

    async def reconcile(self) -> list[PairProblem]:
        """Recreate missing journals, and report them and what an agent has lost."""
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
                PairProblem(pair=str(pair), what="our record was lost; the conversation is recorded again")
            ]
        try:
            attached = (await self._conversations.history(pair)).attached
        except JournalDamaged as damage:
            return [_damaged(pair, damage)]
        team = self._roster.team(pair.receiver)
        if attached is None or team.member != "claude" or attached.kind != "claude":
            return []
        from holdfast.teams.claude.transcripts import resume_problem

        problem = resume_problem(home, attached.conversation, team.project)
        return (
            [PairProblem(pair=str(pair), what=f"{problem}; the next message starts a new conversation")]
            if problem
            else []
        )


def _damaged(pair: Pair, damage: JournalDamaged) -> PairProblem:
    return PairProblem(pair=str(pair), what=f"{damage}. {damage.hint}")
