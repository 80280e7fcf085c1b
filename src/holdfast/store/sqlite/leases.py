"""Leases: who may write a session. The number of a lease only grows, so a holder that lost it can never write again."""

from holdfast.core import Clock, SessionId
from holdfast.core.errors import LeaseLost, SessionHeld
from holdfast.store.contract import LeaseHolder
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.process_locks import ProcessLock
from holdfast.store.sqlite.rows import Connection, require_session
from holdfast.store.sqlite.transaction import Transaction


class Leases:
    """The leases of one store, granted in the name of its presence."""

    def __init__(self, presence: ProcessLock, clock: Clock) -> None:
        self._presence = presence
        self._clock = clock
        self._granted: set[tuple[SessionId, int]] = set()
        """What somebody in this process knows to have; a grant whose commit seemed to fail is nobody's."""

    def holder(self, connection: Connection, session: SessionId) -> LeaseHolder | None:
        """Who writes a session now; one that died or was stopped does not. Raises SessionNotFound."""
        require_session(connection, session)
        row = connection.execute(SQL["lease_of"], (session,)).fetchone()
        if row is None or row[1] is None:
            return None
        fence, instance, pid, host, since_ms = row
        if instance == self._presence.token and (session, fence) not in self._granted:
            return None
        if not self._presence.is_alive(instance, pid, host):
            return None
        return LeaseHolder(pid=pid, host=host, since_ms=since_ms)

    def require_free(self, connection: Connection, session: SessionId) -> None:
        """Raises SessionHeld, saying by whom."""
        holder = self.holder(connection, session)
        if holder is None:
            return
        minutes = max(self._clock.now_ms() - holder.since_ms, 0) // 60_000
        time = f"for {minutes} min" if minutes else "for less than a minute"
        raise SessionHeld(
            f"{session!r} is held by process {holder.pid} on {holder.host}, {time}",
            hint=f"close it there; wait for it with holdfast -r {session} --wait SECONDS, or read along with "
            f"holdfast show {session} --follow",
        )

    def take(self, transaction: Transaction, session: SessionId) -> int:
        """The number of a new lease. Raises SessionNotFound, SessionHeld."""
        self.require_free(transaction, session)
        return self.grant(transaction, session)

    def grant(self, transaction: Transaction, session: SessionId) -> int:
        """The number of a new lease on a session that nobody else can hold."""
        mine = (self._presence.token, self._presence.pid, self._presence.host, self._clock.now_ms())
        (fence,) = transaction.execute(SQL["grant_lease"], (session, *mine)).fetchone()
        transaction.after_commit.append(lambda: self._granted.add((session, fence)))
        return int(fence)

    def disown(self, transaction: Transaction, session: SessionId) -> None:
        """The lease of a session was granted to somebody who is gone, by an earlier commit or by this very one."""
        self._forget(session)
        transaction.after_commit.append(lambda: self._forget(session))

    def _forget(self, session: SessionId) -> None:
        self._granted = {grant for grant in self._granted if grant[0] != session}

    def check(self, transaction: Transaction, session: SessionId, fence: int) -> None:
        """Raises LeaseLost when the lease with this number does not hold any more."""
        row = transaction.execute(SQL["fence_of"], (session, self._presence.token)).fetchone()
        if row is None or row[0] != fence:
            raise LeaseLost(
                f"the lease of {session!r} was given back or taken over; nothing was written",
                hint="open the session again to go on from what the other one wrote",
            )

    def give_back(self, transaction: Transaction, session: SessionId, fence: int) -> None:
        """End a lease; one that was taken over is left alone."""
        transaction.execute(SQL["release_lease"], (session, fence, self._presence.token))
        transaction.after_commit.append(lambda: self._granted.discard((session, fence)))
