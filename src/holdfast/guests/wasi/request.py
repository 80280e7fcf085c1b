"""One request to a worker: sends it, answers the calls of the guest, collects its output and enforces its limits."""

import asyncio
import signal

import holdfast.guests.wasi.frames as frames
from holdfast.core import Answer, EscalationId, JsonObject, Parked, Value
from holdfast.guests.contract import GuestLimits, OnCall
from holdfast.guests.json_calls import (
    MIN_MESSAGE_BYTES,
    CallLimit,
    CallRequest,
    encode_answer,
    max_message_bytes,
    parse_call,
)
from holdfast.guests.wasi.worker_pool import Worker


class RequestCompleted(Value):
    """The guest answered the request itself."""

    response: str


class RequestStopped(Value):
    """The guest was stopped; its memory is gone."""

    is_limit: bool
    reason: str


class RequestParked(Value):
    """A call of the guest waits for an approval."""

    escalation: EscalationId


RequestResult = RequestCompleted | RequestStopped | RequestParked


_DISK_CHECK_SECONDS = 0.05
_MAX_OPEN_FILES = 10_000
_MAX_PATH_CHARACTERS = 4096


class WorkerRequest:
    """A request to a worker, until the worker completes it, waits or is stopped."""

    def __init__(self, worker: Worker, limits: GuestLimits, *, disk_bytes: int | None = None) -> None:
        self.worker = worker
        self.limits = limits
        self.steps = 0
        self.is_over_calls = False
        self._message_bytes = max_message_bytes(limits.value_bytes)
        self._calls = 0
        self._wall_left = limits.wall_seconds
        self._output: list[str] = []
        self._output_bytes_left = limits.output_bytes
        self._disk_bytes = disk_bytes
        self._written_before = worker.written_bytes() if disk_bytes is not None else 0
        self._is_over_disk = False
        self._writing: dict[int, str] = {}

    @property
    def unfinished(self) -> frozenset[str]:
        """The files that the guest has open for writing, or that it could not complete."""
        return frozenset(self._writing.values())

    @property
    def printed(self) -> str:
        """All output so far, within the limit."""
        return "".join(self._output)

    async def send(self, request: frames.Execute) -> None:
        """Send the request."""
        await self.worker.send(request)

    async def resume(self, answer: Answer, on_call: OnCall) -> RequestResult:
        """Answer the call that waits, and continue."""
        if isinstance(answer, Parked):
            return RequestParked(escalation=answer.escalation)
        await self.worker.send_answer(encode_answer(answer, max_bytes=self._message_bytes))
        return await self.wait(on_call)

    def stopped_by(self, trap: frames.Trapped) -> RequestStopped:
        """What the reason of the engine means for the author of the code."""
        return _trapped(trap.reason, self.limits)

    async def wait(self, on_call: OnCall) -> RequestResult:
        """Answer the calls of the guest until it completes the request, waits or is stopped."""
        watch = asyncio.create_task(self._watch_disk())
        try:
            return await self._answer_calls(on_call)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _watch_disk(self) -> None:
        """Stop a guest that fills the disk. Its writes do not pass the gate, and the kernel limits only the size of one file."""
        while self._disk_bytes is not None and not self._is_over_disk:
            await asyncio.sleep(_DISK_CHECK_SECONDS)
            self._is_over_disk = self.worker.written_bytes() - self._written_before > self._disk_bytes
        if self._is_over_disk:
            self.worker.kill()

    async def _answer_calls(self, on_call: OnCall) -> RequestResult:
        while True:
            try:
                frame = await self._next_frame()
            except TimeoutError:
                self.worker.kill()
                return RequestStopped(
                    is_limit=True,
                    reason=f"the run took longer than {self.limits.wall_seconds:g} s and was stopped",
                )
            except frames.BrokenFrame as broken:
                return await self._lost(str(broken))
            match frame:
                case frames.Printed():
                    self._append_output(frame.text)
                case frames.Writing(number=number, path=path):
                    if not path:
                        self._writing.pop(number, None)
                    elif len(self._writing) < _MAX_OPEN_FILES and len(path) <= _MAX_PATH_CHARACTERS:
                        self._writing[number] = path
                    else:
                        self.worker.kill()
                        reason = f"the code had more than {_MAX_OPEN_FILES} files open for writing"
                        return RequestStopped(is_limit=True, reason=reason)
                case frames.Called():
                    call = parse_call(frame.request)
                    del frame  # a large call is in memory once
                    if call is None:
                        self.worker.kill()
                        return RequestStopped(is_limit=False, reason="the guest sent a malformed call")
                    answer = await self._answer(call, on_call)
                    del call
                    if isinstance(answer, Parked):
                        return RequestParked(escalation=answer.escalation)
                    await self.worker.send_answer(encode_answer(answer, max_bytes=self._message_bytes))
                    del answer
                case frames.Finished():
                    self.steps = frame.steps
                    if len(frame.response) > MIN_MESSAGE_BYTES:
                        self.worker.kill()
                        return RequestStopped(
                            is_limit=True, reason="the result or the error of the code has more than 32 MB"
                        )
                    return RequestCompleted(response=frame.response)
                case frames.Trapped():
                    self.steps = frame.steps
                    return self.stopped_by(frame)
                case frames.Ready():
                    pass

    async def _next_frame(self) -> frames.FromWorker:
        """The next frame. Only this wait counts as time of the guest; the wait for the answer of a call does not."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self._wall_left):
                return await self.worker.read(max_bytes=self._message_bytes)
        finally:
            self._wall_left -= loop.time() - started

    async def _answer(self, call: CallRequest, on_call: OnCall) -> Answer | CallLimit:
        self._calls += 1
        if self._calls > self.limits.calls:
            self.is_over_calls = True
            return CallLimit(reason=f"the code made more than {self.limits.calls} calls")
        arguments: JsonObject = call.arguments
        return await on_call(call.operation, arguments)

    def _append_output(self, text: str) -> None:
        """Keep the output that fits. The package inside stops at the limit; code that bypasses it is cut off here."""
        piece = text.encode()[: self._output_bytes_left]
        self._output_bytes_left -= len(piece)
        self._output.append(piece.decode(errors="ignore"))

    async def _lost(self, reason: str) -> RequestStopped:
        """The process has ended; its exit status says why."""
        status = await self.worker.end()
        if self._is_over_disk:
            return RequestStopped(
                is_limit=True,
                reason=f"the code wrote more than {self._disk_bytes} bytes to files and was stopped",
            )
        if status == -signal.SIGPROF:
            return RequestStopped(
                is_limit=True, reason=f"the code ran longer than {self.limits.seconds:g} s and was stopped"
            )
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return RequestStopped(is_limit=False, reason=f"the sandbox process died ({name}; {reason})")


def _trapped(reason: str, limits: GuestLimits) -> RequestStopped:
    if "all fuel consumed" in reason:
        return RequestStopped(
            is_limit=True, reason=f"the code took more than {limits.steps} steps and was stopped"
        )
    if "call stack exhausted" in reason:
        return RequestStopped(
            is_limit=True, reason="the code nests deeper than the interpreter's stack and was stopped"
        )
    if "memory" in reason and "limit" in reason:
        return RequestStopped(
            is_limit=True,
            reason=f"a memory limit of {limits.memory_bytes} bytes is below what the interpreter needs",
        )
    if reason == frames.EXITED:
        return RequestStopped(is_limit=False, reason="the code ended its own interpreter (os._exit)")
    return RequestStopped(is_limit=False, reason=f"the interpreter stopped: {reason}")
