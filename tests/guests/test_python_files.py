"""File operations of Python code work as on a disk, and each of them is a call."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.guests.world_calls import WorldCalls

from holdfast.core import Answer, EscalationId, JsonObject, Parked, Refused, Returned
from holdfast.guests import Guest, Run, RunRequest
from holdfast.guests.python.engine import PythonEngine
from holdfast.world import MemoryWorld


@pytest_asyncio.fixture(loop_scope="module")
async def guest(shared_python: PythonEngine) -> AsyncIterator[Guest]:
    made = shared_python.guest()
    yield made
    await made.close()


@pytest.fixture
def world() -> MemoryWorld:
    return MemoryWorld({"a.txt": b"one\ntwo\n", "sub/b.txt": b"b", "raw.bin": b"\x00\xff"})


async def run(guest: Guest, world: MemoryWorld, code: str) -> Run:
    return await guest.run(RunRequest(code=code), WorldCalls(world))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("open('a.txt').read()", "one\ntwo\n"),
        ("open('/workspace/a.txt').read()", "one\ntwo\n"),
        ("[line.strip() for line in open('a.txt')]", ["one", "two"]),
        ("open('raw.bin', 'rb').read() == b'\\x00\\xff'", True),
        ("from pathlib import Path\nPath('sub/b.txt').read_text()", "b"),
        (
            "from pathlib import Path\nsorted(str(p) for p in Path('.').iterdir())",
            ["a.txt", "raw.bin", "sub"],
        ),
        (
            "from pathlib import Path\nsorted(str(p) for p in Path('.').rglob('*.txt'))",
            ["a.txt", "sub/b.txt"],
        ),
        ("from pathlib import Path\n[Path(p).exists() for p in ('a.txt', 'sub', 'no')]", [True, True, False]),
        (
            "from pathlib import Path\n[Path(p).is_file() for p in ('a.txt', 'sub', 'no')]",
            [True, False, False],
        ),
        (
            "from pathlib import Path\n[Path(p).is_dir() for p in ('a.txt', 'sub', 'no')]",
            [False, True, False],
        ),
        ("from pathlib import Path\nPath('a.txt').stat().st_size", 8),
        ("import os\nsorted(os.listdir('sub'))", ["b.txt"]),
        ("import os\n[(r, d, f) for r, d, f in os.walk('sub')]", [["sub", [], ["b.txt"]]]),
        ("import os\nos.path.getsize('a.txt')", 8),
        ("import os\nos.getcwd()", "/workspace"),
    ],
)
async def test_code_reads_the_world_as_it_reads_a_disk(
    guest: Guest, world: MemoryWorld, code: str, value: object
) -> None:
    ended = await run(guest, world, code)
    assert ended.error == ""
    assert ended.value == value


async def test_code_writes_the_world_as_it_writes_a_disk(guest: Guest, world: MemoryWorld) -> None:
    code = """
from pathlib import Path
import os
with open('new/deep.txt', 'w') as file:
    file.write('one ')
    file.write('two')
with open('a.txt', 'a') as file:
    file.write('three\\n')
Path('bytes.bin').write_bytes(b'\\x00\\x01')
os.makedirs('folder/inner')
os.remove('raw.bin')
Path('sub/b.txt').rename('moved.txt')
"""
    ended = await run(guest, world, code)
    assert ended.error == ""
    assert world.read("new/deep.txt") == b"one two"
    assert world.read("a.txt") == b"one\ntwo\nthree\n"
    assert world.read("bytes.bin") == b"\x00\x01"
    assert world.read("moved.txt") == b"b"
    assert world.stat("folder/inner").kind == "folder"
    assert not world.exists("raw.bin")
    assert not world.exists("sub/b.txt")


async def test_opening_and_writing_a_file_is_one_call_with_the_content(guest: Guest) -> None:
    calls = WorldCalls(MemoryWorld({"a.txt": b"old"}))
    await guest.run(RunRequest(code="with open('a.txt', 'w') as file:\n    file.write('new')"), calls)
    assert calls.made == [("world.write", "/workspace/a.txt")]


async def test_a_file_that_was_only_opened_to_write_is_empty(guest: Guest, world: MemoryWorld) -> None:
    await run(guest, world, "open('a.txt', 'w').close()\nopen('fresh.txt', 'w')")
    assert world.read("a.txt") == world.read("fresh.txt") == b""


async def test_a_file_opened_to_write_reads_as_empty(guest: Guest, world: MemoryWorld) -> None:
    assert (await run(guest, world, "file = open('a.txt', 'w')\nopen('a.txt').read()")).value == ""


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("open('no.txt')", "FileNotFoundError"),
        ("open('sub')", "IsADirectoryError"),
        ("import os\nos.mkdir('sub')", "FileExistsError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("open('../../etc/passwd').read()", "PermissionError"),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("from pathlib import Path\nPath('/tmp/x').write_text('x')", "PermissionError"),
    ],
)
async def test_a_file_error_is_the_one_that_python_raises(
    guest: Guest, world: MemoryWorld, code: str, error: str
) -> None:
    ended = await run(guest, world, code)
    assert ended.status == "error"
    assert error in ended.error.splitlines()[-1]


async def test_a_stop_of_several_calls_that_waits_makes_no_call_twice(guest: Guest) -> None:
    calls: list[tuple[str, str]] = []
    waits_for = "world.make_folder"

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        calls.append((operation, str(arguments["path"])))
        if operation == waits_for:
            return Parked(escalation=EscalationId("e-1"))
        return Returned(value=operation == "world.write")

    request = RunRequest(code="import os\nfile = open('d/w.txt', 'w')\nos.mkdir('d')\n'done'")
    parked = await guest.run(request, on_call)
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(), request, on_call)
    assert (ended.status, ended.value) == ("ok", "done")
    assert calls == [
        ("world.write", "/workspace/d/w.txt"),
        ("world.exists", "/workspace/d"),
        ("world.make_folder", "/workspace/d"),
    ]


async def test_a_write_at_the_end_of_a_run_may_wait(guest: Guest) -> None:
    async def waits(_operation: str, _arguments: JsonObject) -> Answer:
        return Parked(escalation=EscalationId("e-1"))

    async def never(operation: str, _arguments: JsonObject) -> Answer:
        raise AssertionError(f"{operation} was answered already")

    request = RunRequest(code="x = 5\nopen('w.txt', 'w')\n'done'")
    parked = await guest.run(request, waits)
    assert parked.status == "parked"
    assert parked.snapshot is not None
    ended = await guest.resume(parked.snapshot, Returned(value=0), request, never)
    assert (ended.status, ended.value) == ("ok", "done")
    assert (await guest.run(RunRequest(code="x"), never)).value == 5


async def test_a_refused_write_at_the_end_is_an_error_of_the_run(guest: Guest) -> None:
    async def no(_operation: str, _arguments: JsonObject) -> Answer:
        return Refused(reason="read only", rule="r")

    ended = await guest.run(RunRequest(code="open('w.txt', 'w')"), no)
    assert (ended.status, ended.error) == ("error", "PermissionError: read only")
