"""Git on the host: run so that no hook, helper, filter or configuration of a repository can start a program.

The objects it reads may come from a sandbox, so its time, memory, processor time and output are bounded.
"""

import asyncio
import contextlib
import os
import resource
import shutil
import signal
from collections.abc import Mapping, Sequence

from holdfast.core import Value, escape_to_one_line
from holdfast.core.errors import CommandError

_ISOLATION = (
    "core.hooksPath=/dev/null", "core.fsmonitor=false", "core.sshCommand=false", "core.askPass=false", "core.editor=false",
    "core.pager=cat", "core.attributesFile=/dev/null", "core.alternateRefsCommand=false", "credential.helper=",
    "protocol.allow=never", "gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "log.showSignature=false",
    # Bounded memory, also for a large repository behind it.
    "core.packedGitLimit=256m", "core.packedGitWindowSize=32m", "core.bigFileThreshold=16m", "pack.threads=1",
)  # fmt: skip
_ENVIRONMENT = {
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_DATA_BYTES = 1 << 30
_FILE_BYTES = 2 << 30
_CPU_SECONDS = 120
_MAX_ERROR_BYTES = 8_192
_CHUNK = 1 << 16


class GitOutput(Value):
    """How one git command ended. `output` is cut at the limit that the caller gave."""

    code: int
    output: bytes
    errors: str


class HostGit:
    """The git program of this machine."""

    @staticmethod
    def is_installed() -> bool:
        """Whether this machine has git. Without it the tools that need it do not exist."""
        return os.path.isabs(shutil.which("git") or "")

    def __init__(self, program: str | None = None, *, timeout_seconds: float = 120.0) -> None:
        """Raises CommandError if git is not installed."""
        found = program or shutil.which("git")
        if not found or not os.path.isabs(found):
            raise CommandError("git is not installed", hint="install git, and check with: git --version")
        self._program = found
        self._timeout_seconds = timeout_seconds

    async def run(
        self, *arguments: str, git_dir: str, stdin: bytes = b"", max_output: int = 1 << 20
    ) -> GitOutput:
        """Run a git command over a repository in isolation. Raises CommandError if it takes too long."""
        isolation = [part for setting in _ISOLATION for part in ("-c", setting)]
        return await self.run_with(
            [*isolation, "--no-pager", f"--git-dir={git_dir}", *arguments],
            environment={**_ENVIRONMENT, "PATH": os.defpath},
            stdin=stdin,
            max_output=max_output,
        )

    async def check(
        self, *arguments: str, git_dir: str, stdin: bytes = b"", max_output: int = 1 << 20
    ) -> bytes:
        """Run a git command and return its output. Raises CommandError if it fails or says too much."""
        ended = await self.run(*arguments, git_dir=git_dir, stdin=stdin, max_output=max_output)
        if ended.code != 0:
            raise CommandError(f"git {arguments[0]} failed: {_main_line(ended)}")
        if len(ended.output) > max_output:
            raise CommandError(f"git {arguments[0]} printed more than {max_output} bytes")
        return ended.output

    async def run_with(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], stdin: bytes = b"", max_output: int
    ) -> GitOutput:
        """Run git with exactly this environment. What it started ends with it."""
        process = await asyncio.create_subprocess_exec(
            self._program,
            *arguments,
            cwd="/",
            env=dict(environment),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        try:
            # Before it has read anything: its input decides how much it wants.
            for kind, limit in (
                (resource.RLIMIT_DATA, _DATA_BYTES),
                (resource.RLIMIT_FSIZE, _FILE_BYTES),
                (resource.RLIMIT_CPU, _CPU_SECONDS),
                (resource.RLIMIT_CORE, 0),
            ):
                with contextlib.suppress(ProcessLookupError):
                    resource.prlimit(process.pid, kind, (limit, limit))
            assert process.stdout is not None
            assert process.stderr is not None
            async with asyncio.timeout(self._timeout_seconds):
                output, errors, _ = await asyncio.gather(
                    _read(process.stdout, max_output),
                    _read(process.stderr, _MAX_ERROR_BYTES),
                    _feed(process, stdin),
                )
                code = await process.wait()
        except TimeoutError:
            raise CommandError(f"git did not end within {self._timeout_seconds:g} seconds") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await asyncio.shield(process.wait())
        return GitOutput(code=code, output=output, errors=errors.decode("utf-8", "replace"))


def _main_line(ended: GitOutput) -> str:
    """The line of an error message that says most: the first `error:`, else the last line. May quote untrusted names."""
    lines = [line for line in ended.errors.splitlines() if line.strip()] or [f"code {ended.code}"]
    main = next((line for line in lines if line.startswith("error:")), lines[-1])
    return escape_to_one_line(main[:300])


async def _read(stream: asyncio.StreamReader, limit: int) -> bytes:
    """Read everything and keep at most one byte more than the limit."""
    kept = bytearray()
    while data := await stream.read(_CHUNK):
        kept += data[: limit + 1 - len(kept)]
    return bytes(kept)


async def _feed(process: asyncio.subprocess.Process, data: bytes) -> None:
    assert process.stdin is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
    process.stdin.close()
