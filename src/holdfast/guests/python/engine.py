"""The engine of Python guests."""

from importlib.metadata import PackageNotFoundError, version

import holdfast.process.confine_worker as confine_worker
from holdfast.core.errors import EngineMissing
from holdfast.guests.contract import Capabilities
from holdfast.guests.python.guest import PythonGuest
from holdfast.guests.python.worker_pool import WorkerPool
from holdfast.guests.signed_snapshot import SnapshotSigner

_PACKAGE = "pydantic-monty"
_NOTES = (
    "a subset of Python: no class inheritance, no generators, 25 modules of the standard library",
    "under a limit of steps it counts statements, turns of loops and lambdas, and has no eval or exec",
    "memory and time limits of a session are those of its first run, later ones can only be shorter",
)


class PythonEngine:
    """Makes Python guests that share a bounded set of worker processes."""

    def __init__(self, *, key: bytes, max_workers: int) -> None:
        self._seal = SnapshotSigner(key)
        self._workers = WorkerPool(max_workers=max_workers)
        self._capabilities = Capabilities(
            engine="python",
            version=_installed_version(),
            language="python",
            has_snapshot=True,
            judges_files=True,
            checks_types=True,
            notes=(*_NOTES, *confine_worker.expected()),
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def guest(self) -> PythonGuest:
        return PythonGuest(workers=self._workers, seal=self._seal, capabilities=self._capabilities)

    async def close(self) -> None:
        await self._workers.close()


def python_engine(*, key: bytes, max_workers: int = 64) -> PythonEngine:
    """Python guests on Monty. Nothing is loaded and no process started before a guest first runs."""
    return PythonEngine(key=key, max_workers=max_workers)


def _installed_version() -> str:
    try:
        return version(_PACKAGE)
    except PackageNotFoundError:
        raise EngineMissing(
            "the Python sandbox is not installed", hint=f"Install {_PACKAGE}; holdfast depends on it."
        ) from None
