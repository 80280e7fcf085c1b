"""The Lisp engine: pure Python, so it is always there. Its guests live in this process and can reach nothing of it."""

from holdfast.guests.contract import Capabilities, Engine, Guest
from holdfast.guests.lisp.threads import Threads
from holdfast.guests.signed_snapshot import SnapshotSigner

VERSION = "1"
_MEMO_CAPACITY = 1000

_CAPABILITIES = Capabilities(
    engine="lisp",
    version=VERSION,
    language="lisp",
    has_snapshot=True,
    judges_files=True,
    notes=("runs in this process", "every effect is a call through the gate"),
)


class LispEngine:
    """Makes Lisp guests. `key` seals their snapshots."""

    def __init__(self, *, key: bytes, memo_capacity: int = _MEMO_CAPACITY) -> None:
        self._seal = SnapshotSigner(key)
        self._memo_capacity = memo_capacity
        self._threads = Threads()

    @property
    def capabilities(self) -> Capabilities:
        return _CAPABILITIES

    def guest(self) -> Guest:
        # Not at the top: most sessions never run Lisp, and the library of the language takes a moment to load.
        from holdfast.guests.lisp.guest import LispGuest

        return LispGuest(
            capabilities=_CAPABILITIES,
            seal=self._seal,
            memo_capacity=self._memo_capacity,
            threads=self._threads,
        )

    async def close(self) -> None:
        """End the threads that programs were at work in. Idempotent."""
        await self._threads.close()


def lisp_engine(*, key: bytes) -> Engine:
    """An engine whose guests seal what they leave with `key`."""
    return LispEngine(key=key)
