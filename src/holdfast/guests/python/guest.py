"""The Python guest of one session: its variables, and the worker that holds them while it is warm."""

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec

from holdfast.core import Answer, Parked
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.python.state import (
    ExportedVariables,
    PythonState,
    RunProgress,
    decode_parked,
    decode_state,
    encode_record,
    export_request,
    read_export,
    refuse_all,
)
from holdfast.guests.python.worker_errors import MessageTooLong, WorkerLost
from holdfast.guests.python.worker_pool import WorkerPool
from holdfast.guests.signed_snapshot import SnapshotSigner

if TYPE_CHECKING:
    from holdfast.guests.python.execution import Execution
    from holdfast.guests.python.state import ParkedRun
    from holdfast.guests.python.worker import Worker

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MAX_NAMES = 20_000
_NO_STEPS = (
    "The python sandbox cannot count steps, so it does not run code under a step limit ({}). "
    "Remove `steps` from `[code]` in config.toml and limit `seconds` instead, or use the wasi or lisp sandbox."
)


class PythonGuest:
    """Runs one piece of code at a time. The last dump is the truth about its variables; a warm worker only saves time."""

    def __init__(self, *, workers: WorkerPool, signer: SnapshotSigner, capabilities: Capabilities) -> None:
        self._workers = workers
        self._signer = signer
        self._capabilities = capabilities
        self._tag = f"{capabilities.engine}/{capabilities.version}"
        self._lock = asyncio.Lock()
        self._state: PythonState | None = None
        """The variables between runs; None if nothing was ever run."""
        self._worker: Worker | None = None
        """Holds exactly `_state`, or nothing if that is None."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        if request.limits.steps is not None:
            error = _NO_STEPS.format(request.limits.steps)
            return Run(status="refused", error=error, is_unsupported=True)
        async with self._lock:
            names = frozenset(self._state.names) if self._state else frozenset()
            rejection = await self._workers.checker().check(request.code, request.tools, names)
            if rejection is not None:
                return Run(status="refused", error=rejection.text, is_unsupported=rejection.is_unsupported)
            known = tuple(sorted(names.union(_IDENTIFIER.findall(request.code))))[:_MAX_NAMES]
            was_warm = self._worker is not None
            run, is_visible = await self._run_once(request, on_call, known)
            if run.status == "lost" and was_warm and not is_visible:
                # The process died while it was idle. Nothing of this run is visible yet, so it can start again.
                run, _ = await self._run_once(request, on_call, known)
            return run

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        parked = decode_parked(self._signer.verify(f"{self._tag} parked", snapshot))
        if isinstance(answer, Parked):
            return Run(status="parked", snapshot=snapshot, printed=parked.progress.printed)
        async with self._lock:
            await self._release_worker()
            worker = self._worker = await self._workers.open(request.limits)
            execution = self._execution(worker, request, on_call, parked.state, parked.progress)
            return await self._finish(execution, parked=parked, answer=answer)

    async def export_variables(self) -> ExportedVariables:
        """The variables that are plain data, for another engine to import."""
        if self._state is None:
            return ExportedVariables()
        return read_export(await self.run(export_request(self._state.names), refuse_all))

    async def snapshot(self) -> bytes:
        async with self._lock:
            if self._state is None:
                return b""
            return self._signer.sign(f"{self._tag} state", encode_record(self._state))

    async def restore(self, state: bytes) -> None:
        restored = decode_state(self._signer.verify(f"{self._tag} state", state)) if state else None
        async with self._lock:
            await self._release_worker()
            self._state = restored

    async def close(self) -> None:
        async with self._lock:
            await self._release_worker()

    async def evict(self) -> None:
        """Return the worker to the pool and keep the variables."""
        await self.close()

    async def _run_once(
        self, request: RunRequest, on_call: OnCall, names: tuple[str, ...]
    ) -> tuple[Run, bool]:
        """Run the code once; also return whether the host has seen anything of the run."""
        try:
            worker = await self._warm_worker(request.limits)
        except WorkerLost as error:
            text = f"The variables of this session could not be loaded: {error}."
            return Run(status="lost", error=text), False
        if self._state is None:
            state = PythonState(dump=b"", names=names, limits=request.limits, feeds=0)
        else:
            state = msgspec.structs.replace(self._state, names=names)
        execution = self._execution(worker, request, on_call, state, RunProgress())
        return await self._finish(execution), execution.is_visible

    def _execution(
        self,
        worker: "Worker",
        request: RunRequest,
        on_call: OnCall,
        state: PythonState,
        progress: RunProgress,
    ) -> "Execution":
        from holdfast.guests.python.execution import Execution

        return Execution(worker=worker, request=request, on_call=on_call, state=state, progress=progress)

    async def _finish(
        self, execution: "Execution", *, parked: "ParkedRun | None" = None, answer: Answer | None = None
    ) -> Run:
        """Run to the end, and keep the variables, or the snapshot of a run that was parked."""
        try:
            run = await execution.run(parked=parked, answer=answer)
        except BaseException:
            await self._release_worker()
            raise
        if execution.parked is not None:
            await self._release_worker()
            signed = self._signer.sign(f"{self._tag} parked", encode_record(execution.parked))
            return msgspec.structs.replace(run, snapshot=signed)
        return await self._keep_variables(run, execution.state)

    async def _keep_variables(self, run: Run, state: PythonState) -> Run:
        """Dump the variables that a run left. If they are too large, the output says so; if they are lost, the run ends at a limit."""
        if run.status not in ("ok", "error") or self._worker is None:
            await self._release_worker()
            return run
        try:
            dump = await self._worker.dump()
        except MessageTooLong as error:
            await self._release_worker()
            note = f"[The variables are as they were before the run: {error}.]\n"
            return msgspec.structs.replace(run, printed=run.printed + note)
        except WorkerLost as error:
            await self._release_worker()
            text = f"{run.error}\nThe variables cannot be kept: {error}. They are as they were before the run.".strip()
            return msgspec.structs.replace(run, status="limit", value=None, error=text)
        except BaseException:
            await self._release_worker()
            raise
        self._state = msgspec.structs.replace(state, dump=dump)
        self._workers.mark_idle(self)
        return run

    async def _warm_worker(self, limits: GuestLimits) -> "Worker":
        """The worker that holds the variables."""
        self._workers.mark_busy(self)
        if self._worker is None:
            self._worker = await self._workers.open(limits)
            if self._state is not None:
                try:
                    await self._worker.load(self._state.dump)
                except BaseException:
                    await self._release_worker()
                    raise
        return self._worker

    async def _release_worker(self) -> None:
        """Return the worker to the pool."""
        self._workers.mark_busy(self)
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()
