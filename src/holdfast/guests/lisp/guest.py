"""`LispGuest`: runs programs in slices, answers their calls through the gate, and saves and restores their state."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Final, Literal

from holdfast.core import Answer, Json, Parked
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests.contract import CALL_PLACE, Capabilities, OnCall, Run, RunRequest
from holdfast.guests.lisp.errors import LimitReached, LispError
from holdfast.guests.lisp.host_calls import read_as_bytes, tool_operations
from holdfast.guests.lisp.json_bridge import to_json
from holdfast.guests.lisp.lang.reader import read
from holdfast.guests.lisp.lib import library, new_state
from holdfast.guests.lisp.threads import WorkerThreads
from holdfast.guests.lisp.vm.image import BadImage
from holdfast.guests.lisp.vm.interpreter import place_of_call
from holdfast.guests.lisp.vm.limits import Meter
from holdfast.guests.lisp.vm.machine import Machine, Progress
from holdfast.guests.lisp.vm.memory_use import check_saved_text, measure
from holdfast.guests.lisp.vm.registers import HostCall
from holdfast.guests.lisp.vm.snapshot import load_machine, load_state, save_machine, save_state
from holdfast.guests.signed_snapshot import SnapshotSigner

SLICE_STEPS: Final = 20_000
"""Steps between two checks of the time limits; takes a few milliseconds."""


class LispGuest:
    """The Lisp programs of one session."""

    def __init__(
        self,
        *,
        capabilities: Capabilities,
        signer: SnapshotSigner,
        memo_capacity: int,
        threads: WorkerThreads,
    ) -> None:
        self._capabilities = capabilities
        self._signer = signer
        self._threads = threads
        self._state = new_state(memo_capacity)
        self._has_run = False
        self._is_running = False

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        machine = self._machine(request)
        with self._exclusive():
            try:
                await self._threads.run(lambda: machine.load(read(request.code)))
            except LimitReached as limit:
                return Run(status="limit", error=str(limit))
            except LispError as error:
                return Run(status="refused", error=str(error))
            return await self._run_to_end(machine, on_call)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        machine = self._machine(request)
        with self._exclusive():
            try:
                await self._threads.run(
                    lambda: load_machine(machine, self._signer.verify(self._tag, snapshot), library())
                )
            except BadImage as error:
                raise _refused(error) from error
            self._state = machine.state
            if isinstance(answer, Parked):
                return self._result(machine, "parked", snapshot=snapshot)
            return await self._run_to_end(machine, on_call, answer)

    async def snapshot(self) -> bytes:
        if not self._has_run:
            return b""
        return await self._threads.run(lambda: self._signer.sign(self._tag, save_state(self._state)))

    async def restore(self, state: bytes) -> None:
        if not state:
            await self.close()
            return
        try:
            self._state = await self._threads.run(
                lambda: load_state(self._signer.verify(self._tag, state), library())
            )
        except BadImage as error:
            raise _refused(error) from error
        self._has_run = True

    async def close(self) -> None:
        self._state, self._has_run = new_state(self._state.artifacts.capacity), False

    def _machine(self, request: RunRequest) -> Machine:
        return Machine(
            self._state,
            Meter(request.limits),
            operations=tool_operations(request.tools),
            seed=request.seed,
            now_ms=request.now_ms,
        )

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """One program at a time: two would change the same data from two threads."""
        if self._is_running:
            raise GuestError(
                "this guest is already running a program", hint="wait for it, or use another guest"
            )
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    async def _run_to_end(self, machine: Machine, on_call: OnCall, answer: Answer | None = None) -> Run:
        """Run in slices to the end, a limit, or a call that needs approval."""
        self._has_run = True
        try:
            return await self._run_slices(machine, on_call, answer)
        except LimitReached as limit:
            return self._result(machine, "limit", error=str(limit))
        except MemoryError:
            return self._result(machine, "limit", error="memory_bytes: the host is out of memory")
        except LispError as error:
            value: Json = {"outcome": "error", "message": error.message, "code": error.code}
            return self._result(machine, "error", value=value, error=str(error))

    async def _run_slices(self, machine: Machine, on_call: OnCall, answer: Answer | None) -> Run:
        while True:
            progress, value = await self._threads.run(partial(_run_slice, machine, answer))
            answer = None
            if progress == "done":
                return self._result(machine, "ok", value=value)
            if progress == "waiting":
                at = place_of_call(machine)
                place = CALL_PLACE.set((at.line, at.column) if at is not None else None)
                try:
                    answer = await _call(machine, on_call)
                finally:
                    CALL_PLACE.reset(place)
                if isinstance(answer, Parked):
                    snapshot = await self._threads.run(partial(self._save, machine))
                    return self._result(machine, "parked", snapshot=snapshot)

    def _save(self, machine: Machine) -> bytes:
        check_saved_text(machine)
        return self._signer.sign(self._tag, save_machine(machine))

    def _result(
        self,
        machine: Machine,
        status: Literal["ok", "error", "limit", "parked"],
        *,
        value: Json = None,
        error: str = "",
        snapshot: bytes | None = None,
    ) -> Run:
        printed = "".join(machine.meter.output)
        return Run(
            status=status,
            value=value,
            printed=printed,
            error=error[: machine.meter.limits.output_bytes],
            snapshot=snapshot,
            steps=machine.meter.steps,
        )

    @property
    def _tag(self) -> str:
        return f"{self._capabilities.engine}/{self._capabilities.version}"


async def _call(machine: Machine, on_call: OnCall) -> Answer:
    """Make the pending call. A text that takes too much memory is read as bytes."""
    call = machine.pending_call
    assert call is not None
    answer = await on_call(call.operation, call.arguments)
    if (arguments := read_as_bytes(call.operation, call.arguments, answer)) is None:
        return answer
    machine.meter.count_call()
    machine.pending_call = HostCall(call.operation, arguments, is_base64=True)
    return await on_call(call.operation, arguments)


def _run_slice(machine: Machine, answer: Answer | None) -> tuple[Progress, Json]:
    """Pass in the answer to a call, if any, and run one slice. Returns the value if the program has ended.

    Runs in a worker thread. Raises LimitReached.
    """
    own, wall = time.thread_time(), time.perf_counter()
    if answer is not None:
        machine.resume_with(answer)
    progress = machine.advance(SLICE_STEPS)
    if progress == "memory-check":
        measure(machine)
    value: Json = None
    if progress == "done":
        value, machine.value = to_json(machine.value, names_procedures=True), None
        check_saved_text(machine)
    machine.count_seconds(own=time.thread_time() - own, wall=time.perf_counter() - wall)
    return progress, value


def _refused(error: BadImage) -> SnapshotRefused:
    return SnapshotRefused(f"the snapshot cannot be restored: {error}", hint="start the turn again")
