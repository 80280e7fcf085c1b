"""One run of Python code: start it, answer what the interpreter asks, collect the result.

The interpreter stops at each unknown name, each call and each operating system call, and waits for a reply. The worker below
runs it; the guest above keeps its state. One stop may make several calls. If one of them waits for an approval, the run is
parked, and the stop is replayed from its beginning with the answers that it already has.
"""

import asyncio
import functools
from collections.abc import Awaitable
from contextlib import suppress

import msgspec
import pydantic_monty as monty

from holdfast.core import Answer, Json
from holdfast.guests.contract import CALL_PLACE, OnCall, Run, RunRequest
from holdfast.guests.python.file_calls import FileCalls
from holdfast.guests.python.file_insertions import PATH, InsertedCode, insert_file_calls
from holdfast.guests.python.file_prelude import (
    AFTER_ERROR,
    END_OF_RUN,
    HOST_FUNCTION,
    PRELUDE,
    VERSION,
    uses_open,
    uses_text_methods,
)
from holdfast.guests.python.host_calls import CallParked, GuestException, HostCalls
from holdfast.guests.python.json_values import render_error, render_value
from holdfast.guests.python.limits import LimitReached, LimitTracker, OutputBuffer
from holdfast.guests.python.os_calls import OsCalls
from holdfast.guests.python.state import RESET_STEP_COUNT, ParkedRun, PythonState, RunProgress
from holdfast.guests.python.tool_objects import ToolObjects, placeholder
from holdfast.guests.python.worker import Worker, grace_seconds
from holdfast.guests.python.worker_errors import MessageTooLong, WorkerLost, WorkerTimeout

