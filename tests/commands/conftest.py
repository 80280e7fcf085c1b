"""Fixtures of the sandbox tests: a small workspace, and a sandbox over it."""

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from holdfast.commands import (
    CommandOutcome,
    CommandRequest,
    CommandSandbox,
    SandboxSettings,
    SandboxStatus,
    open_sandbox,
    probe_sandbox,
)

Open = Callable[..., Awaitable[CommandSandbox]]


@pytest.fixture(scope="session")
def probe_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("probe")


@pytest.fixture
async def status(probe_folder: Path) -> SandboxStatus:
    found = await probe_sandbox(probe_folder)
    if found.tier != "full":
        pytest.skip(f"no full sandbox stands here: {found.missing}")
    return found


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    (folder / "notes.txt").write_text("notes\n")
    return folder


@pytest.fixture
async def open_here(workspace: Path, tmp_path: Path, status: SandboxStatus) -> AsyncIterator[Open]:
    """Opens sandboxes over the workspace; all are closed at the end of the test."""
    opened: list[CommandSandbox] = []

    async def open_one(settings: SandboxSettings | None = None) -> CommandSandbox:
        sandbox = await open_sandbox(workspace, tmp_path / "state", status=status, settings=settings)
        opened.append(sandbox)
        return sandbox

    yield open_one
    for sandbox in opened:
        await sandbox.close()


@pytest.fixture
async def sandbox(open_here: Open) -> CommandSandbox:
    return await open_here()


class Ran:
    """What a command printed, and how it ended."""

    def __init__(self, outcome: CommandOutcome, output: str) -> None:
        self.outcome = outcome
        self.output = output


Shell = Callable[..., Coroutine[Any, Any, Ran]]


async def run_in(sandbox: CommandSandbox, script: str, **fields: Any) -> Ran:
    """Run a shell script in a sandbox."""
    output: list[bytes] = []
    request = CommandRequest(argv=("bash", "-c", script), environment={}, **fields)
    outcome = await sandbox.run(request, on_output=output.append)
    return Ran(outcome, b"".join(output).decode(errors="replace"))


@pytest.fixture
def shell(sandbox: CommandSandbox) -> Shell:
    """Runs scripts in the sandbox of the test."""

    async def run(script: str, **fields: Any) -> Ran:
        return await run_in(sandbox, script, **fields)

    return run


def run_outside(*argv: str, cwd: Path) -> None:
    """Run a program on the host, to its end."""
    subprocess.run(argv, cwd=cwd, check=True, stdin=subprocess.DEVNULL)
