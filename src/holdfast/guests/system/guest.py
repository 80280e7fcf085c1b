"""The system guest of one session: each run is a new process of the project's own Python, in the command sandbox.

Variables are pickled at the end of a run, inside the sandbox, and loaded in the process of the next one. What the code changed
is settled by the call that ends the process, as for any program. A run that waits keeps its process; if that process is gone,
the run is lost and not repeated, because what it did to the network and to itself is not on record.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from typing import Literal, assert_never

import msgspec

from holdfast.core import Answer, Failed, JsonObject, Parked, Refused, Returned, encode, text_bytes
from holdfast.core.errors import SnapshotRefused
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.json_calls import CallLimit, encode_answer, max_message_bytes, parse_call
from holdfast.guests.signed_snapshot import SnapshotSigner
from holdfast.guests.system.contract import Interpreter, InterpreterEnd, InterpreterGone, Interpreters
from holdfast.guests.system.messages import (
    MAX_CODE_BYTES,
    CodeCalled,
    CodeFinished,
    FromInterpreter,
    InterpreterReady,
    InterpreterUnusable,
    InterpreterVariables,
    MalformedMessage,
    length_of,
    next_message,
    run_message,
)
from holdfast.guests.system.program import sources

_TAG = "system 1"
_START_SECONDS = 60.0
"""How long an interpreter may take to start on a busy machine. It does not count as time of the code."""
_NOT_KEPT = "\nThe variables of this session are as they were before this run."
_MAX_REPEATED_BYTES = 64 << 20
"""The arguments that a run keeps to make its calls again, if its budget is raised while it waits."""
_NOTHING_SAVED = InterpreterVariables()


class SystemGuest:
    """Untrusted code of one session in the project's own Python."""

    def __init__(
        self, *, capabilities: Capabilities, signer: SnapshotSigner, interpreters: Interpreters
    ) -> None:
        self._capabilities = capabilities
        self._signer = signer
        self._interpreters = interpreters
        self._saved = _NOTHING_SAVED
        self._prelude: tuple[str, ...] = ()
        """Programs that define variables of another engine; run before the next code."""
        self._parked: _Execution | None = None
        self._lock = asyncio.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        return self._capabilities

    async def import_variables(self, programs: tuple[str, ...]) -> None:
        """Define variables of another engine before the next code runs."""
        self._prelude = programs

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        """Run code to its end, to a limit, or to a call that waits. Abandons a run that was parked before."""
        if len(request.code.encode(errors="replace")) > MAX_CODE_BYTES:
            return Run(status="refused", error=f"the code has more than {MAX_CODE_BYTES} bytes")
        if request.limits.steps is not None:
            return Run(status="refused", error="the system sandbox cannot count steps; limit seconds instead")
        async with self._exclusive():
            try:
                started = await self._interpreters.start(request.code, on_call)
            except InterpreterGone:
                reason = "the process in which this code ran has ended, and the code is not run again"
                return Run(status="lost", error=reason + _NOT_KEPT)
            match started:
                case Parked():
                    return Run(status="parked")
                case Refused(reason=reason) | Failed(reason=reason):
                    return Run(status="error", error=f"the code did not run: {reason}")
                case Returned():
                    return Run(status="error", error="the code did not run: there is no interpreter")
                case _:
                    pass
            if self._parked is not None and self._parked.interpreter is started:
                # Its budget was raised: the process waits, and its calls are on record up to where it does.
                return await self._keep(self._parked, await self._parked.replay(on_call))
            await self._abandon()
            self._parked = execution = _Execution(started, self._interpreters, request)
            await execution.send(sources())
            await execution.send(run_message(request, self._saved, self._prelude))
            return await self._keep(execution, await execution.wait(on_call))

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        """Resume a parked run. Only the process that parked it can; elsewhere the run is lost."""
        execution = self._parked
        if execution is None or not secrets.compare_digest(execution.token, snapshot):
            raise SnapshotRefused(
                "the process in which this run waited has ended", hint="Run the code again in a new turn."
            )
        async with self._exclusive():
            return await self._keep(execution, await execution.resume(answer, on_call))

    async def snapshot(self) -> bytes:
        """The signed variables; empty if nothing was ever run."""
        return self._signer.sign(_TAG, encode(self._saved)) if self._saved.state else b""

    async def restore(self, state: bytes) -> None:
        """Load the variables of a snapshot. The interpreter itself loads them at the next run."""
        content = self._signer.verify(_TAG, state) if state else b""
        # A run that waits stays: the next run may be the same one, which continues in its process.
        self._saved = msgspec.json.decode(content, type=InterpreterVariables) if content else _NOTHING_SAVED

    async def close(self) -> None:
        """End the process, also in the middle of a run. Idempotent."""
        await self._abandon()

    @contextlib.asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Run one operation at a time. If it fails, its process is ended, and what it changed is dropped."""
        async with self._lock:
            try:
                yield
            except BaseException:
                await asyncio.shield(self._abandon())
                raise

    async def _abandon(self) -> None:
        execution, self._parked = self._parked, None
        if execution is not None:
            await self._interpreters.kill(execution.interpreter)

    async def _keep(self, execution: "_Execution", run: Run) -> Run:
        """Take over the variables of a run that ended."""
        if run.status == "parked":
            return run
        await self._abandon()  # it has ended, unless the call that ends it was refused
        if execution.variables is not None:
            self._saved, self._prelude = execution.variables, ()
        return run


class _Execution:
    """One run of code in an interpreter, until it ends or waits."""

    def __init__(self, interpreter: Interpreter, interpreters: Interpreters, request: RunRequest) -> None:
        self.interpreter = interpreter
        self.token = secrets.token_bytes(16)
        self.variables: InterpreterVariables | None = None
        self._interpreters = interpreters
        self._limits = request.limits
        self._wall_left = request.limits.wall_seconds
        self._message_bytes = max_message_bytes(request.limits.value_bytes)
        self._made: list[tuple[str, JsonObject]] = []
        self._made_bytes = self._calls = 0
        self._result: CodeFinished | None = None
        self._problem: tuple[Literal["limit", "lost"], str] | None = None
        self._is_ready = False
        self._is_ending = False
        self._is_unusable = False

    async def send(self, data: bytes) -> None:
        """Send to the interpreter. If it is gone, the next read reports it."""
        with contextlib.suppress(InterpreterGone):
            await self.interpreter.send(data)

    async def _send_answer(self, answer: Answer | CallLimit) -> None:
        content = encode_answer(answer, max_bytes=self._message_bytes)
        await self.send(length_of(content))
        await self.send(content)

    async def resume(self, answer: Answer, on_call: OnCall) -> Run:
        """Answer the call that waits, and continue."""
        if self._is_ending:
            return self._ended(answer)
        if isinstance(answer, Parked):
            return self._parked()
        await self._send_answer(answer)
        return await self.wait(on_call)

    async def replay(self, on_call: OnCall) -> Run:
        """Make the calls of the run again, which are on record, and continue with the one that waits."""
        if self._made_bytes > _MAX_REPEATED_BYTES:
            self._problem = "lost", "it made calls with too much data to continue after the wait"
            return await self._end(on_call)
        answer: Answer = Returned()
        for operation, arguments in self._made:
            answer = await on_call(operation, arguments)
        if self._is_ending:
            return await self._end(on_call)
        return await self.resume(answer, on_call)

    async def wait(self, on_call: OnCall) -> Run:
        """Answer the calls of the code until it ends or a call waits."""
        while self._result is None and self._problem is None:
            try:
                message = await self._next_message()
            except TimeoutError:
                wall = f"the run took longer than {self._limits.wall_seconds:g} s and was stopped"
                self._problem = "limit", wall
                continue
            except (InterpreterGone, MalformedMessage) as problem:
                self._problem = "lost", str(problem)
                continue
            match message:
                case InterpreterReady():
                    self._is_ready = True
                case CodeCalled(request=request):
                    call = parse_call(request)
                    del message, request  # a large call is in memory once
                    if call is None:
                        self._problem = "lost", "the code sent a malformed call"
                        continue
                    answer = await self._answer(call.operation, call.arguments, on_call)
                    del call
                    if isinstance(answer, Parked):
                        return self._parked()
                    await self._send_answer(answer)
                    del answer
                case CodeFinished():
                    self._result = message
                case InterpreterUnusable(reason=reason):
                    self._result, self._is_unusable = CodeFinished(status="refused", error=reason), True
                case _:
                    assert_never(message)
        return await self._end(on_call)

    async def _end(self, on_call: OnCall) -> Run:
        self._is_ending = True
        is_dead = self._problem is not None
        unfinished = self._result.unfinished if self._result is not None else ()
        answer = await self._interpreters.end(
            self.interpreter, on_call, is_dead=is_dead, unfinished=unfinished
        )
        return self._ended(answer)

    async def _next_message(self) -> FromInterpreter:
        """The next message. Only this wait counts as time of the code, once the interpreter has started."""
        loop = asyncio.get_running_loop()
        started, is_counted = loop.time(), self._is_ready
        try:
            async with asyncio.timeout(self._wall_left if is_counted else _START_SECONDS):
                return await next_message(self.interpreter, max_bytes=self._message_bytes)
        finally:
            if is_counted:
                self._wall_left -= loop.time() - started

    async def _answer(self, operation: str, arguments: JsonObject, on_call: OnCall) -> Answer | CallLimit:
        if self._calls >= self._limits.calls:
            reason = f"the code made more than {self._limits.calls} calls"
            self._problem = "limit", reason
            return CallLimit(reason=reason)
        self._calls += 1
        self._made_bytes += text_bytes(arguments)
        if self._made_bytes > _MAX_REPEATED_BYTES:
            self._made.clear()
        else:
            self._made.append((operation, arguments))
        return await on_call(operation, arguments)

    def _parked(self) -> Run:
        return Run(status="parked", printed=self._printed, snapshot=self.token)

    @property
    def _printed(self) -> str:
        return self.interpreter.printed[: self._limits.output_bytes].decode("utf-8", "ignore")

    def _ended(self, answer: Answer) -> Run:
        """The result of the run, once its process has ended and what it changed is settled."""
        if isinstance(answer, Parked):
            return self._parked()
        end = self._interpreters.ended(answer)
        dropped = end.refused
        if isinstance(answer, Refused | Failed):
            dropped += (f"what the code changed was not kept: {answer.reason}",)
        if len(self.interpreter.printed) > self._limits.output_bytes:
            self._problem = "limit", f"the code printed more than {self._limits.output_bytes} bytes"
        result = self._result
        if result is not None and result.variables is not None:
            self.variables = result.variables
        if self._problem is not None or result is None:
            status, reason = _why(self._problem, end, self._limits)
            kept = "" if self.variables is not None else _NOT_KEPT
            return Run(status=status, printed=self._printed, error=reason + kept, dropped=dropped)
        error = result.error[: self._limits.output_bytes]
        return Run(
            status=result.status,
            value=result.value,
            printed=self._printed,
            error=error,
            dropped=dropped,
            is_unsupported=self._is_unusable,
        )


def _why(
    problem: tuple[Literal["limit", "lost"], str] | None, end: InterpreterEnd, limits: GuestLimits
) -> tuple[Literal["limit", "lost"], str]:
    """Why code did not end by itself, in the words of its author."""
    if end.signal in ("SIGPROF", "SIGXCPU"):
        return "limit", f"the code ran longer than {limits.seconds:g} s and was stopped"
    if end.stopped:
        return "limit", f"the code was stopped: {end.stopped}"
    status, reason = problem or ("lost", "the interpreter ended")
    if status == "lost" and end.signal not in ("", "SIGTERM"):  # which is how `shell.stop` ends it
        reason = f"the interpreter died ({end.signal})"
    return status, reason
