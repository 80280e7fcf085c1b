"""The engine that makes Python guests."""

from importlib.util import find_spec
from pathlib import Path

import holdfast.process.confine_worker as confine_worker
from holdfast.core.errors import EngineMissing
from holdfast.guests.contract import Capabilities, GuestLimits
from holdfast.guests.python.guest import PythonGuest
from holdfast.guests.python.worker_pool import WorkerPool
from holdfast.guests.signed_snapshot import SnapshotSigner

_PACKAGE = "pydantic-monty"
_ENVELOPE_BYTES = 8 << 20
"""What a message may have beside a value of the largest size, so that a value that is only a little larger is refused in words."""
_NOTES = (
    "a subset of Python: no class inheritance, no generators, 25 modules of the standard library",
    "does not count steps: it refuses to run under a step limit",
    "memory and time limits of a session are those of its first run; later runs can only shorten the time",
)


class PythonEngine:
    """Makes Python guests that share a bounded set of worker processes."""

    def __init__(self, *, key: bytes, max_workers: int, value_bytes: int) -> None:
        self._signer = SnapshotSigner(key)
        self._workers = WorkerPool(max_workers=max_workers, message_bytes=value_bytes + _ENVELOPE_BYTES)
        self._capabilities = Capabilities(
            engine="python",
            version=_installed_version(),
            language="python",
            has_snapshot=True,
            judges_files=True,
            checks_types=True,
            follows_values=True,
            notes=(*_NOTES, *confine_worker.expected()),
        )

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    def guest(self) -> PythonGuest:
        return PythonGuest(workers=self._workers, signer=self._signer, capabilities=self._capabilities)

    async def close(self) -> None:
        await self._workers.close()


def python_engine(
    *, key: bytes, max_workers: int = 64, value_bytes: int = GuestLimits().value_bytes
) -> PythonEngine:
    """An engine of Python guests on Monty. It loads nothing and starts no process before a guest first runs.

    A worker that sends more than `value_bytes` at once, in a call, a result or its variables, is ended by the kernel.
    """
    return PythonEngine(key=key, max_workers=max_workers, value_bytes=value_bytes)


def _installed_version() -> str:
    name = _PACKAGE.replace("-", "_")
    found = find_spec(name)
    if found is None or found.origin is None:
        raise EngineMissing(
            "the Python sandbox is not installed", hint=f"Install {_PACKAGE}; holdfast depends on it."
        )
    # By the name of the folder beside the package: `importlib.metadata` loads a parser of e-mails, before the first prompt.
    for folder in Path(found.origin).parent.parent.glob(f"{name}-*.dist-info"):
        return folder.name.removesuffix(".dist-info").removeprefix(f"{name}-")
    from importlib.metadata import version

    return version(_PACKAGE)
