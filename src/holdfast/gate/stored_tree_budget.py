"""The shared budget of a session and all its forks, in the store: together they can spend what the first session could.

The store has a row for each session of the tree, because its sessions can run in different processes. A reservation is
checked against all rows and written in one transaction. What a session spends, releases and adds is written with its next
reservation or when its turn ends; until then the others count what it reserved.

Each journal records what its session spent and what was added, so lost rows are rebuilt from the journals. Only current
reservations are lost then; those of a process that died stay reserved until its session is opened again, because what they
were for may have happened.
"""

import asyncio
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import msgspec

from holdfast.core import DIMENSIONS, Amount, Dimension, Limits, SessionId, Value
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.events import BudgetRaised, RecordedEvent, SessionOpened
from holdfast.core.projection import imported_limits, imported_through
from holdfast.gate.budget import cost_of
from holdfast.gate.tree_budget import check_room, check_spent, room_for
from holdfast.store import Home, Journal, SessionShare, Shares, Store, read_plain, remove


class StoredTreeBudget:
    """A session's access to the budget of its tree. If the first session was deleted, the tree has no limit."""

    def __init__(self, store: Store, *, tree: SessionId, session: SessionId, limits: Limits) -> None:
        """`limits` are those that the first session was opened with."""
        self._store = store
        self._tree = tree
        self._session = session
        self._limits = limits
        self._share = SessionShare()
        self._held: dict[int, Amount] = {}
        self._next = 0
        self._seen: Shares = {}
        """The rows as this session last read them."""
        self._writing = asyncio.Lock()
        """Writes are in the order of what they say."""

    async def join(self, share: SessionShare) -> None:
        """Set this session's share from its journal, without reservations."""
        self._share = share
        await self.synchronize()

    async def synchronize(self) -> None:
        """Write what this session spent, released and added, and read what the others did."""
        async with self._writing:
            own = {self._session: self._own()}  # taken here: the store may call from another thread
            self._seen = await self._store.change_shares(self._tree, lambda _: own)

    async def check(self) -> None:
        """Raise BudgetExceeded if the tree has already exceeded a limit."""
        await self.synchronize()
        spent = Amount()
        for share in self._seen.values():
            spent = spent.plus(share.spent)
        check_spent(_raised(self._limits, self._seen), spent, whose="the budget of the whole tree")

    async def reserve(self, amount: Amount) -> int:
        """Reserve an amount for something about to happen in this session. Raises BudgetExceeded."""
        async with self._writing:
            before, after = self._own(), self._own(amount)

            def change(shares: Shares) -> Shares:
                now = {**shares, self._session: before}
                check_room(amount, _raised(self._limits, now), _taken(now))
                return {self._session: after}

            # If the wait is cancelled, the next write corrects what was written.
            self._seen = await self._store.change_shares(self._tree, change)
            self._next += 1
            self._held[self._next] = amount
            return self._next

    def release(self, number: int) -> None:
        """Release a reservation."""
        self._held.pop(number, None)

    def charge(self, amount: Amount) -> None:
        """Add what this session has spent."""
        self._share = msgspec.structs.replace(self._share, spent=self._share.spent.plus(amount))

    def add(self, added: Limits) -> None:
        """Raise the limits by what a person added to this session's limits."""
        self._share = msgspec.structs.replace(self._share, added=_plus(self._share.added, added))

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """Return how much is left for the whole tree, as far as this session knows; None if there is no limit."""
        if not self._seen:
            return None
        shares = {**self._seen, self._session: self._own()}
        return room_for(dimension, _raised(self._limits, shares), _taken(shares))

    def _own(self, more: Amount | None = None) -> SessionShare:
        held = more or Amount()
        for amount in self._held.values():
            held = held.plus(amount)
        return msgspec.structs.replace(self._share, held=held)


