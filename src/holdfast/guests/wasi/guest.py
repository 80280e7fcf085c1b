"""A guest whose code lives in a worker process: started when needed, thrown away when it cannot be trusted to go on.

Above: a session, which sees `Guest`. Below: a conversation with the worker. A worker that hit a limit is dead; the next
run starts another one with the variables that the last good run left: they are saved in the worker, behind each run.
"""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import holdfast.guests.wasi.component as component
import holdfast.guests.wasi.frames as frames
import holdfast.guests.wasi.messages as messages
import holdfast.guests.wasi.workspace_copy as workspace_copy
from holdfast.core import Answer, Change, Refused
from holdfast.core.errors import GuestError, SnapshotRefused
from holdfast.guests.contract import Capabilities, GuestLimits, OnCall, Run, RunRequest
from holdfast.guests.signed_snapshot import SnapshotSigner
from holdfast.guests.wasi.request import Completed, Ending, Stopped, Waiting, WorkerRequest
from holdfast.guests.wasi.worker_pool import Worker, WorkerPool
from holdfast.guests.wasi.workspace_copy import StagedView

_FORGOTTEN = "\nThe variables of this session are as they were before this run."


class WasiGuest:
    """Untrusted CPython code of one session."""

    def __init__(
        self,
        *,
        capabilities: Capabilities,
        seal: SnapshotSigner,
        folder: Path,
        view: StagedView | None,
        keeps_variables: bool,
        file_bytes: int,
        disk_bytes: int,
        workers: WorkerPool,
    ) -> None:
        self._capabilities = capabilities
        self._seal = seal
        self._folder = folder
        self._view = view
        self._keeps_variables = keeps_variables
        self._file_bytes = file_bytes
        self._disk_bytes = disk_bytes
        self._workers = workers
        self._worker: Worker | None = None
        self._state: bytes = b""
        """The variables that the last good run left, unsealed: what a new worker starts with."""
        self._saving: WorkerRequest | None = None
        """The worker was asked for its variables, and nobody has listened yet."""
        self._parked: tuple[bytes, WorkerRequest] | None = None
        self._memory_bytes = GuestLimits().memory_bytes
        self._marks: workspace_copy.Marks = {}
        self._turn = asyncio.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """What this engine can do."""
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        """Run code to its end, to a limit, or to a call that waits. A run that was parked before is given up."""
        if len(request.code.encode(errors="replace")) > messages.MAX_CODE_BYTES:
            return Run(status="refused", error=f"the code has more than {messages.MAX_CODE_BYTES} bytes")
        async with self._at_work():
            if self._parked is not None:
                await self._drop()
            await (
                self._save()
            )  # first: code of the guest runs while it saves, and could swap folders under our hands
            self._marks = await asyncio.to_thread(self._refreshed)
            started = await self._started(request.limits)
            if isinstance(started, Stopped):
                return await self._told(started, None)
            conversation = WorkerRequest(started, request.limits, disk_bytes=self._disk_bytes)
            self._memory_bytes = request.limits.memory_bytes
            await conversation.begin(messages.run(request, is_fresh=not self._keeps_variables))
            return await self._told(await conversation.listen(on_call), conversation)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        """Go on with a parked run. Only the process that parked it can; another one replays the turn."""
        if self._parked is None or not secrets.compare_digest(self._parked[0], snapshot):
            raise SnapshotRefused(
                "this run waited in a process that is gone",
                hint="Run the turn again; its calls are on record.",
            )
        async with self._at_work():
            conversation, self._parked = self._parked[1], None
            return await self._told(await conversation.proceed(answer, on_call), conversation)

    async def snapshot(self) -> bytes:
        """The variables, sealed; empty where nothing was ever run."""
        async with self._at_work():
            await self._save()
        return self._seal.close(_tag(), self._state) if self._state else b""

    async def restore(self, state: bytes) -> None:
        """Take up the variables of a snapshot."""
        content = self._seal.open(_tag(), state) if state else b""
        async with self._at_work():
            await self._drop()
            self._state = content
            if content and isinstance(stopped := await self._started(GuestLimits()), Stopped):
                self._state = b""
                raise SnapshotRefused(
                    f"the variables of this session do not load: {stopped.reason}",
                    hint="Start the turn again without them.",
                )

    async def retire(self) -> None:
        """Give up the worker, keeping the variables: another session needs the room."""
        if self._turn.locked():
            return  # it woke up in the meantime
        async with self._at_work():
            await self._save()
            await self._drop()

    async def close(self) -> None:
        """End the worker, also in the middle of a run. Idempotent."""
        self._workers.wake(self)
        await self._drop()

    @contextlib.asynccontextmanager
    async def _at_work(self) -> AsyncIterator[None]:
        """One thing at a time; a worker whose state nobody knows is ended."""
        async with self._turn:
            self._workers.wake(self)
            try:
                yield
            except BaseException:
                await self._drop()
                raise
            if self._worker is not None and self._parked is None:
                self._workers.rest(self)

    async def _ask_to_save(self, worker: Worker) -> None:
        """Let the worker save behind the run; the next one is to find what this one left, whatever it does itself."""
        self._saving = WorkerRequest(worker, messages.STATE_LIMITS)
        await self._saving.begin(messages.save(memory_bytes=self._memory_bytes))

    async def _save(self) -> None:
        """Listen to what the worker saved. Pickled inside the sandbox, never looked into outside of it."""
        saving, self._saving = self._saving, None
        if saving is None:
            return
        ending = await saving.listen(_no_calls)
        try:
            assert isinstance(ending, Completed | Stopped)
            if isinstance(ending, Stopped):
                raise messages.Malformed(ending.reason)
            messages.variables(content := ending.response.encode())
            self._state = content
        except messages.Malformed:
            await self._drop()  # a guest that cannot say what it holds goes on with what it held before

    async def _started(self, limits: GuestLimits) -> Worker | Stopped:
        """The worker, or why there can be none. A new one is handed the variables."""
        await self._save()
        if self._worker is not None and not self._worker.is_gone:
            return self._worker
        await self._drop()
        worker = await self._workers.start(
            frames.Setup(
                workspace=str(self._folder), memory_bytes=limits.memory_bytes, file_bytes=self._file_bytes
            )
        )
        self._worker = worker
        try:
            ready = await worker.read()
        except frames.BrokenFrame as broken:
            raise GuestError(
                f"the sandbox process does not start: {broken}", hint="Run `holdfast doctor`."
            ) from None
        if isinstance(ready, frames.Trapped):
            return WorkerRequest(worker, limits).stopped_by(ready)
        assert isinstance(ready, frames.Ready)
        worker.notes = ready.notes
        if self._state:
            loading = WorkerRequest(worker, messages.STATE_LIMITS)
            kept = messages.variables(self._state)
            await loading.begin(messages.load(kept, memory_bytes=limits.memory_bytes))
            ending = await loading.listen(_no_calls)
            if isinstance(ending, Stopped):
                return ending
        return worker

    async def _told(self, ending: Ending, conversation: WorkerRequest | None) -> Run:
        """How a conversation ended, as the contract says it."""
        verdict = None
        if isinstance(ending, Completed):
            try:
                verdict = messages.verdict(ending.response)
            except messages.Malformed as malformed:
                ending = Stopped(is_limit=False, reason=str(malformed))
        printed = conversation.printed if conversation else ""
        steps = conversation.steps if conversation else 0
        if isinstance(ending, Stopped):
            await self._drop()
        changed = await self._changes()
        match ending:
            case Waiting():
                assert conversation is not None
                token = secrets.token_bytes(16)
                self._parked = token, conversation
                return Run(status="parked", printed=printed, snapshot=token, changes=changed)
            case Stopped():
                status: Literal["limit", "lost"] = "limit" if ending.is_limit else "lost"
                return Run(
                    status=status,
                    printed=printed,
                    error=ending.reason + _FORGOTTEN,
                    changes=changed,
                    steps=steps,
                )
            case Completed():
                assert conversation is not None
                assert verdict is not None
                if self._keeps_variables:
                    await self._ask_to_save(conversation.worker)
                return Run(
                    status="limit" if conversation.is_over_calls else verdict.status,
                    value=verdict.value,
                    printed=printed,
                    error=verdict.error[: conversation.limits.output_bytes],
                    changes=changed,
                    steps=steps,
                )

    def _refreshed(self) -> workspace_copy.Marks:
        return workspace_copy.look(self._folder) if self._view is None else self._view.refresh()

    async def _changes(self) -> tuple[Change, ...]:
        """What changed since the last look; a parked run reports its part, and the rest when it goes on."""
        before = self._marks
        self._marks = await asyncio.to_thread(workspace_copy.look, self._folder)
        if before == self._marks:
            return ()
        known = None if self._view is None else self._view.content_before
        return await asyncio.to_thread(
            workspace_copy.between, self._folder, before, self._marks, content_before=known
        )

    async def _drop(self) -> None:
        """End the worker and forget what it waited for."""
        worker, self._worker, self._parked, self._saving = self._worker, None, None, None
        if worker is not None:
            await worker.end()


def _tag() -> str:
    """Pickles with code in them belong to one CPython, and that comes with componentize-py."""
    return f"wasi {component.version_of('componentize-py')}"


async def _no_calls(operation: str, arguments: object) -> Answer:
    return Refused(reason=f"{operation} cannot be called while variables are saved or loaded", rule="wasi")
