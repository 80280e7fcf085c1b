"""The shared budget of a session and all its forks, in a file: together they can spend what the first session could.

The file is in the folder of the first session and changes under a lock, because the sessions of a tree can run in
different processes. Each journal records what its session spent and what was added, so a missing or damaged file is
rebuilt from the journals. Only current reservations are lost then; those of a process that died stay reserved, because
what they were for may have happened.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import msgspec

from holdfast.core import Amount, Dimension, Limits, SessionId, Value, encode
from holdfast.core.errors import InvalidInput, StoreUnavailable
from holdfast.core.events import BudgetRaised, RecordedEvent, SessionOpened
from holdfast.gate.budget import cost_of
from holdfast.gate.tree_budget import check_room, check_spent, room_for
from holdfast.store import Home, Journal, SessionShare, Store, remove, replace_private


class _Content(Value):
    limits: Limits
    shares: dict[SessionId, SessionShare]


class TreeBudgetFile:
    """A session's access to the budget file of its tree. If the first session was deleted, the tree has no limit."""

    def __init__(self, path: Path, *, session: SessionId) -> None:
        self._path = path
        self._session = session
        self._share = SessionShare()
        self._held: dict[int, Amount] = {}
        self._next = 0

    @property
    def is_readable(self) -> bool:
        """Whether the file exists and is valid."""
        try:
            with self._locked():
                return True
        except (FileNotFoundError, StoreUnavailable):
            return False

    def sessions(self) -> int:
        """Return how many sessions share the budget."""
        return len(self._read().shares)

    def make(self, limits: Limits, family: Mapping[SessionId, SessionShare]) -> None:
        """Write the file from the data of the journals."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._path.is_dir():
            remove(self._path)  # anything else is replaced atomically
        replace_private(self._path, encode(_Content(limits=limits, shares=dict(family))))

    def join(self, share: SessionShare) -> None:
        """Set this session's share from its journal, without reservations."""
        self._share = share
        self._put()

    def check(self) -> None:
        """Raise BudgetExceeded if the tree has already exceeded a limit."""
        content = self._read()
        spent = Amount()
        for share in content.shares.values():
            spent = spent.plus(share.spent)
        check_spent(_limits(content), spent, whose="the budget of the whole tree")

    def reserve(self, amount: Amount) -> int:
        """Reserve an amount for something about to happen in this session. Raises BudgetExceeded."""
        try:
            with self._locked() as (descriptor, content):
                check_room(amount, _limits(content), _taken(content))
                self._hold(amount)
                self._write(descriptor, content)
        except FileNotFoundError:
            self._hold(amount)
        return self._next

    def release(self, number: int) -> None:
        """Release a reservation."""
        if self._held.pop(number, None) is not None:
            self._put()

    def charge(self, amount: Amount) -> None:
        """Add what this session has spent."""
        self._share = msgspec.structs.replace(self._share, spent=self._share.spent.plus(amount))
        self._put()

    def add(self, added: Limits) -> None:
        """Raise the limits by what a person added to this session's limits."""
        self._share = msgspec.structs.replace(self._share, added=_plus(self._share.added, added))
        self._put()

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """Return how much is left for the whole tree; None if there is no limit."""
        content = self._read()
        return room_for(dimension, _limits(content), _taken(content))

    def _hold(self, amount: Amount) -> None:
        self._next += 1
        self._held[self._next] = amount

    def _read(self) -> _Content:
        try:
            with self._locked() as (_, content):
                return content
        except FileNotFoundError:
            return _Content(limits=Limits(), shares={})

    def _put(self) -> None:
        try:
            with self._locked() as (descriptor, content):
                self._write(descriptor, content)
        except FileNotFoundError:
            pass

    @contextmanager
    def _locked(self) -> Iterator[tuple[int, _Content]]:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise self._damaged(error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size > _MAX_BYTES:
                raise self._damaged(f"it has {size:,} bytes")
            try:
                content = _DECODER.decode(os.pread(descriptor, size, 0))
            except (ValueError, InvalidInput, RecursionError, OSError) as error:  # not JSON, or not UTF-8
                raise self._damaged(error) from None
            yield descriptor, content
        finally:
            os.close(descriptor)

    def _damaged(self, why: object) -> StoreUnavailable:
        return StoreUnavailable(
            f"{self._path} is damaged: {why}", hint="open the session again to rebuild the file"
        )

    def _write(self, descriptor: int, content: _Content) -> None:
        held = Amount()
        for amount in self._held.values():
            held = held.plus(amount)
        content.shares[self._session] = msgspec.structs.replace(self._share, held=held)
        # Padded to the old size instead of truncated, so that the file is valid JSON after a single write.
        size = os.fstat(descriptor).st_size
        os.pwrite(descriptor, encode(content).ljust(size), 0)


def share_of(session: SessionId, recorded: Iterable[RecordedEvent]) -> SessionShare:
    """Compute a session's share from its journal. What a rewind undid was spent anyway."""
    spent, added = Amount(), Limits()
    for entry in recorded:
        if entry.session != session:
            continue  # the events that a fork shares with its parent count for the parent
        if (amount := cost_of(entry.event)) is not None:
            spent = spent.plus(amount)
        if isinstance(entry.event, BudgetRaised):
            added = _plus(added, entry.event.added)
    return SessionShare(spent=spent, added=added)


def limits_of_tree(recorded: Iterable[RecordedEvent]) -> Limits:
    """Return the limits that the first session of a tree was opened with."""
    return next(
        (entry.event.limits for entry in recorded if isinstance(entry.event, SessionOpened)), Limits()
    )


def _limits(content: _Content) -> Limits:
    limits = content.limits
    for share in content.shares.values():
        limits = limits.raised(share.added)
    return limits


def _taken(content: _Content) -> list[Amount]:
    return [amount for share in content.shares.values() for amount in (share.spent, share.held)]


def _plus(one: Limits, other: Limits) -> Limits:
    """Add two increases; here None means zero, not unlimited."""
    return one.raised(other).narrowed(other.raised(one))


_MAX_BYTES = 64_000_000
"""Enough for a hundred thousand sessions in one tree."""
_DECODER: msgspec.json.Decoder[_Content] = msgspec.json.Decoder(_Content)


async def open_tree_budget(journal: Journal, *, home: Home, store: Store) -> TreeBudgetFile | None:
    """Open the budget that this session shares with its forks and ancestors; None if the tree has no limits."""
    first, session = journal.recorded[0].session, journal.session
    limits = limits_of_tree(journal.recorded)
    if limits == Limits():
        return None
    budget = TreeBudgetFile(home.tree_budget(first), session=session)
    is_deleted = first != session and not home.session_folder(first).is_dir()
    if not budget.is_readable and not is_deleted:
        is_new = len(journal.recorded) == 1
        budget.make(limits, {} if is_new else await _family(first, store))
    budget.join(share_of(session, journal.recorded))
    return budget


async def _family(first: SessionId, store: Store) -> dict[SessionId, SessionShare]:
    """Compute the share of every session of a tree from its journal."""
    parents = {each.id: each.parent.session for each in await store.sessions() if each.parent is not None}
    family = {first}
    while grown := {id for id, parent in parents.items() if parent in family} - family:
        family |= grown
    return {id: share_of(id, await store.read(id)) for id in family}
