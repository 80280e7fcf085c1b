"""The command sandbox of one session: opened at its first command, closed when it is idle and with the session.

Commands take turns: showing the staged files, running a program and collecting what it changed belong together.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from holdfast.commands.contract import CommandSandbox, ProcessStatus, SandboxStatus, StagedFile
from holdfast.core.errors import CommandError
from holdfast.core.events import Event, ProcessEnded, SandboxClosed, SandboxOpened

IDLE_SECONDS = 600.0
"""A sandbox without processes is closed after this time; the next command opens it again."""

OpenSandbox = Callable[[], Awaitable[CommandSandbox]]
"""Opens the sandbox of a workspace. Raises CommandError."""
StagedFiles = Callable[[], Sequence[StagedFile]]
"""What is staged over the workspace now."""
HiddenFiles = Callable[[], Awaitable[Collection[str]]]
"""The files of the workspace that programs must not see."""
RecordEvent = Callable[[Event], None]
"""Records an event together with the next one that must be durable."""


class SessionSandbox:
    """Opens, shares and closes the sandbox of a session."""

    def __init__(
        self,
        *,
        open: OpenSandbox,
        status: SandboxStatus,
        staged: StagedFiles,
        hidden: HiddenFiles,
        record: RecordEvent,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self.status = status
        self._open = open
        self._staged = staged
        self._hidden = hidden
        self._record = record
        self._idle_seconds = idle_seconds
        self._sandbox: CommandSandbox | None = None
        self._lock = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended: set[str] = set()
        self._is_over = False

    @asynccontextmanager
    async def use(self) -> AsyncIterator[CommandSandbox]:
        """The sandbox, for one command at a time. It is opened if necessary, and again after it died."""
        async with self._lock:
            if self._is_over:
                raise CommandError("the session is closed")
            self._stop_idle_timer()
            if self._sandbox is None:
                self._sandbox = await self._open()
                self._ended.clear()
                status = self._sandbox.status
                self._record(SandboxOpened(tier=status.tier, walls=status.walls, kernel=status.kernel))
            try:
                yield self._sandbox
            except CommandError as error:
                # Whatever went wrong, a new sandbox has none of it. Its processes are gone, and reported so.
                await self._close(f"failed: {error}")
                raise
            finally:
                self.record_ended_processes()
                self._start_idle_timer()

    async def show_workspace(self, sandbox: CommandSandbox) -> None:
        """Make programs see the workspace with what is staged now."""
        await sandbox.show(self._staged(), hidden=await self._hidden())

    @property
    def is_open(self) -> bool:
        """Whether a sandbox is open now."""
        return self._sandbox is not None

    @property
    def current(self) -> CommandSandbox | None:
        """The open sandbox, without waiting for the command that uses it: for its background processes."""
        return self._sandbox

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The background processes, running or ended, of the open sandbox."""
        return self._sandbox.processes() if self._sandbox is not None else ()

    def record_ended_processes(self) -> None:
        """Record the background processes that ended since the last time."""
        for each in self.processes():
            if not each.is_running and each.id not in self._ended:
                self._ended.add(each.id)
                code = each.outcome.code if each.outcome is not None else None
                signal = each.outcome.signal if each.outcome is not None else ""
                self._record(ProcessEnded(process=each.id, code=code, signal=signal))

    async def rewound(self, *, drops_scratch: bool) -> None:
        """Stop every process, because the files under them have changed, and drop scratch: it belongs to no restore point."""
        async with self._lock:
            if self._sandbox is None:
                if not drops_scratch:
                    return
                self._sandbox = await self._open()  # scratch is on disk, and only the sandbox knows where
            try:
                if drops_scratch:
                    await self._sandbox.drop_scratch()
            finally:
                await self._close("the session was rewound")

    async def close(self, reason: str = "the session was closed") -> None:
        """Stop every process and close the sandbox. Idempotent."""
        self._is_over = True
        self._stop_idle_timer()
        # A command that still runs was cancelled by its caller, and ends at once.
        async with self._lock:
            await self._close(reason)

    async def _close(self, reason: str) -> None:
        sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            for each in sandbox.processes():
                if each.is_running:
                    self._record(ProcessEnded(process=each.id, signal="SIGKILL", reason=reason))
            await sandbox.close()
            self._record(SandboxClosed(reason=reason))

    def _start_idle_timer(self) -> None:
        if self._sandbox is not None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(self._idle_seconds, self._close_if_idle)

    def _stop_idle_timer(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _close_if_idle(self) -> None:
        if any(each.is_running for each in self.processes()):
            self._start_idle_timer()
        elif not self._lock.locked():
            self._closing = asyncio.ensure_future(self._close_idle())

    async def _close_idle(self) -> None:
        async with self._lock:
            if not any(each.is_running for each in self.processes()):
                await self._close("idle")
