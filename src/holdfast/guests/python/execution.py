"""One run of Python code: start it, answer what the interpreter asks, collect the result.

The interpreter stops at each unknown name, each call and each operating system call, and waits for a reply. The worker below
runs it; the guest above keeps its state. One stop may make several calls. If one of them waits for an approval, the run is
parked, and the stop is replayed from its beginning with the answers that it already has.
"""

from collections.abc import Awaitable

import msgspec
import pydantic_monty as monty

from holdfast.core import Answer, Json
from holdfast.guests.contract import OnCall, Run, RunRequest
from holdfast.guests.python.host_calls import CallParked, GuestException, HostCalls
from holdfast.guests.python.json_values import render_error, render_value
from holdfast.guests.python.limits import LimitReached, LimitTracker, OutputBuffer
from holdfast.guests.python.os_calls import OsCalls
from holdfast.guests.python.state import RESET_STEP_COUNT, ParkedRun, PythonState, RunProgress
from holdfast.guests.python.tool_objects import ToolObjects
from holdfast.guests.python.worker import Worker, grace_seconds
from holdfast.guests.python.worker_errors import WorkerLost, WorkerTimeout

_WORKSPACE = "/workspace"
_UNSUPPORTED = "The monty syntax parser does not yet support"
_NOT_UNDONE = "The run was stopped. Its variables are as they were before it; calls it made are not undone."


