"""Whole scripts that use files behave in each sandbox as in CPython: several handles, `with`, `pathlib`, `os`, `json` and `csv`.

`data/file_scripts.txt` has one script a paragraph. `P` is a path in a folder of its own, `D` the folder, `R` the result.
"""

import asyncio
import textwrap
from pathlib import Path

import pytest
from tests.guests.engines import KEY
from tests.guests.test_file_programs import LIMITS, run_in_cpython
from tests.guests.world_calls import WorldCalls

from holdfast.guests import RunRequest
from holdfast.guests.python.engine import PythonEngine
from holdfast.guests.wasi import wasi_engine
from holdfast.world import MemoryWorld

SCRIPTS = (Path(__file__).parent / "data" / "file_scripts.txt").read_text().strip().split("\n\n")
NOT_IN_MONTY = ("bytearray", "import io", "import zipfile", "import shutil", "import gzip", "import glob")
Seen = list[tuple[str, dict[str, bytes]]]


def program(scripts: list[str]) -> str:
    """All scripts as one program, whose outcomes are a value or an exception each."""
    parts = ["outcomes = []"]
    for number, script in enumerate(scripts):
        body = textwrap.indent(
            f"R = None\nD = 's{number}'\nP = 's{number}/f'\n{script}\nreturn repr(R)", "    "
        )
        parts.append(f"def script_{number}():\n{body}")
        parts.append(f"try:\n    outcomes.append(script_{number}())")
        parts.append("except Exception as error:\n    outcomes.append(type(error).__name__)")
    return "\n".join(parts)


def inputs(scripts: list[str]) -> dict[str, bytes]:
    """A file in each folder that no script touches, so that the folder exists."""
    return {f"s{number}/other": b"" for number in range(len(scripts))}


def differences(scripts: list[str], expected: Seen, found: Seen) -> list[str]:
    pairs = zip(scripts, expected, found, strict=True)
    return [f"{script}\n  cpython: {a}\n  sandbox: {b}" for script, a, b in pairs if a != b]


def seen(outcomes: list[str], files: dict[str, bytes]) -> Seen:
    """The outcome and the files of each script."""
    return [
        (outcome, {path: content for path, content in files.items() if path.startswith(f"s{number}/")})
        for number, outcome in enumerate(outcomes)
    ]


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_scripts_of_the_python_sandbox_behave_as_in_cpython(
    shared_python: PythonEngine, tmp_path: Path
) -> None:
    scripts = [each for each in SCRIPTS if not any(word in each for word in NOT_IN_MONTY)]
    expected = seen(*await asyncio.to_thread(run_in_cpython, tmp_path, program(scripts), inputs(scripts)))
    world = MemoryWorld(inputs(scripts))
    guest = shared_python.guest()
    run = await guest.run(RunRequest(code=f"{program(scripts)}\noutcomes", limits=LIMITS), WorldCalls(world))
    await guest.close()
    assert run.error == ""
    assert isinstance(run.value, list)
    files = {path: world.read(path) for path in world.list("**/*")}
    assert differences(scripts, expected, seen([str(each) for each in run.value], files)) == []


@pytest.mark.timeout(900)  # the first may have to build the component
async def test_scripts_of_the_wasi_sandbox_behave_as_in_cpython(
    cache: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "reference").mkdir()
    expected = seen(
        *await asyncio.to_thread(run_in_cpython, tmp_path / "reference", program(SCRIPTS), inputs(SCRIPTS))
    )
    for path, content in inputs(SCRIPTS).items():
        (workspace / path).parent.mkdir(exist_ok=True)
        (workspace / path).write_bytes(content)
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace)
    request = RunRequest(code=f"{program(SCRIPTS)}\noutcomes", limits=LIMITS, now_ms=1_700_000_000_000)
    run = await engine.guest().run(request, WorldCalls(MemoryWorld({})))
    await engine.close()
    assert run.error == ""
    assert isinstance(run.value, list)
    assert differences(SCRIPTS, expected, seen([str(each) for each in run.value], files_in(workspace))) == []
