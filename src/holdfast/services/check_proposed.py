"""A person's check before a commit: their command, run in the command sandbox over a copy of the workspace with every staged change."""

import asyncio
from collections import deque
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.commands import CommandRequest, CommandSandboxes, ShellSettings
from holdfast.core import Value, escape_invisible
from holdfast.world import World

CHECK_SECONDS = 600.0
MAX_OUTPUT_BYTES = 20_000


class CheckRun(Value, omit_defaults=False):
    """How the command of a check ended, and the end of what it printed."""

    code: int | None
    """None if it did not end by itself."""
    output: str
    seconds: float

    @property
    def is_passed(self) -> bool:
        """Whether the changes may be committed."""
        return self.code == 0


async def check_proposed(
    staged: World, command: str, *, sandboxes: CommandSandboxes, settings: ShellSettings
) -> CheckRun:
    """Run a command over the changes as they would be committed. It has no network. Raises CommandError without a sandbox."""
    printed: deque[bytes] = deque()
    size = 0

    def keep(data: bytes) -> None:
        nonlocal size
        printed.append(data)
        size += len(data)
        while size - len(printed[0]) >= MAX_OUTPUT_BYTES:
            size -= len(printed.popleft())

    with TemporaryDirectory(prefix="holdfast-check-") as folder:
        workspace, state = Path(folder, "workspace"), Path(folder, "state")
        workspace.mkdir()
        state.mkdir()
        await asyncio.to_thread(staged.copy_out, ".", workspace, overwrite=True)
        sandbox = await sandboxes.open(workspace, state=state, settings=settings)
        try:
            await sandbox.show(())
            request = CommandRequest(
                argv=("sh", "-c", command), environment={}, timeout_seconds=CHECK_SECONDS
            )
            outcome = await sandbox.run(request, on_output=keep)
        finally:
            await sandbox.close()
    text = b"".join(printed)[-MAX_OUTPUT_BYTES:].decode("utf-8", "replace")
    code = None if outcome.is_timed_out or outcome.signal else outcome.code
    return CheckRun(code=code, output=escape_invisible(text), seconds=outcome.seconds)
