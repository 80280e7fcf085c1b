"""The Lisp engine: pure Python, so it is always available. Its guests run in this process and have no access to it."""

from holdfast.guests.contract import Capabilities, Engine, Guest
from holdfast.guests.lisp.threads import WorkerThreads
from holdfast.guests.signed_snapshot import SnapshotSigner

VERSION = "1"
_MEMO_CAPACITY = 1000

_CAPABILITIES = Capabilities(
    engine="lisp",
    version=VERSION,
    language="lisp",
    has_snapshot=True,
    judges_files=True,
    follows_values=True,
    notes=("runs in this process", "every effect is a call through the gate"),
)


class LispEngine:
    """Creates Lisp guests. `key` signs their snapshots."""

    def __init__(self, *, key: bytes, memo_capacity: int = _MEMO_CAPACITY) -> None:
        self._signer = SnapshotSigner(key)
        self._memo_capacity = memo_capacity
        self._threads = WorkerThreads()

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def guest(self) -> Guest:
        # Imported here, because most sessions never run Lisp and its library takes a moment to load.
        from holdfast.guests.lisp.guest import LispGuest

        return LispGuest(
            capabilities=_CAPABILITIES,
            signer=self._signer,
            memo_capacity=self._memo_capacity,
            threads=self._threads,
        )

    async def close(self) -> None:
        """End the worker threads. Idempotent."""
        await self._threads.close()


def lisp_engine(*, key: bytes) -> Engine:
    """An engine whose guests sign their snapshots with `key`."""
    return LispEngine(key=key)