_WORKSPACE = "/workspace"
_UNSUPPORTED = "The monty syntax parser does not yet support"
_MAX_SHOWN = 8
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
        self._limits = LimitTracker(request.limits, progress, first_limits=state.limits)
        self._calls = HostCalls(on_call, self._limits, progress)
        self._tools = ToolObjects(request.tools)
        self._files = FileCalls(progress, call=self._calls.call, value_bytes=request.limits.value_bytes)
        self._os_calls = OsCalls(
            request, progress, files=self._files, call=self._calls.call, sleep=self._limits.sleep
        )
        self._output = OutputBuffer(max_bytes=request.limits.output_bytes, before=progress.printed)
        self._held = list(progress.held)
        """What was held back when the current stop began; a parked stop begins again with it."""
        self._is_ending = False
        """Whether the code has ended, and the interpreter is writing the files that it left open."""
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
                await self._prepare()
                snapshot = await self._start()
            else:
                assert answer is not None
                self._calls.replay(answer)
                self._hold_opened_files()
                self._is_ending = parked.is_ending
                if parked.is_complete:
                    await self._worker.load(parked.state.dump)
                else:
                    loading = session.load_snapshot(parked.state.dump, print_callback=self._output)
                    snapshot = await self._advance(loading)
            if snapshot is not None:
                complete = await self._run_to_end(snapshot)
                if not self._is_ending:
                    value = await self._render(complete)
                    if self._has_open_files:
                        self._is_ending = True
                        complete = await self._run_to_end(await self._advance(self._feed(END_OF_RUN)))
                if self._is_ending:
                    self.state = msgspec.structs.replace(self.state, has_open_files=complete.output is True)
            await self._files.write_all()
            return Run(status="ok", value=value, printed=self._output.text)
        except CallParked:
            return await self._park(value)
        except GuestException as error:
            text = f"{error.kind}: {error.message}"
            return await self._discard_files(Run(status="error", error=text, printed=self._output.text))
        except (LimitReached, WorkerLost, monty.MontyError) as error:
            run = self._failed_run(error)
            if run.status in ("limit", "lost"):
                await self._worker.kill()
            return await self._discard_files(run)
        except BaseException:
            await self._worker.kill()
            raise

    async def _render(self, complete: monty.MontyComplete) -> Json:
        # In a thread: a value of half a million items takes a second to convert, and already to look at.
        return await asyncio.to_thread(render_value, complete, max_bytes=self._request.limits.output_bytes)

    @property
    def _has_open_files(self) -> bool:
        return self._progress.has_opened or self.state.has_open_files

    async def _prepare(self) -> None:
        """Run what the code needs first."""
        if self.state.counts_steps:
            await self._advance(self._feed(RESET_STEP_COUNT))
        # Files that another version opened keep working with that version.
        is_kept = self.state.file_prelude > 0 and self.state.has_open_files
        if self.state.file_prelude != VERSION and not is_kept and self._uses_files:
            await self._advance(self._feed(PRELUDE))
            self.state = msgspec.structs.replace(self.state, file_prelude=VERSION)

    @property
    def _uses_files(self) -> bool:
        """Whether the code needs file objects that the interpreter does not have."""
        code = self._request.code
        return uses_open(code) or (uses_text_methods(code) and PATH in self._inserted.text)

    async def _start(self) -> monty.AsyncSnapshot:
        """Run the code to its first stop."""
        if self.state.file_prelude == VERSION and self._inserted.places:
            self._progress.code_feed, self._progress.has_insertions = self.state.feeds, True
            with suppress(monty.MontySyntaxError):
                return await self._advance(self._feed(self._inserted.text))
        self._progress.code_feed, self._progress.has_insertions = self.state.feeds, False
        return await self._advance(self._feed(self._request.code))

    @functools.cached_property
    def _inserted(self) -> InsertedCode:
        return insert_file_calls(self._request.code, self._tools.groups)

    async def _run_to_end(self, snapshot: monty.AsyncSnapshot) -> monty.MontyComplete:
        """Answer the interpreter at each stop until its code has ended."""
        while not isinstance(snapshot, monty.MontyComplete):
            self._stopped_at, self._held = snapshot, list(self._progress.held)
            reply = await self._reply(snapshot)
            self._calls.forget_answers()
            snapshot = await self._advance(reply)
        self._stopped_at, self._held = None, list(self._progress.held)
        return snapshot

    async def _discard_files(self, run: Run) -> Run:
        """Discard what open files hold after an error, and say so: a file is written whole or not at all."""
        paths = self._files.unwritten()
        if run.status == "error" and self._has_open_files:
            try:
                ended = await self._advance(self._feed(AFTER_ERROR))
            except (LimitReached, WorkerLost, monty.MontyError):
                await self._worker.kill()
                return msgspec.structs.replace(run, status="lost", error=f"{run.error}\n{_NOT_UNDONE}")
            if isinstance(ended, monty.MontyComplete):
                paths = [*paths, *(path for path in ended.output if path not in paths)]
        if run.status == "refused" or not paths:
            return run
        names = ", ".join(path.removeprefix(f"{_WORKSPACE}/") for path in paths[:_MAX_SHOWN])
        more = f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else ""
        text = f"{run.error}\nNot written, because the run ended before they were closed: {names}{more}."
        return msgspec.structs.replace(run, error=text)

    def _hold_opened_files(self) -> None:
        """Hold back the files that a run of version 0.1 had opened when it was parked."""
        for path in self._progress.opened:
            self._files.open_natively(path)
        self._progress.opened = []

    def _feed(self, code: str) -> Awaitable[monty.AsyncSnapshot]:
        if self.state.feeds >= 0:
            self.state = msgspec.structs.replace(self.state, feeds=self.state.feeds + 1)
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
            value = (
                placeholder(HOST_FUNCTION)
                if snapshot.object_id is None and snapshot.variable_name == HOST_FUNCTION
                else self._tools.look_up(snapshot.object_id, snapshot.variable_name)
            )
            return snapshot.resume() if value is None else snapshot.resume(value=value)
        if not isinstance(snapshot, monty.AsyncFunctionSnapshot):
            raise LimitReached(
                "The code waits for something that never comes. Call tools directly, without `await`."
            )
        name, args, kwargs = snapshot.function_name, snapshot.args, snapshot.kwargs
        try:
            if snapshot.is_os_function:
                return snapshot.resume({"return_value": await self._os_calls.handle(name, args, kwargs)})
            if snapshot.object_id is None and name == HOST_FUNCTION:
                call = list(args)
                del args
                return snapshot.resume({"return_value": await self._files.handle(call)})
            tool, arguments = self._tools.bind(snapshot.object_id, name, args, kwargs)
            await self._files.write_before_tool(tool.name, arguments)
            place = CALL_PLACE.set(self._place(snapshot))
            try:
                return snapshot.resume({"return_value": await self._calls.call(tool.name, arguments)})
            finally:
                CALL_PLACE.reset(place)
        except GuestException as error:
            return snapshot.resume(error.as_monty)
        except NotImplementedError:
            return snapshot.resume_not_handled()

    def _place(self, snapshot: monty.AsyncFunctionSnapshot) -> tuple[int, int] | None:
        """Where the call stands in the code of this run; None if it stands elsewhere, as in a function of an earlier run."""
        number, position = self._progress.code_feed, snapshot.position
        if number < 0 or position.filename != f"<python-input-{number}>":
            return None
        if self._progress.has_insertions:
            return self._inserted.position(position.start), self._inserted.position(position.end)
        return position.start, position.end

    async def _park(self, value: Json) -> Run:
        """Save the stopped interpreter, or the finished one if only a file that it opened waits to be written."""
        stopped_at = self._stopped_at
        try:
            dump = await self._worker.dump() if stopped_at is None else stopped_at.dump()  # type: ignore[union-attr]
        except (WorkerLost, monty.MontyError) as error:
            await self._worker.kill()
            text = f"The run cannot wait, because it does not fit into a snapshot: {error}.\n{_NOT_UNDONE}"
            return Run(status="lost", error=text, printed=self._output.text)
        self._progress.held = self._held
        self._progress.printed = self._output.text
        self._limits.pause()
        self.parked = ParkedRun(
            state=msgspec.structs.replace(self.state, dump=dump),
            progress=self._progress,
            is_complete=stopped_at is None,
            is_ending=self._is_ending,
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
            case MessageTooLong():
                limit = limits.message_too_long()
            case monty.MontyCrashedError() if error.timed_out:
                limit = limits.out_of_time()
            case monty.MontyCrashedError():
                loss = f"The sandbox process died: {error}."
            case WorkerLost():
                loss = f"The sandbox process was lost: {error}."
            case monty.MontyRuntimeError():
                text = render_error(
                    error
                )  # first: with the exception beside it, a long message takes more memory
                cause = error.exception()
                if self._is_ending:
                    text = text.removeprefix(text[: text.rfind("\n", 0, text.rfind(str(cause))) + 1])
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
