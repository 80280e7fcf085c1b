"""The engine that makes WASI guests: CPython in WebAssembly, with access to one folder and nothing else."""

from pathlib import Path

import holdfast.guests.wasi.component as component
import holdfast.process.confine_worker as confine_worker
from holdfast.guests.contract import Capabilities, StagedContents
from holdfast.guests.signed_snapshot import SnapshotSigner
from holdfast.guests.wasi.guest import WasiGuest
from holdfast.guests.wasi.worker_pool import WorkerPool
from holdfast.guests.wasi.workspace_copy import StagedView


def wasi_engine(
    *,
    key: bytes,
    cache: Path,
    workspace: Path,
    staged_view: Path | None = None,
    staged: StagedContents = dict,
    keeps_variables: bool = True,
    file_bytes: int = 64 << 20,
    disk_bytes: int = 256 << 20,
    workers: WorkerPool | None = None,
    progress: component.ReportProgress = lambda _: None,
) -> "WasiEngine":
    """An engine for one workspace. Raises EngineMissing.

    All engines of a process share `workers`; without it the engine has its own. With `staged_view`, a folder of ours, guests
    work on a copy of the workspace there, with what is `staged` over it, and report staged changes. `file_bytes` limits one
    file, `disk_bytes` what one run writes in total.
    """
    component.check_installed()
    return WasiEngine(
        signer=SnapshotSigner(key),
        workspace=workspace.resolve(),
        staged_view=None if staged_view is None else staged_view.resolve(),
        staged=staged,
        keeps_variables=keeps_variables,
        file_bytes=file_bytes,
        disk_bytes=disk_bytes,
        workers=workers or WorkerPool(key=key, cache=cache, progress=progress),
        owns_workers=workers is None,
    )


class WasiEngine:
    """Creates guests for one workspace."""

    def __init__(
        self,
        *,
        signer: SnapshotSigner,
        workspace: Path,
        staged_view: Path | None,
        staged: StagedContents,
        keeps_variables: bool,
        file_bytes: int,
        disk_bytes: int,
        workers: WorkerPool,
        owns_workers: bool,
    ) -> None:
        self._signer = signer
        self._workspace = workspace
        self._staged_view = staged_view
        self._staged = staged
        self._keeps_variables = keeps_variables
        self._file_bytes = file_bytes
        self._disk_bytes = disk_bytes
        self._workers = workers
        self._owns_workers = owns_workers
        self._guests: list[WasiGuest] = []

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do, and how the kernel of this machine confines their processes."""
        return Capabilities(
            engine="wasi",
            version=f"componentize-py {component.version_of('componentize-py')}, wasmtime {component.version_of('wasmtime')}",
            language="python",
            has_snapshot=False,
            judges_files=False,
            notes=confine_worker.expected(),
        )

    def guest(self) -> WasiGuest:
        """A new guest. Its process starts with the first run."""
        view = None
        if self._staged_view is not None:
            view = StagedView(base=self._workspace, folder=self._staged_view, staged=self._staged)
        guest = WasiGuest(
            capabilities=self.capabilities,
            signer=self._signer,
            folder=self._staged_view or self._workspace,
            view=view,
            keeps_variables=self._keeps_variables,
            file_bytes=self._file_bytes,
            disk_bytes=self._disk_bytes,
            workers=self._workers,
        )
        self._guests.append(guest)
        return guest

    async def close(self) -> None:
        """Close every guest, and the workers if the engine owns them. Idempotent."""
        guests, self._guests = self._guests, []
        for guest in guests:
            await guest.close()
        if self._owns_workers:
            await self._workers.close()
