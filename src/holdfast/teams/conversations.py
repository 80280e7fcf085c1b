"""The conversations of a company in the store: one session for each pair, begun when it is first needed.

What was said in one is read from its journal, which is the only record of it; so is whether it is archived.
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
from holdfast.teams.errors import with_recovery_hint
from holdfast.teams.history import PairHistory
from holdfast.teams.members.factory import MemberFactory
from holdfast.teams.pairs import Pair


class Conversations:
    """Finds, begins, archives and copies the sessions of pairs."""

    def __init__(self, *, roster: Roster, folder: str, store: Store, staff: MemberFactory) -> None:
        self._roster = roster
        self._folder = folder
        self._store = store
        self._staff = staff

    def key(self, pair: Pair) -> SessionId:
        """The id of a pair's session."""
        return pair.session(self._folder)

    async def lines(self, *, limit: int | None = None) -> Sequence[SessionSummary]:
        """One line for each pair that ever talked, the latest first."""
        return await self._store.sessions(limit=limit, folder=self._folder)

    async def ensure(self, pair: Pair) -> SessionId:
        """Create the pair's session where it is not there; of two at once, the store lets one. One that is archived is woken."""
        key = self.key(pair)
        try:
            journal = await self._store.create(self._opened(pair), session=key)
            await journal.release()
        except SessionExists:
            if (await self._store.summary(key)).lifecycle == "paused":
                await self._append(key, SessionResumed())
        return key

    async def history(self, pair: Pair) -> PairHistory:
        """Everything that was said in a pair. Raises JournalDamaged."""
        try:
            with with_recovery_hint(self.key(pair)):
                return PairHistory(ReplayedHistory(await self._store.read(self.key(pair))))
        except SessionNotFound:
            return PairHistory(ReplayedHistory(()))

    async def spent(self, line: SessionSummary) -> Amount:
        """What a pair has used; where its record is damaged, as much of it as the list of sessions says."""
        try:
            return Budget(ReplayedHistory(await self._store.read(line.id)), turn_limits=Limits()).spent
        except JournalDamaged:
            return Amount(tokens=line.tokens, cost_usd=line.cost_usd)

    async def archive(self, pair: Pair) -> None:
        """Mark a conversation as at rest; nothing of it is deleted, and the next message takes it up again."""
        key = self.key(pair)
        if (await self._store.summary(key)).lifecycle == "open":
            await self._append(key, SessionPaused())

    async def copy(self, pair: Pair, thread: str) -> Pair:
        """The same conversation once more under another thread, from where it stands. Its member has to be asleep."""
        branch = msgspec.structs.replace(pair, thread=thread)
        recorded = await self._store.read(self.key(pair))
        try:
            journal = await self._store.create(self._opened(branch), session=self.key(branch))
        except SessionExists:
            raise InvalidInput(f"{branch} is there already", hint="name a thread that is not") from None
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
            policy_digest=self._staff.policy_digest(team),
            model=team.model,
            limits=team.budget,
            description=str(pair),
        )
