"""The background processes of a session: their output, and waiting for it."""

import asyncio
import socket
from collections.abc import Callable

from holdfast.commands.command_output import CommandOutput
from holdfast.commands.contract import CommandRequest, CommandSandbox, ProcessStatus
from holdfast.commands.session_sandbox import SessionSandbox
from holdfast.core.errors import InvalidInput

MAX_KEPT_BYTES = 4 << 20
"""Output that is kept of each process; a server that logs for days must not fill the memory."""
_POLL_SECONDS = 0.05
"""How often the end of a process and its ports are looked at; they come without notice."""


class BackgroundProcesses:
    """Starts processes and keeps their output."""

    def __init__(self, sandbox: SessionSandbox, *, shown_bytes: int) -> None:
        self._sandbox = sandbox
        self._shown_bytes = shown_bytes
        self._outputs: dict[tuple[int, str], CommandOutput] = {}
        self._more = asyncio.Event()

    async def start(
        self,
        sandbox: CommandSandbox,
        request: CommandRequest,
        *,
        name: str,
        channel: socket.socket | None = None,
    ) -> str:
        """Start a process and return its id."""
        output = CommandOutput(shown_bytes=self._shown_bytes, max_kept_bytes=MAX_KEPT_BYTES)

        def on_output(data: bytes) -> None:
            output.add(data)
            self._more.set()

        process = await sandbox.start(request, name=name, on_output=on_output, channel=channel)
        self._outputs[id(sandbox), process] = output
        return process

    def sandbox_of(self, process: str) -> CommandSandbox:
        """The open sandbox, if it has this process. Raises InvalidInput."""
        self.status(process)
        sandbox = self._sandbox.current
        assert sandbox is not None
        return sandbox

    def status(self, process: str) -> ProcessStatus:
        """The state of a process. Raises InvalidInput if there is none with this id."""
        known = self._sandbox.processes()
        for each in known:
            if each.id == process:
                return each
        listed = ", ".join(f"{each.id} ({each.name})" for each in known) or "none"
        raise InvalidInput(
            f"there is no background process {process!r}; processes: {listed}",
            hint="start it with shell.start",
        )

    def output(self, process: str) -> CommandOutput:
        """The output of a process. Raises InvalidInput."""
        found = self._outputs.get((id(self._sandbox.current), process))
        if found is None:
            self.status(process)
            return CommandOutput(shown_bytes=self._shown_bytes)
        return found

    def forget(self, process: str) -> None:
        """Drop the output of a process."""
        self._outputs.pop((id(self._sandbox.current), process), None)

    async def wait_ready(self, process: str, *, port: int | None, text: str | None, seconds: float) -> bool:
        """Wait until a process listens on a port or prints a text. False if it ended, or the time is up."""
        wanted = (text or "").encode()

        def is_ready() -> bool:
            if port is not None and port not in self.status(process).ports:
                return False
            return wanted in self.output(process).kept

        await self._wait(process, is_ready, seconds)
        return is_ready()

    async def wait_output(self, process: str, *, after: int, seconds: float) -> None:
        """Wait until a process has printed more than `after` bytes, has ended, or the time is up."""
        await self._wait(process, lambda: self.output(process).size > after, seconds)

    async def _wait(self, process: str, is_done: Callable[[], bool], seconds: float) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while not is_done() and self.status(process).is_running:
            left = until - asyncio.get_running_loop().time()
            if left <= 0:
                return
            self._more.clear()
            try:
                async with asyncio.timeout(min(left, _POLL_SECONDS)):
                    await self._more.wait()
            except TimeoutError:
                pass
