"""Lisp as a guest: runs programs in slices, answers their calls through the gate, saves and restores what they are."""

import contextlib
import time
from collections.abc import Iterator
from functools import partial
from typing import Final, Literal

from holdfast.core import Answer, Json, Parked
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests.contract import Capabilities, OnCall, Run, RunRequest
from holdfast.guests.lisp.errors import LimitReached, LispError
from holdfast.guests.lisp.host_calls import tool_operations
from holdfast.guests.lisp.json_bridge import to_json
from holdfast.guests.lisp.lang.reader import read
from holdfast.guests.lisp.lib import fresh_state, library
from holdfast.guests.lisp.threads import Threads
from holdfast.guests.lisp.vm.image import BadImage
from holdfast.guests.lisp.vm.limits import Meter
from holdfast.guests.lisp.vm.machine import Machine, Progress
from holdfast.guests.lisp.vm.memory_use import measure
from holdfast.guests.lisp.vm.snapshot import load_machine, load_state, save_machine, save_state
from holdfast.guests.signed_snapshot import SnapshotSigner

SLICE_STEPS: Final = 20_000
"""Between two looks at the clock: some milliseconds."""


class LispGuest:
    """The Lisp programs of one session."""

    def __init__(
        self, *, capabilities: Capabilities, seal: SnapshotSigner, memo_capacity: int, threads: Threads
    ) -> None:
        self._capabilities = capabilities
        self._seal = seal
        self._threads = threads
        self._state = fresh_state(memo_capacity)
        self._has_run = False
        self._is_running = False

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        machine = self._machine(request)
        with self._at_work():
            try:
                await self._threads.do(lambda: machine.load(read(request.code)))
            except LimitReached as limit:
                return Run(status="limit", error=str(limit))
            except LispError as fault:
                return Run(status="refused", error=str(fault))
            return await self._drive(machine, on_call)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        machine = self._machine(request)
        with self._at_work():
            try:
                await self._threads.do(
                    lambda: load_machine(machine, self._seal.verify(self._tag, snapshot), library())
                )
            except BadImage as error:
                raise _refused(error) from error
            self._state = machine.state
            if isinstance(answer, Parked):
                return self._ended(machine, "parked", snapshot=snapshot)
            return await self._drive(machine, on_call, answer)

    async def snapshot(self) -> bytes:
        if not self._has_run:
            return b""
        return await self._threads.do(lambda: self._seal.sign(self._tag, save_state(self._state)))

    async def restore(self, state: bytes) -> None:
        if not state:
            await self.close()
            return
        try:
            self._state = await self._threads.do(
                lambda: load_state(self._seal.verify(self._tag, state), library())
            )
        except BadImage as error:
            raise _refused(error) from error
        self._has_run = True

    async def close(self) -> None:
        self._state, self._has_run = fresh_state(self._state.artifacts.capacity), False

    def _machine(self, request: RunRequest) -> Machine:
        return Machine(
            self._state,
            Meter(request.limits),
            operations=tool_operations(request.tools),
            seed=request.seed,
            now_ms=request.now_ms,
        )

    @contextlib.contextmanager
    def _at_work(self) -> Iterator[None]:
        """One program at a time: two would work on the same data in two threads."""
        if self._is_running:
            raise GuestError(
                "a program of this guest is running already", hint="Await it, or use another guest."
            )
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    async def _drive(self, machine: Machine, on_call: OnCall, answer: Answer | None = None) -> Run:
        """Run slice by slice to the end, a limit, or a call that waits for a person."""
        self._has_run = True
        try:
            return await self._run_slices(machine, on_call, answer)
        except LimitReached as limit:
            return self._ended(machine, "limit", error=str(limit))
        except MemoryError:
            return self._ended(machine, "limit", error="memory_bytes: the host has no more memory to give")
        except LispError as fault:
            value: Json = {"outcome": "error", "message": fault.message, "code": fault.code}
            return self._ended(machine, "error", value=value, error=str(fault))

    async def _run_slices(self, machine: Machine, on_call: OnCall, answer: Answer | None) -> Run:
        while True:
            progress, value = await self._threads.do(partial(_slice, machine, answer))
            answer = None
            if progress == "done":
                return self._ended(machine, "ok", value=value)
            if progress == "waiting":
                assert machine.waiting is not None
                answer = await on_call(machine.waiting.operation, machine.waiting.arguments)
                if isinstance(answer, Parked):
                    sealed = await self._threads.do(lambda: self._seal.sign(self._tag, save_machine(machine)))
                    return self._ended(machine, "parked", snapshot=sealed)

    def _ended(
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


def _slice(machine: Machine, answer: Answer | None) -> tuple[Progress, Json]:
    """Take in the answer of a call, if any, and run for a while, in a thread. The value is that of a program that ended.

    Raises LimitReached."""
    own, wall = time.thread_time(), time.perf_counter()
    if answer is not None:
        machine.answer(answer)
    progress = machine.advance(SLICE_STEPS)
    if progress == "crowded":
        measure(machine)
    value = to_json(machine.value, names_procedures=True) if progress == "done" else None
    machine.count_seconds(own=time.thread_time() - own, wall=time.perf_counter() - wall)
    return progress, value


def _refused(error: BadImage) -> SnapshotRefused:
    return SnapshotRefused(f"this snapshot does not fit: {error}", hint="Start the turn again.")
