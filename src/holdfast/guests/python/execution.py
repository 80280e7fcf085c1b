"""One run of Python code: from the first line to its end, to a limit, or to a call that waits for a person.

The interpreter stops at each name it does not know, each call and each touch of the operating system, and waits for what
we say. Below lies the worker; above, the guest that keeps the state. A step that makes several calls is replayed from its
beginning after a wait, with the answers it already has.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, Literal

import msgspec
import pydantic_monty as monty

import holdfast.guests.python.steps as steps
from holdfast.core import Answer, Json
from holdfast.guests.contract import OnCall, Run, RunRequest
from holdfast.guests.python.host_calls import Calls, CallWaits, GuestException
from holdfast.guests.python.json_values import shown_error, shown_value
from holdfast.guests.python.limits import Bounds, LimitReached, Output
from holdfast.guests.python.os_calls import OsCalls
from holdfast.guests.python.state import ParkedRun, Progress, State
from holdfast.guests.python.tool_objects import ToolObjects
from holdfast.guests.python.worker import Worker, grace_seconds
from holdfast.guests.python.worker_errors import WorkerLost, WorkerTimeout

_WORKSPACE = "/workspace"
_UNSUPPORTED = "The monty syntax parser does not yet support"
_UNDONE = "The run was stopped. Its variables are as they were before it; calls it made are not undone."


class Execution:
    """Drives one run. `perform` or `go_on` is awaited once."""

    def __init__(
        self,
        *,
        worker: Worker,
        request: RunRequest,
        on_call: OnCall,
        state: State,
        progress: Progress,
    ) -> None:
        self._worker = worker
        self._request = request
        self._limits = request.limits
        self.state = state
        """What the worker holds after the run, but for the dump, which is that before it."""
        self._progress = progress
        self._bounds = Bounds(request.limits, progress)
        self._calls = Calls(on_call, self._bounds, progress)
        self._toolbox = ToolObjects(request.tools)
        self._surroundings = OsCalls(request, progress, ask=self._calls.ask, sleep=self._sleep)
        self._output = Output(max_bytes=self._limits.output_bytes, before=progress.printed)
        self._suspended: monty.AsyncSnapshot | None = None
        self._value: Json = None
        self._steps = 0
        self.parked: ParkedRun | None = None
        """What to keep of a run that ended `parked`."""

    async def perform(self) -> Run:
        """Run the request's code from its beginning."""
        return await self._end(self._perform())

    @property
    def has_begun(self) -> bool:
        """Whether anything of the run was seen outside: a question to us, or output."""
        return self._suspended is not None or bool(self._output.text)

    async def go_on(self, parked: ParkedRun, answer: Answer) -> Run:
        """Take up a parked run; the answer is for the call that it waits for."""
        self._calls.know(answer)
        if parked.is_complete:
            self._value = parked.value
            return await self._end(self._settle_after(parked.state.dump))
        loading = self._worker.session.load_snapshot(parked.state.dump, print_callback=self._output)
        return await self._end(self._drive(loading))

    def _feed(self, code: str) -> Awaitable[monty.AsyncSnapshot]:
        return self._worker.session.feed_start(
            code, print_callback=self._output, cwd=_WORKSPACE, skip_type_check=True
        )

    async def _perform(self) -> None:
        if self.state.counts_steps:
            beginning = steps.beginning(self._limits.steps, is_first=not self.state.dump)
            await self._turn(self._feed(beginning))
        await self._drive(self._feed(self._request.code))

    async def _drive(self, first: Awaitable[monty.AsyncSnapshot]) -> None:
        snapshot = await self._turn(first)
        while not isinstance(snapshot, monty.MontyComplete):
            self._suspended = snapshot
            snapshot = await self._turn(await self._step(snapshot))
        self._suspended = None
        self._value = shown_value(snapshot, max_bytes=self._limits.output_bytes)
        await self._settle()

    async def _settle_after(self, dump: bytes) -> None:
        await self._worker.load(dump)
        await self._settle()

    async def _settle(self) -> None:
        before = list(self._progress.opened)
        try:
            await self._surroundings.settle()
        except CallWaits:
            self._progress.opened = before
            raise

    async def _step(self, snapshot: monty.AsyncSnapshot) -> Awaitable[monty.AsyncSnapshot]:
        """What to say to a waiting interpreter."""
        if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
            return self._name(snapshot)
        if not isinstance(snapshot, monty.AsyncFunctionSnapshot):
            raise LimitReached(
                "The code waits for something that never comes. Call tools directly, without `await`."
            )
        before = list(self._progress.opened)
        reply: monty.ExternalResult | None
        try:
            reply = {"return_value": await self._result(snapshot)}
        except GuestException as error:
            reply = error.crossing
        except NotImplementedError:
            reply = None
        except CallWaits:
            self._progress.opened = before
            raise
        self._calls.step_is_over()
        return snapshot.resume_not_handled() if reply is None else snapshot.resume(reply)

    def _name(self, snapshot: monty.AsyncNameLookupSnapshot) -> Awaitable[monty.AsyncSnapshot]:
        value = self._toolbox.value(snapshot.object_id, snapshot.variable_name)
        return snapshot.resume() if value is None else snapshot.resume(value=value)

    async def _result(self, snapshot: monty.AsyncFunctionSnapshot) -> Any:
        name = snapshot.function_name
        if name == steps.STOP:
            raise self._out_of_steps()
        if snapshot.is_os_function:
            return await self._surroundings.answer(name, snapshot.args, snapshot.kwargs)
        tool = self._toolbox.tool(snapshot.object_id, name)
        if tool is None:
            kind = "NameError" if snapshot.object_id is None else "AttributeError"
            raise GuestException(kind, f"there is no tool {name!r}")
        try:
            arguments = self._toolbox.bind(tool, snapshot.args, snapshot.kwargs)
        except TypeError as error:
            raise GuestException("TypeError", str(error)) from None
        return await self._calls.ask(tool.name, arguments)

    def _out_of_steps(self) -> LimitReached:
        self._steps = self._limits.steps or 0
        return self._bounds.out_of_steps()

    async def _sleep(self, seconds: float) -> None:
        self._bounds.check_sleep(seconds)
        await asyncio.sleep(max(0.0, seconds))

    async def _turn(self, step: Awaitable[monty.AsyncSnapshot]) -> monty.AsyncSnapshot:
        own = self._bounds.seconds_left + grace_seconds(self.state.limits, self._limits)
        wall = self._bounds.wall_seconds_left
        with self._bounds.running():
            try:
                return await self._worker.turn(step, seconds=max(0.0, min(own, wall)))
            except WorkerTimeout:
                bounds = self._bounds
                raise bounds.out_of_wall_time() if wall < own else bounds.out_of_time() from None

    async def _end(self, driving: Awaitable[None]) -> Run:
        """How the run ended, and after how many steps."""
        run = await self._ended(driving)
        if not self.state.counts_steps or run.status not in ("ok", "error"):
            return run
        try:
            read = await self._turn(self._feed(steps.READ))
            assert isinstance(read, monty.MontyComplete), "the count asks for nothing"
        except (monty.MontyError, WorkerLost, LimitReached) as error:
            return await self._stop(
                "lost", f"The sandbox did not say how many steps it made: {error}.\n{_UNDONE}"
            )
        used = steps.used(read.output, self._limits.steps)
        return msgspec.structs.replace(run, steps=used)

    async def _ended(self, driving: Awaitable[None]) -> Run:
        """How the run ended, whatever happened; only a cancelled one has no end."""
        try:
            await driving
        except CallWaits:
            return await self._park()
        except LimitReached as limit:
            return await self._stop("limit", f"{limit}\n{_UNDONE}")
        except GuestException as error:
            return Run(status="error", error=f"{error.kind}: {error.message}", printed=self._output.text)
        except monty.MontyCrashedError as error:
            if error.timed_out:
                return await self._stop("limit", f"{self._bounds.out_of_time()}\n{_UNDONE}")
            return await self._stop("lost", f"The sandbox process died: {error}.\n{_UNDONE}")
        except WorkerLost as error:
            return await self._stop("lost", f"The sandbox process was lost: {error}.\n{_UNDONE}")
        except monty.MontyRuntimeError as error:
            return await self._failed(error)
        except monty.MontyError as error:
            # A syntax error of text that running code gave to eval looks like one of the code itself.
            status: Literal["error", "refused"] = "error" if self.has_begun else "refused"
            return Run(
                status=status,
                error=shown_error(error, is_counting=self.state.counts_steps),
                printed=self._output.text,
            )
        except BaseException:
            await self._worker.kill()
            raise
        return Run(status="ok", value=self._value, printed=self._output.text)

    async def _failed(self, error: monty.MontyRuntimeError) -> Run:
        """An exception that left the guest's code, or a bound of the interpreter that looks like one."""
        cause, text = error.exception(), shown_error(error, is_counting=self.state.counts_steps)
        if steps.STOP in str(cause):
            # Below a builtin (`max(..., key=...)`) the code cannot wait for us; it was told so, and left with that.
            return await self._stop("limit", f"{self._out_of_steps()}\n{_UNDONE}")
        if self._output.is_full:
            return await self._stop("limit", f"{self._bounds.too_much_output()}\n{_UNDONE}")
        if isinstance(cause, TimeoutError) and "time limit exceeded" in str(cause):
            return await self._stop("limit", f"{text}\n{self._bounds.out_of_time()}\n{_UNDONE}")
        if isinstance(cause, MemoryError) and "memory limit" in str(cause):
            return await self._stop("limit", f"{text}\n{self._bounds.out_of_memory()}\n{_UNDONE}")
        if self._suspended is not None and not error.traceback():
            return await self._stop("lost", f"The sandbox did not take an answer: {text}\n{_UNDONE}")
        if not self.has_begun and str(cause).startswith(_UNSUPPORTED):
            return Run(status="refused", error=text, is_unsupported=True)
        return Run(status="error", error=text, printed=self._output.text)

    async def _park(self) -> Run:
        suspended = self._suspended
        try:
            dump = await self._worker.dump() if suspended is None else suspended.dump()  # type: ignore[union-attr]
        except (WorkerLost, monty.MontyError) as error:
            return await self._stop(
                "lost", f"The run cannot wait, it does not fit into a snapshot: {error}.\n{_UNDONE}"
            )
        self._progress.printed = self._output.text
        self._bounds.pause()
        self.parked = ParkedRun(
            state=msgspec.structs.replace(self.state, dump=dump),
            progress=self._progress,
            is_complete=suspended is None,
            value=self._value,
        )
        return Run(status="parked", printed=self._progress.printed)

    async def _stop(self, status: Literal["limit", "lost"], error: str) -> Run:
        await self._worker.kill()
        return Run(status=status, error=error, printed=self._output.text, steps=self._steps)
