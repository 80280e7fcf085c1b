"""Leases: who can write a session. The fencing number only increases, so a holder that lost its lease can never write."""

from holdfast.core import Clock, SessionId
from holdfast.core.errors import LeaseLost, SessionHeld
from holdfast.store.contract import LeaseHolder
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.process_locks import ProcessLock
from holdfast.store.sqlite.rows import Connection, require_session
from holdfast.store.sqlite.transaction import Transaction


class Leases:
    """The leases of one store, identified by its process lock."""

    def __init__(self, process_lock: ProcessLock, clock: Clock) -> None:
        self._process_lock = process_lock
        self._clock = clock
        self._granted: set[tuple[SessionId, int]] = set()
        """The leases that this process knows it holds. A grant whose commit seemed to fail is not one of them."""

    def holder(self, connection: Connection, session: SessionId) -> LeaseHolder | None:
        """Return the holder of a session, unless it died or was stopped. Raises SessionNotFound."""
        require_session(connection, session)
        row = connection.execute(SQL["lease_of"], (session,)).fetchone()
        if row is None or row[1] is None:
            return None
        fence, instance, pid, host, since_ms = row
        if instance == self._process_lock.token and not self._has_granted(connection, session, fence):
            return None
        if not self._process_lock.is_alive(instance, pid, host):
            return None
        return LeaseHolder(pid=pid, host=host, since_ms=since_ms)

    def is_idle(self, connection: Connection) -> bool:
        """Whether no session is open anywhere, so that no blob waits for the event that will refer to it."""
        (held,) = connection.execute(SQL["held_leases"]).fetchone()
        return held == 0 and self._process_lock.is_alone()

    def require_free(self, connection: Connection, session: SessionId) -> None:
        """Raise SessionHeld, naming the holder, if the session is held."""
        holder = self.holder(connection, session)
        if holder is None:
            return
        minutes = max(self._clock.now_ms() - holder.since_ms, 0) // 60_000
        time = f"for {minutes} min" if minutes else "for less than a minute"
        raise SessionHeld(
            f"{session!r} is held by process {holder.pid} on {holder.host}, {time}",
            hint=f"close it there, wait for it with `holdfast -r {session} --wait SECONDS`, or follow it with "
            f"`holdfast show {session} --follow`",
        )

    def take(self, transaction: Transaction, session: SessionId) -> int:
        """Grant a lease if the session is free, and return its number. Raises SessionNotFound, SessionHeld."""
        self.require_free(transaction, session)
        return self.grant(transaction, session)

    def grant(self, transaction: Transaction, session: SessionId) -> int:
        """Grant a lease on a session that no other process can hold, and return its number."""
        mine = (
            self._process_lock.token,
            self._process_lock.pid,
            self._process_lock.host,
            self._clock.now_ms(),
        )
        (fence,) = transaction.execute(SQL["grant_lease"], (session, *mine)).fetchone()
        transaction.granted.add((session, fence))
        transaction.after_commit.append(lambda: self._granted.add((session, fence)))
        return int(fence)

    def abandon(self, transaction: Transaction, session: SessionId) -> None:
        """Forget a lease whose requester is gone, whether an earlier commit granted it or this one."""
        self._forget(session)
        transaction.granted = {grant for grant in transaction.granted if grant[0] != session}
        transaction.after_commit.append(lambda: self._forget(session))

    def _has_granted(self, connection: Connection, session: SessionId, fence: int) -> bool:
        """Whether this process holds a lease, or an earlier job of the same group is about to."""
        in_group = connection.granted if isinstance(connection, Transaction) else ()
        return (session, fence) in self._granted or (session, fence) in in_group

    def _forget(self, session: SessionId) -> None:
        self._granted = {grant for grant in self._granted if grant[0] != session}

    def check(self, transaction: Transaction, session: SessionId, fence: int) -> None:
        """Raise LeaseLost if the lease with this number is no longer valid."""
        row = transaction.execute(SQL["fence_of"], (session, self._process_lock.token)).fetchone()
        if row is None or row[0] != fence:
            raise LeaseLost(
                f"the lease of {session!r} was released or taken over; nothing was written",
                hint="open the session again to continue after the other process's events",
            )

    def release(self, transaction: Transaction, session: SessionId, fence: int) -> None:
        """End a lease, unless it was taken over."""
        transaction.execute(SQL["release_lease"], (session, fence, self._process_lock.token))
        transaction.after_commit.append(lambda: self._granted.discard((session, fence)))
