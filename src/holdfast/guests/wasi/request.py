"""One request to a guest, from its first frame to its end: calls answered, output gathered, limits kept."""

import asyncio
import signal
from typing import Annotated

import msgspec

import holdfast.guests.wasi.frames as frames
from holdfast.core import Answer, EscalationId, Json, JsonObject, Parked, Value, encode
from holdfast.guests.contract import GuestLimits, OnCall
from holdfast.guests.wasi.worker_pool import Worker


class Completed(Value):
    """The guest answered the request itself."""

    response: str


class Stopped(Value):
    """The guest was ended; its memory is gone."""

    is_limit: bool
    reason: str


class Waiting(Value):
    """A call waits for a person, and the guest with it."""

    escalation: EscalationId


Ending = Completed | Stopped | Waiting


class _Wish(Value):
    """What the guest claims to want; not trusted before it has this shape."""

    operation: Annotated[str, msgspec.Meta(max_length=1000)]
    arguments: dict[str, Json]


class _Limit(Value, tag_field="kind", tag="limit"):
    """Tells the guest that it may make no more calls."""

    reason: str


_LOOK_SECONDS = 0.05
_wishes = msgspec.json.Decoder(_Wish)


class WorkerRequest:
    """Talks with a worker until it answers, waits or is stopped."""

    def __init__(self, worker: Worker, limits: GuestLimits, *, disk_bytes: int | None = None) -> None:
        self.worker = worker
        self.limits = limits
        self.steps = 0
        self.is_over_calls = False
        self._calls = 0
        self._wall_left = limits.wall_seconds
        self._shown: list[str] = []
        self._room = limits.output_bytes
        self._disk_bytes = disk_bytes
        self._written_before = worker.written_bytes() if disk_bytes is not None else 0
        self._is_over_disk = False

    @property
    def printed(self) -> str:
        """All output so far, within its limit."""
        return "".join(self._shown)

    async def begin(self, request: frames.Execute) -> None:
        """Hand in the request."""
        await self.worker.send(request)

    async def proceed(self, answer: Answer, on_call: OnCall) -> Ending:
        """Give the call that waits its answer."""
        if isinstance(answer, Parked):
            return Waiting(escalation=answer.escalation)
        await self.worker.send(frames.Answered(answer=_told(answer)))
        return await self.listen(on_call)

    def stopped_by(self, trap: frames.Trapped) -> Stopped:
        """What the engine's last word means to whoever wrote the code."""
        return _trapped(trap.reason, self.limits)

    async def listen(self, on_call: OnCall) -> Ending:
        """Answer the guest until it is done, waits or is stopped."""
        watch = asyncio.create_task(self._watch_disk())
        try:
            return await self._answer_calls(on_call)
        finally:
            watch.cancel()
            await asyncio.gather(watch, return_exceptions=True)

    async def _watch_disk(self) -> None:
        """Stop a guest that fills the disk: it writes past the gate, and the kernel bounds one file only."""
        while self._disk_bytes is not None and not self._is_over_disk:
            await asyncio.sleep(_LOOK_SECONDS)
            self._is_over_disk = self.worker.written_bytes() - self._written_before > self._disk_bytes
        if self._is_over_disk:
            self.worker.kill()

    async def _answer_calls(self, on_call: OnCall) -> Ending:
        while True:
            try:
                frame = await self._next_frame()
            except TimeoutError:
                self.worker.kill()
                return Stopped(
                    is_limit=True,
                    reason=f"the run took longer than {self.limits.wall_seconds:g} s and was stopped",
                )
            except frames.BrokenFrame as broken:
                return await self._died(str(broken))
            match frame:
                case frames.Showed():
                    self._show(frame.text)
                case frames.Called():
                    wish = _parsed(frame.request)
                    if wish is None:
                        self.worker.kill()
                        return Stopped(is_limit=False, reason="the guest sent a call that is none")
                    answer = await self._answer(wish, on_call)
                    if isinstance(answer, Parked):
                        return Waiting(escalation=answer.escalation)
                    await self.worker.send(frames.Answered(answer=_told(answer)))
                case frames.Finished():
                    self.steps = frame.steps
                    return Completed(response=frame.response)
                case frames.Trapped():
                    self.steps = frame.steps
                    return self.stopped_by(frame)
                case frames.Ready():
                    pass

    async def _next_frame(self) -> frames.FromWorker:
        """The next frame, on the guest's time: what a call waits for is not counted."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(self._wall_left):
                return await self.worker.read()
        finally:
            self._wall_left -= loop.time() - started

    async def _answer(self, wish: _Wish, on_call: OnCall) -> Answer | _Limit:
        self._calls += 1
        if self._calls > self.limits.calls:
            self.is_over_calls = True
            return _Limit(reason=f"the code made more than {self.limits.calls} calls")
        arguments: JsonObject = wish.arguments
        return await on_call(wish.operation, arguments)

    def _show(self, text: str) -> None:
        """Keep what fits. An honest guest stops by itself; one that does not is cut here."""
        piece = text.encode()[: self._room]
        self._room -= len(piece)
        self._shown.append(piece.decode(errors="ignore"))

    async def _died(self, reason: str) -> Stopped:
        """The process is gone; its exit status says why."""
        status = await self.worker.end()
        if self._is_over_disk:
            return Stopped(
                is_limit=True,
                reason=f"the code wrote more than {self._disk_bytes} bytes to files and was stopped",
            )
        if status == -signal.SIGPROF:
            return Stopped(
                is_limit=True, reason=f"the code ran longer than {self.limits.seconds:g} s and was stopped"
            )
        name = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return Stopped(is_limit=False, reason=f"the sandbox process died ({name}; {reason})")


def _parsed(request: str) -> _Wish | None:
    try:
        return _wishes.decode(request)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _told(answer: Answer | _Limit) -> str:
    """An answer as the guest reads it; one that is too big is an error it can act on."""
    content = encode(answer)
    if len(content) > frames.MAX_CALL_BYTES:
        return '{"kind":"failed","error":"ValueError","reason":"the result of this call has more than 4 MB"}'
    return content.decode()


def _trapped(reason: str, limits: GuestLimits) -> Stopped:
    if "all fuel consumed" in reason:
        return Stopped(is_limit=True, reason=f"the code took more than {limits.steps} steps and was stopped")
    if "call stack exhausted" in reason:
        return Stopped(
            is_limit=True, reason="the code nests deeper than the interpreter's stack and was stopped"
        )
    if "memory" in reason and "limit" in reason:
        return Stopped(
            is_limit=True,
            reason=f"a memory limit of {limits.memory_bytes} bytes is below what the interpreter needs",
        )
    if reason == frames.EXITED:
        return Stopped(is_limit=False, reason="the code ended its own interpreter (os._exit)")
    return Stopped(is_limit=False, reason=f"the interpreter stopped: {reason}")
