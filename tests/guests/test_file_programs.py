"""Files behave in each sandbox as in CPython: the same small programs, the same values, exceptions and files."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.guests.engines import KEY
from tests.guests.file_programs import INPUTS, FileProgram, batch, programs
from tests.guests.world_calls import WorldCalls

from holdfast.guests import GuestLimits, RunRequest
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.wasi import wasi_engine
from holdfast.world import MemoryWorld

PROGRAMS = list(enumerate(programs()))
BATCH = 100
LIMITS = GuestLimits(seconds=60, wall_seconds=120, calls=100_000, output_bytes=8 << 20)
MAX_WRITES = 3
"""Of one program: it flushes at most twice before it closes its file."""
Outcomes = list[list[str]]


def inputs(numbered: list[tuple[int, FileProgram]]) -> dict[str, bytes]:
    """The files that the programs find. Each folder has one file that no program touches, so that it exists."""
    files = {f"p{number}/other": b"" for number, _ in numbered}
    return files | {
        f"p{number}/file": INPUTS[program.content] for number, program in numbered if program.content
    }


def in_cpython(folder: Path, numbered: list[tuple[int, FileProgram]]) -> tuple[Outcomes, dict[str, bytes]]:
    """The outcomes and files of the programs in this Python."""
    return run_in_cpython(folder, batch(numbered), inputs(numbered))


def run_in_cpython(folder: Path, code: str, files: dict[str, bytes]) -> tuple[Any, dict[str, bytes]]:
    """The variable `outcomes` that code leaves in this Python, and the files of its folder."""
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    code = f"{code}\nimport json\nprint(json.dumps(outcomes))"
    command = [sys.executable, "-X", "utf8", "-W", "ignore", "-c", "import sys; exec(sys.stdin.read())"]
    done = subprocess.run(
        command, input=code, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    left = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return json.loads(done.stdout), left


def differences(
    numbered: list[tuple[int, FileProgram]],
    expected: tuple[Outcomes, dict[str, bytes]],
    found: tuple[Any, dict[str, bytes]],
) -> list[str]:
    """What differs, program by program."""
    lines = []
    for (number, program), wanted, got in zip(numbered, expected[0], found[0], strict=True):
        path = f"p{number}/file"
        if wanted != got:
            lines.append(f"{program.name}\n  cpython: {wanted}\n  sandbox: {got}")
        elif expected[1].get(path) != found[1].get(path):
            lines.append(
                f"{program.name}\n  cpython: {expected[1].get(path)!r}\n  sandbox: {found[1].get(path)!r}"
            )
    return lines


def test_there_are_enough_programs() -> None:
    assert len({program.name for _, program in PROGRAMS}) >= 300


@pytest.mark.parametrize("first", range(0, len(PROGRAMS), BATCH))
async def test_f03_files_of_the_python_sandbox_behave_as_in_cpython(
    shared_python: PythonEngine, tmp_path: Path, first: int
) -> None:
    numbered = PROGRAMS[first : first + BATCH]
    expected = await asyncio.to_thread(in_cpython, tmp_path, numbered)
    world = MemoryWorld(inputs(numbered))
    calls = WorldCalls(world)
    guest = shared_python.guest()
    run = await guest.run(RunRequest(code=f"{batch(numbered)}\noutcomes", limits=LIMITS), calls)
    await guest.close()
    assert run.error == ""
    files = {path: world.read(path) for path in world.list("**/*")}
    assert differences(numbered, expected, (run.value, files)) == []
    assert _unneeded(calls.made) == []


@pytest.mark.timeout(900)  # the first may have to build the component
@pytest.mark.parametrize("first", range(0, len(PROGRAMS), 4 * BATCH))
async def test_f03_files_of_the_wasi_sandbox_behave_as_in_cpython(
    cache: Path, workspace: Path, tmp_path: Path, first: int
) -> None:
    numbered = PROGRAMS[first : first + 4 * BATCH]
    (tmp_path / "reference").mkdir()
    expected = await asyncio.to_thread(in_cpython, tmp_path / "reference", numbered)
    for path, content in inputs(numbered).items():
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_bytes(content)
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace)
    run = await engine.guest().run(
        RunRequest(code=f"{batch(numbered)}\noutcomes", limits=LIMITS), WorldCalls(MemoryWorld({}))
    )
    await engine.close()
    assert run.error == ""
    files = {
        str(path.relative_to(workspace)): path.read_bytes() for path in workspace.rglob("*") if path.is_file()
    }
    assert differences(numbered, expected, (run.value, files)) == []


def _unneeded(made: list[tuple[str, str]]) -> list[str]:
    """Files that took more than one call to read, and one to write and for each flush after it."""
    paths = Counter(path for operation, path in made if operation == "world.write")
    return [path for path, count in paths.items() if count > MAX_WRITES]
