"""The postbox of a pair: a journal beside the pair's own, which is held by whoever answers.

Leaving word and sending without waiting must never wait for that, and must outlive the process that took them in.
"""

from collections.abc import Sequence

from holdfast.core import SessionId
from holdfast.core.errors import SessionExists, SessionNotFound
from holdfast.core.events import AnyEvent, Recorded, SessionOpened
from holdfast.store import Store, open_when_free
from holdfast.teams.damage import way_out
from holdfast.teams.pairs import Pair

LEASE_SECONDS = 10.0
_PREFIX = "mail "


class Postbox:
    """What lies between the two of a pair."""

    def __init__(self, pair: Pair, *, store: Store, folder: str) -> None:
        self.pair = pair
        self._store = store
        self._folder = folder
        self._session = SessionId(pair.session(folder).replace("team-", "mail-", 1))

    async def put(self, event: AnyEvent) -> None:
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
            with way_out(self._session):
                journal = await open_when_free(self._store, self._session, timeout_seconds=LEASE_SECONDS)
        try:
            await journal.append(event)
        finally:
            await journal.release()

    async def read(self) -> Sequence[Recorded]:
        """Everything ever recorded, oldest first."""
        try:
            with way_out(self._session):
                return await self._store.read(self._session)
        except SessionNotFound:
            return ()


async def postboxes(store: Store, folder: str) -> list[Postbox]:
    """Every postbox of a company, the longest unused first."""
    pairs = [
        Pair.read(line.description.removeprefix(_PREFIX))
        for line in await store.sessions(folder=_place(folder))
    ]
    return [Postbox(pair, store=store, folder=folder) for pair in reversed(pairs) if pair is not None]


def _place(folder: str) -> str:
    return f"{folder}/mail"