class Execution:
    """Drives one run. Await `run` once."""

    def __init__(
        self,
        *,
        worker: Worker,
        request: RunRequest,
        on_call: OnCall,
        state: PythonState,
        progress: RunProgress,
    ) -> None:
        self.state = state
        """What the worker holds after the run, except for the dump, which is the one from before it."""
        self.parked: ParkedRun | None = None
        """What to keep of a run that ended `parked`."""
        self._worker = worker
        self._request = request
        self._progress = progress
        self._limits = LimitTracker(request.limits, progress)
        self._calls = HostCalls(on_call, self._limits, progress)
        self._tools = ToolObjects(request.tools)
        self._os_calls = OsCalls(request, progress, call=self._calls.call, sleep=self._limits.sleep)
        self._output = OutputBuffer(max_bytes=request.limits.output_bytes, before=progress.printed)
        self._opened = list(progress.opened)
        """Files that were open for writing when the current stop began; a parked stop begins again with them."""
        self._stopped_at: monty.AsyncSnapshot | None = None
        """Where the interpreter last stopped; None before its first stop and after the code has ended."""

    @property
    def is_visible(self) -> bool:
        """Whether the host has seen anything of the run: a stop of the interpreter, or output."""
        return self._stopped_at is not None or bool(self._output.text)

    async def run(self, *, parked: ParkedRun | None = None, answer: Answer | None = None) -> Run:
        """Run the request's code, or resume a parked run with the answer to the call that it waits for."""
        session, value = self._worker.session, parked.value if parked else None
        snapshot: monty.AsyncSnapshot | None = None
        try:
            if parked is None:
                if self.state.counts_steps:
                    await self._advance(self._feed(RESET_STEP_COUNT))
                snapshot = await self._advance(self._feed(self._request.code))
            else:
                assert answer is not None
                self._calls.replay(answer)
                if parked.is_complete:
                    await self._worker.load(parked.state.dump)
                else:
                    loading = session.load_snapshot(parked.state.dump, print_callback=self._output)
                    snapshot = await self._advance(loading)
            while snapshot is not None and not isinstance(snapshot, monty.MontyComplete):
                self._stopped_at, self._opened = snapshot, list(self._progress.opened)
                reply = await self._reply(snapshot)
                self._calls.forget_answers()
                snapshot = await self._advance(reply)
            self._stopped_at, self._opened = None, list(self._progress.opened)
            if snapshot is not None:
                value = render_value(snapshot, max_bytes=self._request.limits.output_bytes)
            await self._os_calls.write_opened_files()
            return Run(status="ok", value=value, printed=self._output.text)
        except CallParked:
            return await self._park(value)
        except GuestException as error:
            return Run(status="error", error=f"{error.kind}: {error.message}", printed=self._output.text)
        except (LimitReached, WorkerLost, monty.MontyError) as error:
            run = self._failed_run(error)
            if run.status in ("limit", "lost"):
                await self._worker.kill()
            return run
        except BaseException:
            await self._worker.kill()
            raise

    def _feed(self, code: str) -> Awaitable[monty.AsyncSnapshot]:
        return self._worker.session.feed_start(
            code, print_callback=self._output, cwd=_WORKSPACE, skip_type_check=True
        )

    async def _advance(self, step: Awaitable[monty.AsyncSnapshot]) -> monty.AsyncSnapshot:
        """Let the interpreter run to its next stop, within the time that is left."""
        computing = self._limits.seconds_left + grace_seconds(self.state.limits, self._request.limits)
        wall = self._limits.wall_seconds_left
        with self._limits.computing():
            try:
                return await self._worker.turn(step, seconds=max(0.0, min(computing, wall)))
            except WorkerTimeout:
                is_wall = wall < computing
                raise self._limits.out_of_wall_time() if is_wall else self._limits.out_of_time() from None

    async def _reply(self, snapshot: monty.AsyncSnapshot) -> Awaitable[monty.AsyncSnapshot]:
        """What to answer a stopped interpreter: a name, the result of a call, or an exception."""
        if isinstance(snapshot, monty.AsyncNameLookupSnapshot):
            value = self._tools.look_up(snapshot.object_id, snapshot.variable_name)
            return snapshot.resume() if value is None else snapshot.resume(value=value)
        if not isinstance(snapshot, monty.AsyncFunctionSnapshot):
            raise LimitReached(
                "The code waits for something that never comes. Call tools directly, without `await`."
            )
        name, args, kwargs = snapshot.function_name, snapshot.args, snapshot.kwargs
        try:
            if snapshot.is_os_function:
                return snapshot.resume({"return_value": await self._os_calls.handle(name, args, kwargs)})
            tool, arguments = self._tools.bind(snapshot.object_id, name, args, kwargs)
            return snapshot.resume({"return_value": await self._calls.call(tool.name, arguments)})
        except GuestException as error:
            return snapshot.resume(error.as_monty)
        except NotImplementedError:
            return snapshot.resume_not_handled()

    async def _park(self, value: Json) -> Run:
        """Save the stopped interpreter, or the finished one if only a file that it opened waits to be written."""
        stopped_at = self._stopped_at
        try:
            dump = await self._worker.dump() if stopped_at is None else stopped_at.dump()  # type: ignore[union-attr]
        except (WorkerLost, monty.MontyError) as error:
            await self._worker.kill()
            text = f"The run cannot wait, because it does not fit into a snapshot: {error}.\n{_NOT_UNDONE}"
            return Run(status="lost", error=text, printed=self._output.text)
        self._progress.opened = self._opened
        self._progress.printed = self._output.text
        self._limits.pause()
        self.parked = ParkedRun(
            state=msgspec.structs.replace(self.state, dump=dump),
            progress=self._progress,
            is_complete=stopped_at is None,
            value=value,
        )
        return Run(status="parked", printed=self._progress.printed)

    def _failed_run(self, error: LimitReached | WorkerLost | monty.MontyError) -> Run:
        """How the run ended: at a limit, with its worker, by an exception of the code, or refused before it started."""
        limits, printed = self._limits, self._output.text
        text, limit, loss = "", None, ""
        match error:
            case LimitReached():
                limit = error
            case monty.MontyCrashedError() if error.timed_out:
                limit = limits.out_of_time()
            case monty.MontyCrashedError():
                loss = f"The sandbox process died: {error}."
            case WorkerLost():
                loss = f"The sandbox process was lost: {error}."
            case monty.MontyRuntimeError():
                cause, text = error.exception(), render_error(error)
                if self._output.is_full:
                    text, limit = "", limits.too_much_output()
                elif isinstance(cause, TimeoutError) and "time limit exceeded" in str(cause):
                    limit = limits.out_of_time()
                elif isinstance(cause, MemoryError) and "memory limit" in str(cause):
                    limit = limits.out_of_memory()
                elif self._stopped_at is not None and not error.traceback():
                    loss = f"The sandbox did not accept an answer: {text}"
                elif not self.is_visible and str(cause).startswith(_UNSUPPORTED):
                    return Run(status="refused", error=text, is_unsupported=True)
            case _ if not self.is_visible:
                return Run(status="refused", error=render_error(error), printed=printed)
            case _:
                # Running code gave text with a syntax error to `eval`; before anything ran, the code itself has one.
                text = render_error(error)
        if limit is not None:
            lines = [text, str(limit), _NOT_UNDONE] if text else [str(limit), _NOT_UNDONE]
            return Run(status="limit", error="\n".join(lines), printed=printed)
        if loss:
            return Run(status="lost", error=f"{loss}\n{_NOT_UNDONE}", printed=printed)
        return Run(status="error", error=text, printed=printed)
