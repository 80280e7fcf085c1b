"""Discovery: what the programs of members have kept, held against our own record when the teams are first served.

A conversation that a program has and we have no record of is entered again; one that we have a record of and the program has
lost is told. Nothing is deleted, and nothing is begun: that happens with the next message.
"""

from pathlib import Path

from holdfast.core import SessionId, Value
from holdfast.core.errors import JournalDamaged, SessionNotFound
from holdfast.store import Store
from holdfast.teams.conversations import Conversations
from holdfast.teams.pairs import Pair
from holdfast.teams.postbox import postboxes
from holdfast.teams.quarters import quarters_of, whose
from holdfast.teams.roster import Roster


class Finding(Value):
    """Something that a person should know of a pair."""

    pair: str
    what: str


class Discovery:
    """Looks through the quarters of a company's members."""

    def __init__(self, *, roster: Roster, folder: Path, store: Store, conversations: Conversations) -> None:
        self._roster = roster
        self._folder = folder
        self._store = store
        self._conversations = conversations

    async def look(self) -> list[Finding]:
        """Enter what was lost from our record, and tell what a program has lost."""
        found: list[Finding] = []
        for quarters in quarters_of(self._folder):
            pair = whose(quarters)
            if pair is None or self._conversations.key(pair) != quarters.name:
                continue
            if pair.receiver not in self._roster.teams:
                continue
            found += await self._compare(pair, quarters)
        return found + await self._damaged_post()

    async def _damaged_post(self) -> list[Finding]:
        found: list[Finding] = []
        for box in await postboxes(self._store, str(self._folder)):
            try:
                await box.read()
            except JournalDamaged as damage:
                found.append(_damaged(box.pair, damage))
        return found

    async def _compare(self, pair: Pair, quarters: Path) -> list[Finding]:
        try:
            await self._store.summary(SessionId(quarters.name))
        except SessionNotFound:
            await self._conversations.ensure(pair)
            return [Finding(pair=str(pair), what="our record was lost; the conversation is entered again")]
        try:
            bound = (await self._conversations.history(pair)).bound
        except JournalDamaged as damage:
            return [_damaged(pair, damage)]
        team = self._roster.team(pair.receiver)
        if bound is None or team.member != "claude" or bound.kind != "claude":
            return []
        from holdfast.teams.claude.transcripts import trouble_with

        trouble = trouble_with(quarters, bound.conversation, team.project)
        return [Finding(pair=str(pair), what=f"{trouble}; the next message begins anew")] if trouble else []


def _damaged(pair: Pair, damage: JournalDamaged) -> Finding:
    return Finding(pair=str(pair), what=f"{damage}. {damage.hint}")
