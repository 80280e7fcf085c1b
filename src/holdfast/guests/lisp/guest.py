"""Lisp as a guest: runs programs in slices, answers their calls through the gate, saves and restores what they are."""

import asyncio
import time
from typing import Any, Final, Literal

from holdfast.core import Answer, Json, Parked
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests.contract import Capabilities, OnCall, Run, RunRequest
from holdfast.guests.lisp.border import to_json
from holdfast.guests.lisp.compiler import VERSION
from holdfast.guests.lisp.context import State
from holdfast.guests.lisp.faults import Fault, LimitReached
from holdfast.guests.lisp.image import BadImage, decode_image, encode_image
from holdfast.guests.lisp.library import fresh_state, library
from holdfast.guests.lisp.machine import NATIVE, Call, Machine
from holdfast.guests.lisp.memory import measure
from holdfast.guests.lisp.meter import Meter
from holdfast.guests.lisp.operations import tool_operations
from holdfast.guests.lisp.reader import read
from holdfast.guests.seal import Seal

SLICE_STEPS: Final = 10_000
"""Between two looks at the clock and at the other guests of the process: a millisecond or two."""

_REGISTERS = (
    "stack",
    "continuation",
    "context",
    "template",
    "pc",
    "frame",
    "forms",
    "prepared",
    "value",
    "random_state",
    "now_ms",
)
_COUNTS = ("steps", "calls", "seconds", "output_bytes")


class LispGuest:
    """The Lisp programs of one session."""

    def __init__(self, *, capabilities: Capabilities, seal: Seal, memo_capacity: int) -> None:
        self._capabilities = capabilities
        self._seal = seal
        self._state = fresh_state(memo_capacity)
        self._has_run = False
        self._is_running = False

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        machine = self._machine(request)
        try:
            machine.load(read(request.code))
        except LimitReached as limit:
            return Run(status="limit", error=str(limit))
        except Fault as fault:
            return Run(status="refused", error=str(fault))
        return await self._drive(machine, on_call)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        saved = self._open(snapshot)
        if "machine" not in saved or saved["code"] != VERSION:
            raise SnapshotRefused(
                "this snapshot is not of a parked run of this version of the engine",
                hint="Start the turn again.",
            )
        self._state = saved["state"]
        machine = self._machine(request)
        for name in _REGISTERS:
            setattr(machine, name, saved["machine"][name])
        for name in _COUNTS:
            setattr(machine.meter, name, saved["meter"][name])
        machine.permitted = set(saved["permitted"])
        machine.waiting = Call(*saved["waiting"])
        try:
            machine.answer(answer)
        except Fault as fault:
            return self._failed(machine, fault)
        return await self._drive(machine, on_call)

    async def snapshot(self) -> bytes:
        return self._close({"state": self._state_parts()}) if self._has_run else b""

    async def restore(self, state: bytes) -> None:
        if not state:
            self._state, self._has_run = fresh_state(self._state.artifacts.capacity), False
            return
        self._state, self._has_run = self._open(state)["state"], True

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

    async def _drive(self, machine: Machine, on_call: OnCall) -> Run:
        """Run slice by slice to the end, a limit, or a call that waits for a person."""
        if self._is_running:
            raise GuestError(
                "a program of this guest is running already", hint="Await it, or use another guest."
            )
        self._is_running = self._has_run = True
        try:
            return await self._run_slices(machine, on_call)
        except LimitReached as limit:
            return _run(machine, "limit", error=str(limit))
        except Fault as fault:
            return self._failed(machine, fault)
        finally:
            self._is_running = False

    async def _run_slices(self, machine: Machine, on_call: OnCall) -> Run:
        while True:
            started = time.perf_counter()
            progress = machine.advance(SLICE_STEPS)
            machine.count_seconds(time.perf_counter() - started)
            if progress == "done":
                value = to_json(machine.value, names_procedures=True)
                return _run(machine, "ok", value=value)
            if progress == "crowded":
                await _look_at_memory(machine)
            elif progress == "waiting":
                assert machine.waiting is not None
                answer = await on_call(machine.waiting.operation, machine.waiting.arguments)
                if isinstance(answer, Parked):
                    return _run(machine, "parked", snapshot=self._park(machine))
                machine.answer(answer)
            else:
                await asyncio.sleep(0)

    def _failed(self, machine: Machine, fault: Fault) -> Run:
        value: Json = {"outcome": "error", "message": fault.message, "code": fault.code}
        return _run(machine, "error", value=value, error=str(fault))

    # Saving

    def _state_parts(self) -> dict[str, object]:
        return {"root": self._state.root, "facts": self._state.facts, "artifacts": self._state.artifacts}

    def _park(self, machine: Machine) -> bytes:
        assert machine.waiting is not None
        return self._close(
            {
                "state": self._state_parts(),
                "code": VERSION,
                "machine": {name: getattr(machine, name) for name in _REGISTERS},
                "meter": {name: getattr(machine.meter, name) for name in _COUNTS},
                "permitted": sorted(machine.permitted),
                "waiting": [machine.waiting.operation, machine.waiting.arguments],
            }
        )

    def _close(self, image: dict[str, object]) -> bytes:
        return self._seal.close(self._tag, encode_image(image, natives=NATIVE))

    def _open(self, sealed: bytes) -> dict[str, Any]:
        try:
            image: dict[str, Any] = decode_image(
                self._seal.open(self._tag, sealed), library=library(), natives=NATIVE
            )
            state = image["state"]
            image["state"] = State(state["root"], state["facts"], state["artifacts"])
        except (BadImage, KeyError, TypeError) as error:
            raise SnapshotRefused(
                f"this snapshot does not fit: {error}", hint="Start the turn again."
            ) from error
        return image

    @property
    def _tag(self) -> str:
        return f"{self._capabilities.engine}/{self._capabilities.version}"


async def _look_at_memory(machine: Machine) -> None:
    started = time.perf_counter()
    for _ in measure(machine):
        machine.count_seconds(time.perf_counter() - started)
        await asyncio.sleep(0)
        started = time.perf_counter()
    machine.count_seconds(time.perf_counter() - started)


def _run(
    machine: Machine,
    status: Literal["ok", "error", "limit", "parked"],
    *,
    value: Json = None,
    error: str = "",
    snapshot: bytes | None = None,
) -> Run:
    printed = "".join(machine.meter.output)
    return Run(
        status=status, value=value, printed=printed, error=error, snapshot=snapshot, steps=machine.meter.steps
    )
