"""The Python of one session: its variables, and the worker that holds them while they are warm."""

import asyncio
import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING

import msgspec

from holdfast.core import Answer, Parked
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.python.state import (
    ExportedVariables,
    Progress,
    State,
    decode_parked,
    decode_state,
    encode_record,
    handover_request,
    read_handover,
    refuse_all,
)
from holdfast.guests.python.steps import Uncountable, counted
from holdfast.guests.python.worker_errors import WorkerLost
from holdfast.guests.python.worker_pool import WorkerPool
from holdfast.guests.signed_snapshot import SnapshotSigner

if TYPE_CHECKING:
    from holdfast.guests.python.execution import Execution
    from holdfast.guests.python.worker import Worker

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MAX_NAMES = 20_000
_NO_STEPS = "Under a limit of steps this code cannot run here: {}. Write it in another way, or limit the seconds instead."


class PythonGuest:
    """Runs one piece of code at a time. Its truth is the last dump; a warm worker only saves time."""

    def __init__(self, *, workers: WorkerPool, seal: SnapshotSigner, capabilities: Capabilities) -> None:
        self._workers = workers
        self._seal = seal
        self._capabilities = capabilities
        self._tag = f"{capabilities.engine}/{capabilities.version}"
        self._lock = asyncio.Lock()
        self._state: State | None = None
        """The variables at rest; None where nothing was ever run."""
        self._worker: Worker | None = None
        """Holds exactly `_state`, or nothing where that is None."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        async with self._lock:
            names = frozenset(self._state.names) if self._state else frozenset()
            complaint = await self._workers.checker().complaint(request.code, request.tools, names)
            if complaint is not None:
                return Run(status="refused", error=complaint.text, is_unsupported=complaint.is_unsupported)
            kept = tuple(sorted(names.union(_IDENTIFIER.findall(request.code))))[:_MAX_NAMES]
            try:
                request = await self._counting(request) if self._counts(request) else request
            except Uncountable as error:
                return Run(status="refused", error=_NO_STEPS.format(error), is_unsupported=True)
            was_warm = self._worker is not None
            run, has_begun = await self._attempt(request, on_call, kept)
            if run.status == "lost" and was_warm and not has_begun:
                # The process died while it rested. Nothing of this run was seen, so it may begin again.
                run, _ = await self._attempt(request, on_call, kept)
            return run

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        parked = decode_parked(self._seal.open(f"{self._tag} parked", snapshot))
        if isinstance(answer, Parked):
            return Run(status="parked", snapshot=snapshot, printed=parked.progress.printed)
        async with self._lock:
            await self._forget()
            worker = self._worker = await self._workers.open(request.limits)
            execution = self._execution(worker, request, on_call, parked.state, parked.progress)
            return await self._finish(execution, execution.go_on(parked, answer))

    async def variables(self) -> ExportedVariables:
        """Those variables that are plain data, for another engine to go on with."""
        if self._state is None:
            return ExportedVariables()
        ended = await self.run(handover_request(self._state.names), refuse_all)
        return read_handover(ended)

    async def snapshot(self) -> bytes:
        async with self._lock:
            if self._state is None:
                return b""
            return self._seal.close(f"{self._tag} state", encode_record(self._state))

    async def restore(self, state: bytes) -> None:
        opened = decode_state(self._seal.open(f"{self._tag} state", state)) if state else None
        async with self._lock:
            await self._forget()
            self._state = opened

    async def close(self) -> None:
        async with self._lock:
            await self._forget()

    async def cool(self) -> None:
        """Give the worker back and keep the variables."""
        async with self._lock:
            await self._forget()

    async def _attempt(
        self, request: RunRequest, on_call: OnCall, names: tuple[str, ...]
    ) -> tuple[Run, bool]:
        """Run the code, and tell whether anything of that was seen outside."""
        try:
            worker = await self._warm(request.limits)
        except WorkerLost as error:
            told = f"The variables of this session could not be loaded: {error}."
            return Run(status="lost", error=told), False
        carried = self._state.limits if self._state else request.limits
        state = State(
            dump=self._state.dump if self._state else b"",
            names=names,
            limits=carried,
            counts_steps=self._counts(request),
        )
        execution = self._execution(worker, request, on_call, state, Progress())
        return await self._finish(execution, execution.perform()), execution.has_begun

    def _counts(self, request: RunRequest) -> bool:
        """Whether code counts its steps: under a limit, and from then on."""
        return request.limits.steps is not None or (self._state is not None and self._state.counts_steps)

    async def _counting(self, request: RunRequest) -> RunRequest:
        """The request with code that counts its steps. Raises Uncountable."""
        if self._state is not None and not self._state.counts_steps:
            raise Uncountable("earlier code of this session runs without a count")
        # Beside the loop: the longest code takes some tenths of a second.
        return msgspec.structs.replace(request, code=await asyncio.to_thread(counted, request.code))

    def _execution(
        self, worker: "Worker", request: RunRequest, on_call: OnCall, state: State, progress: Progress
    ) -> "Execution":
        from holdfast.guests.python.execution import Execution

        return Execution(worker=worker, request=request, on_call=on_call, state=state, progress=progress)

    async def _finish(self, execution: "Execution", running: Awaitable[Run]) -> Run:
        """See a run to its end, and keep what it leaves."""
        try:
            run = await running
        except BaseException:
            await self._forget()
            raise
        if execution.parked is not None:
            await self._forget()
            sealed = self._seal.close(f"{self._tag} parked", encode_record(execution.parked))
            return msgspec.structs.replace(run, snapshot=sealed)
        return await self._kept(run, execution.state)

    async def _kept(self, run: Run, state: State) -> Run:
        """Keep the variables that a run left; without them it counts as not run."""
        if run.status not in ("ok", "error") or self._worker is None:
            await self._forget()
            return run
        try:
            dump = await self._worker.dump()
        except WorkerLost as error:
            await self._forget()
            told = f"{run.error}\nThe variables cannot be kept: {error}. They are as they were before the run.".strip()
            return msgspec.structs.replace(run, status="limit", value=None, error=told)
        except BaseException:
            await self._forget()
            raise
        self._state = msgspec.structs.replace(state, dump=dump)
        self._workers.rest(self)
        return run

    async def _warm(self, limits: GuestLimits) -> "Worker":
        """The worker that holds the variables."""
        self._workers.wake(self)
        if self._worker is None:
            self._worker = await self._workers.open(limits)
            if self._state is not None:
                try:
                    await self._worker.load(self._state.dump)
                except BaseException:
                    await self._forget()
                    raise
        return self._worker

    async def _forget(self) -> None:
        """Give the worker back."""
        self._workers.wake(self)
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()
