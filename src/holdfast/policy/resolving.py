"""Targets of a call that is going to be made: paths looked at, and git asked where its remotes lead.

What a repository's settings include is chosen by whoever made it, a pipe or a device among them. So git is asked beside the
event loop, a few questions at a time, each in a second or two and in so many bytes; what it does not say in these, nobody knows.
"""

import asyncio
import os
from collections.abc import Sequence

from holdfast.core import JsonObject, Paths, Target, Tool
from holdfast.policy.git_remotes import ReadRemotes
from holdfast.policy.git_settings import GitSettings
from holdfast.policy.targets import targets_of

AT_ONCE = 8
"""So that one repository in which git hangs holds no other up, and a burst of calls starts no crowd of processes."""
MAX_BYTES = 262_144
"""Of all settings together; a repository with a hundred remotes has a tenth of it."""


class Resolver:
    """Says what arguments refer to. Asks the git program only where one is the remote of a repository."""

    def __init__(self, *, git: str = "git", timeout_seconds: float = 2.0) -> None:
        self._git = git
        self._timeout_seconds = timeout_seconds
        self._asking = asyncio.Semaphore(AT_ONCE)

    async def targets(self, tool: Tool, arguments: JsonObject, paths: Paths) -> tuple[Target, ...]:
        """Everything the arguments refer to; a remote that cannot be resolved has a `problem`."""
        noted = _Noted()
        targets = targets_of(tool, arguments, paths, remotes=noted)
        if not noted.folders:
            return targets
        async with self._asking:
            settings = {folder: await self._settings(folder) for folder in noted.folders}
        return targets_of(tool, arguments, paths, remotes=ReadRemotes(settings))

    async def _settings(self, folder: str) -> GitSettings | None:
        try:
            process = await asyncio.create_subprocess_exec(
                self._git, "-C", _existing(folder), "config", "--includes", "--list", "-z",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        except OSError:
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                listing = await _all_of(process)
        except TimeoutError:
            return None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return None if listing is None else GitSettings.parse(listing.decode("utf-8", "surrogateescape"))


def _existing(folder: str) -> str:
    """Where git works before it has made a folder: in the nearest one above it."""
    return folder if os.path.isdir(folder) or folder in ("", "/") else _existing(os.path.dirname(folder))


async def _all_of(process: asyncio.subprocess.Process) -> bytes | None:
    """Everything a program says; None where that is too much, or it failed."""
    assert process.stdout is not None
    try:
        await process.stdout.readexactly(MAX_BYTES)
    except asyncio.IncompleteReadError as whole:
        return whole.partial if await process.wait() == 0 else None
    return None


class _Noted:
    """Notes whose remotes are asked for, and knows none."""

    def __init__(self) -> None:
        self.folders: dict[str, None] = {}

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        self.folders[folder] = None
        return ()
