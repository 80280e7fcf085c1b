"""The Python of one session: its variables, and the worker that holds them while they are warm."""

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec

from holdfast.core import Answer, Parked
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.python.progress import (
    ParkedRun,
    Progress,
    State,
    decode_parked,
    decode_state,
    encode_record,
)
from holdfast.guests.python.workers import Workers
from holdfast.guests.seal import Seal

if TYPE_CHECKING:
    from holdfast.guests.python.execution import Execution
    from holdfast.guests.python.worker import Worker

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_MAX_NAMES = 20_000
_STATE_SECONDS = 60.0


class PythonGuest:
    """Runs one piece of code at a time. Its truth is the last dump; a warm worker only saves time."""

    def __init__(self, *, workers: Workers, seal: Seal, capabilities: Capabilities) -> None:
        self._workers = workers
        self._seal = seal
        self._capabilities = capabilities
        self._tag = f"{capabilities.engine}/{capabilities.version}"
        self._lock = asyncio.Lock()
        self._state: State | None = None
        """The variables at rest; None where nothing was ever run."""
        self._worker: Worker | None = None
        self._next: State | None = None
        """What the warm worker will be dumped as: everything but the dump. None while it holds nothing new."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        async with self._lock:
            known = self._next or self._state
            names = frozenset(known.names) if known else frozenset()
            complaints = await self._workers.checker().complaints(request.code, request.tools, names)
            if complaints:
                return Run(status="refused", error=complaints)
            worker = await self._warm(request.limits)
            await self._save()
            carried = self._state.limits if self._state else request.limits
            state = State(dump=b"", names=_names(names, request.code), limits=carried)
            return await self._finish(self._execution(worker, request, on_call, state, Progress()))

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        parked = decode_parked(self._seal.open(f"{self._tag} parked", snapshot))
        if isinstance(answer, Parked):
            return Run(status="parked", snapshot=snapshot, printed=parked.progress.printed)
        async with self._lock:
            await self._cool()
            worker = self._worker = await self._workers.open(request.limits)
            execution = self._execution(worker, request, on_call, parked.state, parked.progress)
            return await self._finish(execution, parked=parked, answer=answer)

    async def snapshot(self) -> bytes:
        async with self._lock:
            await self._save()
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
            await self._cool()

    def _execution(
        self, worker: "Worker", request: RunRequest, on_call: OnCall, state: State, progress: Progress
    ) -> "Execution":
        from holdfast.guests.python.execution import Execution

        return Execution(worker=worker, request=request, on_call=on_call, state=state, progress=progress)

    async def _finish(
        self, execution: "Execution", *, parked: ParkedRun | None = None, answer: Answer | None = None
    ) -> Run:
        """See a run to its end, and keep what it leaves."""
        try:
            run = await (
                execution.perform() if parked is None or answer is None else execution.go_on(parked, answer)
            )
        except BaseException:
            await self._forget()
            raise
        if execution.parked is not None:
            await self._forget()
            sealed = self._seal.close(f"{self._tag} parked", encode_record(execution.parked))
            return msgspec.structs.replace(run, snapshot=sealed)
        if run.status not in ("ok", "error"):
            await self._forget()
            return run
        self._next = execution.state
        self._workers.rest(self)
        return run

    async def _warm(self, limits: GuestLimits) -> "Worker":
        """The worker that holds the variables."""
        if self._worker is not None:
            self._workers.wake(self)
            return self._worker
        worker = await self._workers.open(limits)
        if self._state is not None:
            try:
                await worker.turn(worker.session.load_session(self._state.dump), seconds=_STATE_SECONDS)
            except BaseException:
                await worker.kill()
                raise
        self._worker = worker
        return worker

    async def _save(self) -> None:
        """Dump what the warm worker holds, if that is new."""
        if self._worker is None or self._next is None:
            return
        dump = await self._worker.turn(self._worker.session.dump(), seconds=_STATE_SECONDS)
        self._state, self._next = msgspec.structs.replace(self._next, dump=dump), None

    async def _cool(self) -> None:
        await self._save()
        await self._forget()

    async def _forget(self) -> None:
        """Give the worker back; what it holds that is not saved is gone."""
        self._workers.wake(self)
        worker, self._worker, self._next = self._worker, None, None
        if worker is not None:
            await worker.close()


def _names(known: frozenset[str], code: str) -> tuple[str, ...]:
    """The identifiers that a later run may use, once this code has run."""
    return tuple(sorted(known | set(_IDENTIFIER.findall(code))))[:_MAX_NAMES]
