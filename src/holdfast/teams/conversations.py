"""The sessions of pairs in the store: one for each pair, created when first needed.

The journal is the only record of a conversation, including whether it is archived.
"""

from collections.abc import Sequence

import msgspec

from holdfast.core import Amount, Limits, SessionId
from holdfast.core.errors import InvalidInput, JournalDamaged, SessionExists, SessionNotFound
from holdfast.core.events import Event, SessionOpened, SessionPaused, SessionResumed
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Budget
from holdfast.store import SessionSummary, Store
from holdfast.teams.config.roster import Roster
from holdfast.teams.errors import AskRefused, with_recovery_hint
from holdfast.teams.history import PairHistory
from holdfast.teams.members.factory import MemberFactory
from holdfast.teams.pair_log import pair_logs
from holdfast.teams.pairs import Pair

MAX_THREADS = 100
"""Threads from one team to another. Each is a session with a member of its own."""


class Conversations:
    """Finds, creates, archives and copies the sessions of pairs."""

    def __init__(self, *, roster: Roster, folder: str, store: Store, factory: MemberFactory) -> None:
        self._roster = roster
        self._folder = folder
        self._store = store
        self._factory = factory

    def session_id(self, pair: Pair) -> SessionId:
        """The id of a pair's session."""
        return pair.session_id(self._folder)

    async def summaries(self, *, limit: int | None = None) -> Sequence[SessionSummary]:
        """One summary for each pair that has exchanged messages, most recent first."""
        return await self._store.sessions(limit=limit, folder=self._folder)

    async def ensure(self, pair: Pair) -> SessionId:
        """Create the pair's session, or reopen it if it is archived. The store resolves a race between two creators."""
        key = self.session_id(pair)
        try:
            journal = await self._store.create(self._opened(pair), session=key)
            await journal.release()
        except SessionExists:
            if (await self._store.summary(key)).lifecycle == "paused":
                await self._append(key, SessionResumed())
        return key

    async def check_threads(self, pair: Pair) -> None:
        """Raise AskRefused if a message would open one thread too many between its teams."""
        if not pair.thread:
            return
        try:
            await self._store.summary(self.session_id(pair))
        except SessionNotFound:
            spoken = {Pair.parse(summary.description) for summary in await self.summaries()}
            queued = {log.pair for log in await pair_logs(self._store, self._folder)}
            threads = {each for each in spoken | queued if each is not None and each.has_same_teams(pair)}
            if pair not in threads and len(threads) >= MAX_THREADS:
                raise AskRefused(
                    f"{pair.sender!r} has {len(threads)} threads with {pair.receiver!r}; at most {MAX_THREADS} are possible",
                    hint="use one that exists: holdfast teams status",
                ) from None

    async def history(self, pair: Pair) -> PairHistory:
        """Every message and answer of a pair. Raises JournalDamaged."""
        try:
            with with_recovery_hint(self.session_id(pair)):
                return PairHistory(ReplayedHistory(await self._store.read(self.session_id(pair))))
        except SessionNotFound:
            return PairHistory(ReplayedHistory(()))

    async def spent(self, summary: SessionSummary) -> Amount:
        """What a pair has used. If its journal is damaged, what its summary says."""
        try:
            return Budget(ReplayedHistory(await self._store.read(summary.id)), turn_limits=Limits()).spent
        except JournalDamaged:
            return Amount(tokens=summary.tokens, cost_usd=summary.cost_usd)

    async def archive(self, pair: Pair) -> None:
        """Archive a conversation. Nothing is deleted, and the next message reopens it."""
        key = self.session_id(pair)
        if (await self._store.summary(key)).lifecycle == "open":
            await self._append(key, SessionPaused())

    async def copy(self, pair: Pair, thread: str) -> Pair:
        """Copy a conversation into another thread. Its member must be asleep."""
        branch = msgspec.structs.replace(pair, thread=thread)
        await self.check_threads(branch)
        recorded = await self._store.read(self.session_id(pair))
        try:
            journal = await self._store.create(self._opened(branch), session=self.session_id(branch))
        except SessionExists:
            raise InvalidInput(f"{branch} already exists", hint="choose another thread name") from None
        try:
            await journal.append(*(entry.event for entry in recorded[1:]))
        finally:
            await journal.release()
        return branch

    async def _append(self, key: SessionId, event: Event) -> None:
        journal = await self._store.open(key)
        try:
            await journal.append(event)
        finally:
            await journal.release()

    def _opened(self, pair: Pair) -> SessionOpened:
        team = self._roster.team(pair.receiver)
        return SessionOpened(
            principal=pair.principal,
            folder=self._folder,
            workspace=team.project,
            policy=team.policy,
            policy_digest=self._factory.policy_digest(team),
            model=team.model,
            limits=team.budget,
            description=str(pair),
        )
