"""The engine that makes system guests: the project's own Python in the command sandbox of a session."""

from holdfast.guests.contract import Capabilities
from holdfast.guests.signed_snapshot import SnapshotSigner
from holdfast.guests.system.contract import Interpreters
from holdfast.guests.system.guest import SystemGuest


def system_engine(*, key: bytes, interpreters: Interpreters) -> "SystemEngine":
    """An engine for one session, whose command sandbox starts the interpreters."""
    return SystemEngine(signer=SnapshotSigner(key), interpreters=interpreters)


class SystemEngine:
    """Creates guests for one session."""

    def __init__(self, *, signer: SnapshotSigner, interpreters: Interpreters) -> None:
        self._signer = signer
        self._interpreters = interpreters
        self._guests: list[SystemGuest] = []

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        return Capabilities(
            engine="system",
            version="python3 of the project",
            language="python",
            has_snapshot=False,
            judges_files=False,
            notes=("runs in the command sandbox, with the project's own packages",),
        )

    def guest(self) -> SystemGuest:
        """A new guest. Each of its runs starts a process."""
        guest = SystemGuest(
            capabilities=self.capabilities, signer=self._signer, interpreters=self._interpreters
        )
        self._guests.append(guest)
        return guest

    async def close(self) -> None:
        """Close every guest. Idempotent."""
        guests, self._guests = self._guests, []
        for guest in guests:
            await guest.close()