def share_of(session: SessionId, recorded: Sequence[RecordedEvent]) -> SessionShare:
    """Compute a session's share from its journal. What a rewind undid was spent anyway; what a file added does not count."""
    spent, added = Amount(), Limits()
    imported = imported_through(recorded) if imported_limits(recorded) is not None else 0
    for entry in recorded:
        if entry.session != session:
            continue  # the events that a fork shares with its parent count for the parent
        if (amount := cost_of(entry.event)) is not None:
            spent = spent.plus(amount)
        if isinstance(entry.event, BudgetRaised) and entry.seq > imported:
            added = _plus(added, entry.event.added)
    return SessionShare(spent=spent, added=added)


def limits_of_tree(recorded: Sequence[RecordedEvent]) -> Limits:
    """Return the limits that the first session of a tree was opened with, or imported with."""
    if (imported := imported_limits(recorded)) is not None:
        return imported
    return next(
        (entry.event.limits for entry in recorded if isinstance(entry.event, SessionOpened)), Limits()
    )


async def open_tree_budget(journal: Journal, *, home: Home, store: Store) -> StoredTreeBudget | None:
    """Open the budget that this session shares with its forks and ancestors; None if the tree has no limits."""
    first, session = journal.recorded[0].session, journal.session
    limits = limits_of_tree(journal.recorded)
    if limits == Limits():
        return None
    is_new = len(journal.recorded) == 1
    if not is_new and not await store.shares(first):
        await _find_shares(first, home=home, store=store)
    budget = StoredTreeBudget(store, tree=first, session=session, limits=limits)
    await budget.join(share_of(session, journal.recorded))
    return budget


async def left_in_tree(
    recorded: Sequence[RecordedEvent], *, home: Home, store: Store
) -> dict[Dimension, Decimal]:
    """What a session and its forks have left together; empty without forks or limits. Changes nothing."""
    first = recorded[0].session
    shares = await store.shares(first) or _read_old_file(home.tree_budget(first)) or {}
    if len(shares) < 2:
        return {}
    limits = _raised(limits_of_tree(recorded), shares)
    rooms = {dimension: room_for(dimension, limits, _taken(shares)) for dimension in DIMENSIONS}
    return {dimension: room for dimension, room in rooms.items() if room is not None}


async def _find_shares(first: SessionId, *, home: Home, store: Store) -> None:
    """Write the shares of a tree that has none: from the file of version 0.1, or from the journals."""
    file = home.tree_budget(first)
    found = _read_old_file(file)
    if found is None:
        found = await _family(first, store)
    await store.change_shares(first, lambda there: {**found, **there})  # another process may have been faster
    remove(file)


async def _family(first: SessionId, store: Store) -> Shares:
    """Compute the share of every session of a tree from its journal. A tree whose first session is deleted has none."""
    try:
        await store.summary(first)
    except SessionNotFound:
        return {}
    parents = {each.id: each.parent.session for each in await store.sessions() if each.parent is not None}
    family = {first}
    while grown := {id for id, parent in parents.items() if parent in family} - family:
        family |= grown
    return {id: share_of(id, await store.read(id)) for id in family}


class _OldFile(Value):
    """`purse.json`, in which version 0.1 kept the shares of a tree."""

    limits: Limits
    shares: dict[SessionId, SessionShare]


_MAX_BYTES = 64_000_000
"""Enough for a hundred thousand sessions in one tree."""
_DECODER: msgspec.json.Decoder[_OldFile] = msgspec.json.Decoder(_OldFile)


def _read_old_file(path: Path) -> Shares | None:
    try:
        return _DECODER.decode(read_plain(path, max_bytes=_MAX_BYTES)).shares
    except (
        OSError,
        ValueError,
        InvalidInput,
        RecursionError,
    ):  # not there, not a file, not JSON, or not UTF-8
        return None


def _raised(limits: Limits, shares: Shares) -> Limits:
    for share in shares.values():
        limits = limits.raised(share.added)
    return limits


def _taken(shares: Shares) -> list[Amount]:
    return [amount for share in shares.values() for amount in (share.spent, share.held)]


def _plus(one: Limits, other: Limits) -> Limits:
    """Add two increases; here None means zero, not unlimited."""
    return one.raised(other).narrowed(other.raised(one))
