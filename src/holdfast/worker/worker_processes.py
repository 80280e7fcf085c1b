"""Worker processes of this machine, each started again when it ends by itself. They stop with the process that started them."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping

from holdfast.process.own_command import module_command

RESTART_SECONDS = 1.0
STOP_SECONDS = 60.0
"""How long workers may take to stop, beyond the time for the calls that run."""


class WorkerProcesses:
    """Keeps a number of `holdfast worker` processes running."""

    def __init__(
        self,
        count: int,
        *,
        arguments: tuple[str, ...] = (),
        environment: Mapping[str, str],
        report: Callable[[str], None],
    ) -> None:
        self._count = count
        self._arguments = arguments
        self._environment = {**os.environ, **environment}
        self._report = report
        self._running: dict[int, asyncio.subprocess.Process] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    def start(self) -> None:
        """Start them."""
        self._tasks = [asyncio.create_task(self._keep(number)) for number in range(1, self._count + 1)]

    async def stop(self, *, drain_seconds: float) -> None:
        """Stop them, and wait until they have let go of their sessions. Idempotent."""
        self._is_stopping = True
        for process in self._running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        _, late = (
            await asyncio.wait(self._tasks, timeout=drain_seconds + STOP_SECONDS) if self._tasks else ((), ())
        )
        for process in self._running.values() if late else ():
            if process.returncode is None:
                process.kill()
        await asyncio.gather(*self._tasks)
        self._tasks = []

    async def _keep(self, number: int) -> None:
        while not self._is_stopping:
            process = await asyncio.create_subprocess_exec(
                *module_command(),
                "worker",
                "--until-stdin-closes",
                *self._arguments,
                stdin=asyncio.subprocess.PIPE,  # closes with this process, however that ends
                stdout=asyncio.subprocess.DEVNULL,
                stderr=None,
                env=self._environment,
                start_new_session=True,  # a Ctrl-C at the terminal is for this process, which stops them in order
            )
            self._running[number] = process
            code = await self._wait_for(process)
            if code is not None:
                self._report(f"worker {number} ended with {code}; starting it again")
                await asyncio.sleep(RESTART_SECONDS)

    async def _wait_for(self, process: asyncio.subprocess.Process) -> int | None:
        """The exit code of a worker that ended by itself; None if it was stopped."""
        if self._is_stopping:  # while it started
            process.send_signal(signal.SIGTERM)
        code = await process.wait()
        return None if self._is_stopping else code
