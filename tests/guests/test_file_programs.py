"""Files behave in each sandbox as in CPython: the same small programs, the same values, exceptions and files."""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.guests.file_programs import INPUTS, FileProgram, batch, programs
from tests.guests.world_calls import WorldCalls

from holdfast.guests import GuestLimits, RunRequest
from holdfast.guests.python.engine import PythonEngine
from holdfast.world import MemoryWorld

PROGRAMS = list(enumerate(programs()))
BATCH = 100
LIMITS = GuestLimits(seconds=60, wall_seconds=120, calls=100_000, output_bytes=8 << 20)
Outcomes = list[list[str]]


def inputs(numbered: list[tuple[int, FileProgram]]) -> dict[str, bytes]:
    """The files that the programs find. Each folder has one file that no program touches, so that it exists."""
    files = {f"p{number}/other": b"" for number, _ in numbered}
    return files | {
        f"p{number}/file": INPUTS[program.content] for number, program in numbered if program.content
    }


def in_cpython(folder: Path, numbered: list[tuple[int, FileProgram]]) -> tuple[Outcomes, dict[str, bytes]]:
    """The outcomes and files of the programs in this Python."""
    for path, content in inputs(numbered).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    code = f"{batch(numbered)}\nimport json\nprint(json.dumps(outcomes))"
    command = [sys.executable, "-X", "utf8", "-W", "ignore", "-c", "import sys; exec(sys.stdin.read())"]
    done = subprocess.run(command, input=code, cwd=folder, capture_output=True, text=True, check=False, encoding="utf-8")
    assert done.returncode == 0, done.stderr
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return json.loads(done.stdout), files


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
            lines.append(f"{program.name}\n  cpython: {expected[1].get(path)!r}\n  sandbox: {found[1].get(path)!r}")
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
