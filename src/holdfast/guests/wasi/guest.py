"""The WASI guest of one session. Its code runs in a worker process, which is started when needed and ended when it cannot be trusted.

The session above sees a `Guest`; `WorkerRequest` below talks to the worker. A worker that hit a limit is ended. The next run
starts another one with the variables of the last good run, which the worker saves after each run.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import holdfast.guests.wasi.component as component
import holdfast.guests.wasi.frames as frames
import holdfast.guests.wasi.messages as messages
import holdfast.guests.wasi.workspace_copy as workspace_copy
from holdfast.core import Answer, Change, Refused
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.signed_snapshot import SnapshotSigner
from holdfast.guests.wasi.request import (
    RequestCompleted,
    RequestParked,
    RequestResult,
    RequestStopped,
    WorkerRequest,
)
from holdfast.guests.wasi.worker_pool import Worker, WorkerPool
from holdfast.guests.wasi.workspace_copy import StagedView

_NOT_KEPT = "\nThe variables of this session are as they were before this run."
_MAX_SHOWN = 8


class WasiGuest:
    """Untrusted CPython code of one session."""

    def __init__(
        self,
        *,
        capabilities: Capabilities,
        signer: SnapshotSigner,
        folder: Path,
        view: StagedView | None,
        keeps_variables: bool,
        file_bytes: int,
        disk_bytes: int,
        workers: WorkerPool,
    ) -> None:
        self._capabilities = capabilities
        self._signer = signer
        self._folder = folder
        self._view = view
        self._keeps_variables = keeps_variables
        self._file_bytes = file_bytes
        self._disk_bytes = disk_bytes
        self._workers = workers
        self._worker: Worker | None = None
        self._state: bytes = b""
        """The variables of the last good run, unsigned: what a new worker starts with."""
        self._save_request: WorkerRequest | None = None
        """A request to save the variables whose reply has not been read yet."""
        self._parked: tuple[bytes, WorkerRequest] | None = None
        self._memory_bytes = GuestLimits().memory_bytes
        self._files: workspace_copy.FileStats = {}
        """The files of the folder when they were last scanned."""
        self._lock = asyncio.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        return self._capabilities

    async def import_variables(self, programs: tuple[str, ...]) -> None:
        """Define variables of another engine by running these programs."""
        for code in programs:
            await self.run(RunRequest(code=code), _refuse_all)

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        """Run code to its end, to a limit, or to a call that waits. Abandons a run that was parked before."""
        if len(request.code.encode(errors="replace")) > messages.MAX_CODE_BYTES:
            return Run(status="refused", error=f"the code has more than {messages.MAX_CODE_BYTES} bytes")
        async with self._exclusive():
            if self._parked is not None:
                await self._end_worker()
            # First of all: guest code runs while the worker saves, and could replace folders while we scan them.
            await self._finish_saving()
            self._files = await asyncio.to_thread(self._refresh_folder)
            worker = await self._ready_worker(request.limits)
            if isinstance(worker, RequestStopped):
                return await self._to_run(worker, None)
            worker_request = WorkerRequest(worker, request.limits, disk_bytes=self._disk_bytes)
            self._memory_bytes = request.limits.memory_bytes
            await worker_request.send(messages.run(request, is_fresh=not self._keeps_variables))
            return await self._to_run(await worker_request.wait(on_call), worker_request)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        """Resume a parked run. Only the process that parked it can; another one replays the turn."""
        if self._parked is None or not secrets.compare_digest(self._parked[0], snapshot):
            raise SnapshotRefused(
                "the process in which this run waited has ended",
                hint="Run the turn again; its calls are recorded.",
            )
        async with self._exclusive():
            worker_request, self._parked = self._parked[1], None
            return await self._to_run(await worker_request.resume(answer, on_call), worker_request)

    async def snapshot(self) -> bytes:
        """The signed variables; empty if nothing was ever run."""
        async with self._exclusive():
            await self._finish_saving()
        return self._signer.sign(_tag(), self._state) if self._state else b""

    async def restore(self, state: bytes) -> None:
        """Load the variables of a snapshot."""
        content = self._signer.verify(_tag(), state) if state else b""
        async with self._exclusive():
            await self._end_worker()
            self._state = content
            if content and isinstance(stopped := await self._ready_worker(GuestLimits()), RequestStopped):
                self._state = b""
                raise SnapshotRefused(
                    f"the variables of this session cannot be loaded: {stopped.reason}",
                    hint="Start the turn again without them.",
                )

    async def evict(self) -> None:
        """End the worker and keep the variables, because another session needs the room."""
        if self._lock.locked():
            return  # it is running again
        async with self._exclusive():
            await self._finish_saving()
            await self._end_worker()

    async def close(self) -> None:
        """End the worker, also in the middle of a run. Idempotent."""
        self._workers.mark_busy(self)
        await self._end_worker()

    @contextlib.asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Run one operation at a time. If it fails, the state of the worker is unknown, so the worker is ended."""
        async with self._lock:
            self._workers.mark_busy(self)
            try:
                yield
            except BaseException:
                await self._end_worker()
                raise
            if self._worker is not None and self._parked is None:
                self._workers.mark_idle(self)

    async def _start_saving(self, worker: Worker) -> None:
        """Ask the worker to save its variables now, while nothing waits for it; the next run may break the worker."""
        self._save_request = WorkerRequest(worker, messages.STATE_LIMITS)
        await self._save_request.send(messages.save(memory_bytes=self._memory_bytes))

    async def _finish_saving(self) -> None:
        """Read the variables that the worker saved. The pickle is made inside the sandbox and never loaded outside of it."""
        saving, self._save_request = self._save_request, None
        if saving is None:
            return
        result = await saving.wait(_refuse_all)
        try:
            assert isinstance(result, RequestCompleted | RequestStopped)
            if isinstance(result, RequestStopped):
                raise messages.MalformedWorkerReply(result.reason)
            messages.parse_variables(content := result.response.encode())
            self._state = content
        except messages.MalformedWorkerReply:
            await self._end_worker()  # the session continues with the variables that were saved before

    async def _ready_worker(self, limits: GuestLimits) -> Worker | RequestStopped:
        """The worker with the variables loaded, or why there is none."""
        await self._finish_saving()
        if self._worker is not None and not self._worker.is_gone:
            return self._worker
        await self._end_worker()
        worker = await self._workers.start(
            frames.Setup(
                workspace=str(self._folder), memory_bytes=limits.memory_bytes, file_bytes=self._file_bytes
            )
        )
        self._worker = worker
        try:
            ready = await worker.read()
        except frames.BrokenFrame as broken:
            raise GuestError(
                f"the sandbox process did not start: {broken}", hint="Run `holdfast doctor`."
            ) from None
        if isinstance(ready, frames.Trapped):
            return WorkerRequest(worker, limits).stopped_by(ready)
        assert isinstance(ready, frames.Ready)
        worker.notes = ready.notes
        if self._state:
            loading = WorkerRequest(worker, messages.STATE_LIMITS)
            saved = messages.parse_variables(self._state)
            await loading.send(messages.load(saved, memory_bytes=limits.memory_bytes))
            result = await loading.wait(_refuse_all)
            if isinstance(result, RequestStopped):
                return result
        return worker

    async def _to_run(self, result: RequestResult, request: WorkerRequest | None) -> Run:
        """The `Run` of the contract for the result of a request; no request if the worker did not start."""
        reply = None
        if isinstance(result, RequestCompleted):
            try:
                reply = messages.parse_run(result.response)
            except messages.MalformedWorkerReply as malformed:
                result = RequestStopped(is_limit=False, reason=str(malformed))
        printed = request.printed if request else ""
        steps = request.steps if request else 0
        if isinstance(result, RequestStopped):
            await self._end_worker()
        unfinished = request.unfinished if request and self._view is not None else frozenset()
        changes = await self._scan_changes(unfinished)
        match result:
            case RequestParked():
                assert request is not None
                token = secrets.token_bytes(16)
                self._parked = token, request
                return Run(status="parked", printed=printed, snapshot=token, changes=changes)
            case RequestStopped():
                status: Literal["limit", "lost"] = "limit" if result.is_limit else "lost"
                return Run(
                    status=status,
                    printed=printed,
                    error=result.reason + _NOT_KEPT + _not_written(unfinished),
                    changes=changes,
                    steps=steps,
                )
            case RequestCompleted():
                assert request is not None
                assert reply is not None
                if self._keeps_variables:
                    await self._start_saving(request.worker)
                error = reply.error[: request.limits.output_bytes]
                return Run(
                    status="limit" if request.is_over_calls else reply.status,
                    value=reply.value,
                    printed=printed,
                    error=error.rstrip("\n") + _not_written(unfinished) if unfinished else error,
                    changes=changes,
                    dropped=()
                    if error
                    else tuple(f"{path} could not be written" for path in sorted(unfinished)),
                    steps=steps,
                )

    def _refresh_folder(self) -> workspace_copy.FileStats:
        return workspace_copy.scan(self._folder) if self._view is None else self._view.refresh()

    async def _scan_changes(self, unfinished: frozenset[str]) -> tuple[Change, ...]:
        """What changed since the last scan, without the `unfinished` files. A parked run reports its changes so far, and the rest
        after it resumes.
        """
        before = self._files
        self._files = await asyncio.to_thread(workspace_copy.scan, self._folder)
        for path in unfinished & self._files.keys():
            if path in before:
                self._files[path] = before[path]
            else:
                del self._files[path]
        if before == self._files:
            return ()
        digest_before = None if self._view is None else self._view.digest_before
        return await asyncio.to_thread(
            workspace_copy.changes_between, self._folder, before, self._files, digest_before=digest_before
        )

    async def _end_worker(self) -> None:
        """End the worker and discard the requests that it has not finished."""
        worker, self._worker, self._parked, self._save_request = self._worker, None, None, None
        if worker is not None:
            await worker.end()


def _not_written(paths: frozenset[str]) -> str:
    if not paths:
        return ""
    names = ", ".join(sorted(paths)[:_MAX_SHOWN])
    more = f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else ""
    return f"\nNot written, because the run ended before they were closed: {names}{more}."


def _tag() -> str:
    """Pickles that contain code are valid for one CPython version, which comes with componentize-py."""
    return f"wasi {component.version_of('componentize-py')}"


async def _refuse_all(operation: str, arguments: object) -> Answer:
    return Refused(reason=f"{operation} cannot be called while variables are saved or loaded", rule="wasi")
