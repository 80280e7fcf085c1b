"""What files of guest code cost in calls, and what a run that dies leaves of them."""

import base64
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.guests.world_calls import WorldCalls

from holdfast.core import (
    Answer,
    EscalationId,
    Failed,
    JsonObject,
    Ok,
    Parked,
    Refused,
    Response,
    Returned,
    Tool,
)
from holdfast.guests import CALL_PLACE, Guest, GuestLimits, Run, RunRequest, python_engine
from holdfast.guests.python.engine import PythonEngine
from holdfast.policy import FixedPolicy
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld

COPY = """
with open('in.txt') as source, open('out.txt', 'w') as target:
    for line in source:
        target.write(line)
"""
STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.append": "stage"})


@pytest_asyncio.fixture(loop_scope="module")
async def guest(shared_python: PythonEngine) -> AsyncIterator[Guest]:
    made = shared_python.guest()
    yield made
    await made.close()


@pytest.fixture
def world() -> MemoryWorld:
    return MemoryWorld({"in.txt": b"same\n" * 25})


async def run(guest: Guest, calls: WorldCalls, code: str, limits: GuestLimits | None = None) -> Run:
    return await guest.run(RunRequest(code=code, limits=limits or GuestLimits()), calls)


@pytest.mark.parametrize(
    "content", [b"same\n" * 25, b"".join(b"line %d\n" % number for number in range(1500))]
)
async def test_f03_a_file_is_copied_line_by_line_in_one_read_and_one_write(content: bytes) -> None:
    world = MemoryWorld({"in.txt": content})
    async with memory_session(engine=python_engine(key=b"k" * 32), world=world, policy=STAGING) as session:
        await session.execute(COPY)
        assert [entry.operation for entry in session.audit()] == ["world.read", "world.write"]
        await session.commit()
    assert world.read("out.txt") == content


async def test_f03_three_writes_to_a_file_are_one_question() -> None:
    asking = FixedPolicy(default="escalate")
    code = "with open('a.txt', 'w') as f:\n    f.write('1')\n    f.write('2')\n    f.write('3')\n'done'"
    world = MemoryWorld({})
    asked = []

    async def approve(escalation: object) -> Response:
        asked.append(escalation)
        return Response(verdict="approve")

    async with memory_session(engine=python_engine(key=b"k" * 32), world=world, policy=asking) as session:
        session.approver = approve
        outcome = await session.execute(code)
    assert isinstance(outcome, Ok), outcome
    assert len(asked) == 1
    assert world.read("a.txt") == b"123"


DIES = {
    "exception in with": "with open('out.txt', 'w') as f:\n    f.write('half')\n    1 / 0",
    "exception, file open": "f = open('out.txt', 'w')\nf.write('ha')\nf.write('lf')\n1 / 0",
    "exception, one write": "f = open('out.txt', 'w')\nf.write('half')\n1 / 0",
    "exception, append": "f = open('in.txt', 'a')\nf.write('half')\n1 / 0",
    "exception, Path.open": "from pathlib import Path\nf = Path('out.txt').open('w')\nf.write('half')\n1 / 0",
    "time limit": "with open('out.txt', 'w') as f:\n    f.write('half')\n    while True: pass",
    "memory limit": "with open('out.txt', 'w') as f:\n    f.write('half')\n    x = 'x' * (1 << 30)\n    y = x * 9",
    "output limit": "with open('out.txt', 'w') as f:\n    f.write('half')\n    print('x' * 999999)",
}


@pytest.mark.parametrize("code", DIES.values(), ids=DIES)
async def test_f03_a_run_that_dies_writes_no_half_of_a_file(
    guest: Guest, world: MemoryWorld, code: str
) -> None:
    calls = WorldCalls(world)
    ended = await run(guest, calls, code, GuestLimits(seconds=1, memory_bytes=64 << 20))
    assert ended.status in ("error", "limit")
    assert calls.made == []
    if ended.status == "error":
        assert "Not written" in ended.error
    after = await run(guest, calls, "'fine'")
    assert (after.status, after.value, calls.made) == ("ok", "fine", [])


async def test_f03_a_caught_exception_leaves_the_file_as_python_does(
    guest: Guest, world: MemoryWorld
) -> None:
    code = (
        "from pathlib import Path\ntry:\n    with open('out.txt', 'w') as f:\n        f.write('half')\n        1 / 0\n"
        "except ZeroDivisionError:\n    pass\nPath('out.txt').read_text()"
    )
    assert (await run(guest, WorldCalls(world), code)).value == "half"


SEES = {
    "Path": "from pathlib import Path\nopen('out.txt', 'w').write('new')\nPath('out.txt').read_text()",
    "open": "import json\njson.dump('new', open('out.txt', 'w'))\njson.load(open('out.txt'))",
    "size": "import os\nopen('out.txt', 'w').write('new')\n'new' if os.path.getsize('out.txt') == 3 else 'old'",
    "append": "open('out.txt', 'a').write('ne')\nopen('out.txt', 'a').write('w')\nopen('out.txt').read()",
    "two writes": "from pathlib import Path\nf = open('out.txt', 'w')\nf.write('n')\nf.write('ew')\nPath('out.txt').read_text()",
    "in with": "from pathlib import Path\nwith open('out.txt', 'w') as f:\n    f.write('new')\n    seen = Path('out.txt').read_text()\nseen",
    "json": "import json, os\njson.dump([1], open('out.txt', 'w'))\n'new' if os.path.getsize('out.txt') == 3 else 'old'",
    "csv": "import csv\nfrom pathlib import Path\nrows = csv.writer(open('out.txt', 'w'))\nrows.writerow(['n'])\nrows.writerow(['ew'])\n"
    "Path('out.txt').read_text().replace('\\n', '').replace('\\r', '')",
    "function": "from pathlib import Path\ndef look():\n    return Path('out.txt').read_text()\nf = open('out.txt', 'w')\nf.write('n')\n"
    "a = look()\nf.write('ew')\nlook() if a == 'n' else a",
    "condition": "from pathlib import Path\nf = open('out.txt', 'w')\nf.write('x')\nf.write('x')\n"
    "if Path('out.txt').read_text() == 'xx':\n    said = 'new'\nsaid",
    "overwritten": "from pathlib import Path\nf = open('out.txt', 'w+')\nf.write('old')\na = Path('out.txt').read_text()\nf.seek(0)\n"
    "f.write('new')\nPath('out.txt').read_text() if a == 'old' else a",
    "changed": "from pathlib import Path\nPath('out.txt').write_text('xew')\nf = open('out.txt', 'r+')\nf.write('n')\nPath('out.txt').read_text()",
    "truncated": "from pathlib import Path\nf = open('out.txt', 'w')\nf.write('newer')\nf.truncate(3)\nPath('out.txt').read_text()",
    "utf-16": "from pathlib import Path\nf = open('out.txt', 'w', encoding='utf-16')\nf.write('n')\na = Path('out.txt').read_bytes()\nf.write('ew')\n"
    "Path('out.txt').read_bytes().decode('utf-16') if a.decode('utf-16') == 'n' else a",
    "appended": "from pathlib import Path\nPath('out.txt').write_text('n')\nf = open('out.txt', 'a')\nf.write('e')\na = Path('out.txt').read_text()\n"
    "f.write('w')\nPath('out.txt').read_text() if a == 'ne' else a",
    "Path.open": "from pathlib import Path\nwith Path('out.txt').open('w') as f:\n    f.write('n')\n    f.write('ew')\nopen('out.txt').read()",
}


@pytest.mark.parametrize("code", SEES.values(), ids=SEES)
async def test_f03_a_file_that_nobody_closed_is_seen_by_what_follows(
    guest: Guest, world: MemoryWorld, code: str
) -> None:
    ended = await run(guest, WorldCalls(world), code)
    assert (ended.error, ended.value) == ("", "new")


@pytest.mark.parametrize("code", SEES.values(), ids=SEES)
async def test_f03_a_file_that_was_looked_at_is_complete_after_the_run(guest: Guest, code: str) -> None:
    world = MemoryWorld({})
    assert (await run(guest, WorldCalls(world), code)).error == ""
    content = world.read("out.txt")
    assert content.decode("utf-16" if "utf-16" in code else "utf-8").replace("\r\n", "") in (
        "new",
        "xx",
        "[1]",
        '"new"',
    )


TOOLS = (
    Tool(
        name="web.fetch", parameters={"type": "object", "properties": {"url": {"type": "string"}}}, roles={}
    ),
    Tool(
        name="shell.run",
        parameters={"type": "object", "properties": {"command": {"type": "string"}}},
        roles={},
    ),
)
SHOWN = {
    "an unfinished file to a tool that names it": ("f.write('b')\nweb.fetch(url='file:out.txt')", b"ab"),
    "an unfinished file to a program": ("f.write('b')\nshell.run(command='make')", b"ab"),
    "nothing to other tools": ("f.write('b')\nweb.fetch(url='http://a/layout.txt')", None),
    "a single write to every tool": ("web.fetch(url='http://a')", b"a"),
}


@pytest.mark.parametrize(("code", "content"), SHOWN.values(), ids=SHOWN)
async def test_f03_an_open_file_shows(guest: Guest, code: str, content: bytes | None) -> None:
    world = MemoryWorld({})
    calls = WorldCalls(world)
    seen: list[bytes | None] = []

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        if operation.startswith("world."):
            return await calls(operation, arguments)
        seen.append(world.read("out.txt") if world.exists("out.txt") else None)
        return Returned(value="")

    request = RunRequest(
        code=f"f = open('out.txt', 'w')\nf.write('a')\n{code}\nf.write('c')\nf.close()", tools=TOOLS
    )
    assert (await guest.run(request, on_call)).error == ""
    assert seen == [content]
    assert world.read("out.txt") == (b"abc" if "f.write" in code else b"ac")


async def test_f03_results_of_tools_go_into_one_file_with_one_write(guest: Guest) -> None:
    calls = WorldCalls(MemoryWorld({}))

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        return await calls(operation, arguments) if operation.startswith("world.") else Returned(value="x")

    code = "with open('out.txt', 'w') as f:\n    for n in range(20):\n        f.write(web.fetch(url=f'http://{n}'))"
    assert (await guest.run(RunRequest(code=code, tools=TOOLS), on_call)).error == ""
    assert calls.made == [("world.write", "/workspace/out.txt")]


async def test_a_call_is_placed_where_its_author_wrote_it(guest: Guest) -> None:
    code = (
        "ü = open('out.txt', 'w')\nx = web.fetch(url='é'); y = [web.fetch(url=u) for u in ['1']]\n"
        "if web.fetch(url='2'): ü.write(x)\nfor z in ü if False else []: web.fetch(url='no')"
    )
    placed: list[str | None] = []

    async def on_call(_operation: str, _arguments: JsonObject) -> Answer:
        place = CALL_PLACE.get()
        placed.append(code.encode()[slice(*place)].decode() if place is not None else None)
        return Returned(value="x")

    assert (await guest.run(RunRequest(code=code, tools=TOOLS), on_call)).error == ""
    assert placed[:3] == ["web.fetch(url='é')", "web.fetch(url=u)", "web.fetch(url='2')"]


async def test_path_open_has_every_mode_encoding_and_newline(guest: Guest) -> None:
    world = MemoryWorld({"sub/in.txt": "café\r\n".encode("latin-1")})
    code = """
from pathlib import Path
folder = Path('sub')
text = (folder / 'in.txt').open(encoding='latin-1', newline='').read()
with folder.joinpath('out.txt').open('w', encoding='utf-16', newline='\\r\\n') as f:
    f.write('ü\\n')
with Path('sub/in.txt').open('r+b') as f:
    f.seek(0, 2)
    f.write(b'!')
[text, [each.open('rb').read(1) == b'c' for each in [folder / 'in.txt']]]
"""
    ended = await run(guest, WorldCalls(world), code)
    assert (ended.error, ended.value) == ("", ["café\r\n", [True]])
    assert world.read("sub/out.txt") == "ü\r\n".encode("utf-16")
    assert world.read("sub/in.txt") == "café\r\n!".encode("latin-1")


async def test_f03_a_file_stays_open_from_run_to_run(guest: Guest, world: MemoryWorld) -> None:
    calls = WorldCalls(world)
    await run(guest, calls, "f = open('out.txt', 'w')\nn = f.write('one\\n')\nn = f.write('two\\n')")
    assert world.read("out.txt") == b"one\ntwo\n"
    await run(guest, calls, "n = f.write('three\\n')")
    assert world.read("out.txt") == b"one\ntwo\nthree\n"
    assert [operation for operation, _ in calls.made] == ["world.write", "world.append"]


async def test_f03_a_snapshot_keeps_open_files(shared_python: PythonEngine, world: MemoryWorld) -> None:
    first, second = shared_python.guest(), shared_python.guest()
    calls = WorldCalls(world)
    await run(
        first, calls, "f = open('in.txt')\nn = f.readline()\ng = open('out.txt', 'w')\nn = g.write('a')"
    )
    await second.restore(await first.snapshot())
    ended = await run(second, calls, "n = g.write('b')\ng.close()\nlen(f.readlines())")
    assert (ended.error, ended.value) == ("", 24)
    assert world.read("out.txt") == b"ab"
    await first.close()
    await second.close()


async def test_f03_a_write_that_waits_resumes_in_another_guest(shared_python: PythonEngine) -> None:
    answers: list[Answer] = [Parked(escalation=EscalationId("e-1"))]
    made: list[JsonObject] = []

    async def on_call(_operation: str, arguments: JsonObject) -> Answer:
        made.append(arguments)
        return answers.pop(0)

    request = RunRequest(code="with open('a.txt', 'w') as f:\n    f.write('1')\n    f.write('2')\nf.closed")
    first, second = shared_python.guest(), shared_python.guest()
    parked = await first.run(request, on_call)
    assert parked.snapshot is not None
    ended = await second.resume(parked.snapshot, Returned(value=2), request, on_call)
    assert (ended.status, ended.value) == ("ok", True)
    assert [arguments["content"] for arguments in made] == ["12"]
    await first.close()
    await second.close()


async def test_f03_a_refused_write_is_a_permission_error_at_close(guest: Guest) -> None:
    async def no(_operation: str, _arguments: JsonObject) -> Answer:
        return Refused(reason="read only", rule="r")

    code = "f = open('w.txt', 'w')\nn = f.write('x')\ntry:\n    f.close()\nexcept PermissionError as error:\n    said = str(error)\nsaid"
    ended = await guest.run(RunRequest(code=code), no)
    assert (ended.status, ended.value) == ("ok", "read only")


async def test_f03_a_traceback_ends_in_the_code_and_not_in_the_file_object(
    guest: Guest, world: MemoryWorld
) -> None:
    for code in ("open('no.txt')", "open('in.txt').write('x')", "open('in.txt', 'w').write(5)"):
        ended = await run(guest, WorldCalls(world), code)
        assert "_holdfast" not in ended.error
        assert ended.error.count("File ") == 1, ended.error


LARGE = b"".join(b"%d: a line of a large file\r\n" % number for number in range(30_000))
READ_IN_PIECES = {
    "binary": (
        "f = open('big', 'rb')\nn = 0\nwhile piece := f.read(300_000):\n    n += len(piece)\nn",
        len(LARGE),
    ),
    "lines": (
        "f = open('big')\nn = 0\nwhile line := f.readline():\n    n += line.endswith('file\\n')\nn",
        30_000,
    ),
    "for": ("n = 0\nfor line in open('big'):\n    n += line.endswith('file\\n')\nn", 30_000),
    "for in with": (
        "n = 0\nwith open('big', 'rb') as f:\n    for line in f:\n        if line.endswith(b'file\\r\\n'):\n            n += 1\nn",
        30_000,
    ),
    "nested for": (
        "n = 0\nfor line in open('big'):\n    for word in line.split():\n        n += word == 'large'\nn",
        30_000,
    ),
    "try": (
        "n = 0\nfor line in open('big'):\n    try:\n        int(line)\n    except ValueError:\n        n += 1\nn",
        30_000,
    ),
    "two at once": (
        "n = 0\nfor a in open('big'):\n    n += 1\n    if n == 100:\n        for b in open('big'):\n            n += 1\nn",
        60_000,
    ),
    "list": ("len([line for line in open('big')])", 30_000),
    "sum": ("sum(1 for line in open('big') if line.startswith('29999'))", 1),
    "function": (
        "def count(f):\n    n = 0\n    for line in f:\n        n += 1\n    return n\nf = open('big')\n"
        "a = count(f)\nn = f.seek(0)\n[a, count(f)]",
        [30_000, 30_000],
    ),
    "newline": (
        "n = 0\nfor line in open('big', newline='\\r\\n'):\n    n += line.endswith('file\\r\\n')\nn",
        30_000,
    ),
    "break": (
        "for line in open('big'):\n    if line.startswith('24999:'):\n        break\nline[:6]",
        "24999:",
    ),
    "seek": (
        "f = open('big', 'rb')\nn = f.seek(-6, 2)\nf.read() if False else f.read(9).decode()",
        "file\r\n",
    ),
}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of which the large file of these tests has eight."""
    monkeypatch.setattr("holdfast.guests.python.file_calls._PIECE_BYTES", 125_000)


async def _large(operation: str, arguments: JsonObject) -> Answer:
    """A file that is too large for one read."""
    if operation == "world.stat":
        return Returned(value={"size": len(LARGE), "kind": "file"})
    if "offset" not in arguments:
        return Failed(error="OSError", reason="too large; read the file in pieces, with offset and length")
    start, length = int(str(arguments["offset"])), int(str(arguments["length"]))
    return Returned(value=base64.b64encode(LARGE[start : start + length]).decode())


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(("code", "value"), READ_IN_PIECES.values(), ids=READ_IN_PIECES)
async def test_f01_a_large_file_is_read_in_pieces(guest: Guest, code: str, value: object) -> None:
    ended = await guest.run(RunRequest(code=code), _large)
    assert (ended.error, ended.value) == ("", value)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize(
    ("code", "way_out"),
    [
        ("open('big').read()", "f.read(1_000_000)"),
        ("for n, line in enumerate(open('big')): pass", "f.readline()"),
    ],
)
async def test_f01_what_a_large_file_cannot_do_says_how_to_do_it(
    guest: Guest, code: str, way_out: str
) -> None:
    ended = await guest.run(RunRequest(code=code), _large)
    assert ended.status == "error"
    assert way_out in ended.error


@pytest.mark.usefixtures("small_pieces")
async def test_f01_a_large_file_that_stays_open_is_iterated_in_the_next_run(guest: Guest) -> None:
    first = "f = open('big')\nfor line in f:\n    if line.startswith('15000:'):\n        break"
    assert (await guest.run(RunRequest(code=first), _large)).error == ""
    ended = await guest.run(RunRequest(code="n = 0\nfor line in f:\n    n += 1\nn"), _large)
    assert (ended.error, ended.value) == ("", 14_999)


@pytest.mark.usefixtures("small_pieces")
async def test_f01_a_piece_that_cannot_be_read_is_an_error_where_its_lines_begin(guest: Guest) -> None:
    async def loses_its_end(operation: str, arguments: JsonObject) -> Answer:
        if int(str(arguments.get("offset", 0))) > 0:
            return Refused(reason="no more", rule="r")
        return await _large(operation, arguments)

    code = "n = 0\ntry:\n    for line in open('big'):\n        n += 1\nexcept PermissionError as error:\n    said = str(error)\n[n > 2_500, said]"
    assert (await guest.run(RunRequest(code=code), loses_its_end)).value == [True, "no more"]


@pytest.mark.usefixtures("small_pieces")
async def test_f01_a_traceback_of_a_loop_shows_the_code_as_it_was_written(guest: Guest) -> None:
    for code in ("for line in open('big'):\n    line / 2", "for line in open('big'): 1 / 0"):
        ended = await guest.run(RunRequest(code=code), _large)
        assert "_holdfast" not in ended.error
        assert code.splitlines()[-1].strip() in ended.error
    ended = await guest.run(RunRequest(code="for line in open('big'):\n    line / 2"), _large)
    assert "    line / 2\n    ~~~~~~~~\n" in ended.error, ended.error


@pytest.mark.parametrize(
    ("mode", "piece"), [("w", "'ä' * 1_000_001"), ("wb", "b'a' * 2_000_000"), ("x", "'a' * 1_000_001")]
)
async def test_a_large_file_that_stays_open_is_not_kept_in_memory(
    guest: Guest, mode: str, piece: str
) -> None:
    world = MemoryWorld({})
    calls = WorldCalls(world)
    end = "b'end'" if "b" in mode else "'end'"
    assert (await run(guest, calls, f"f = open('a', {mode!r})\nf.write({piece})")).status == "ok"
    before = world.read("a")
    kept = len(await guest.snapshot())
    assert kept < 400_000
    assert (await run(guest, calls, "f.tell()")).value == len(before)
    for step in ("f.seek(0)", "f.truncate(3)", "f.seek(10_000_000)"):
        refused = await run(guest, calls, step)
        assert refused.status == "error"
        assert "what an earlier run wrote cannot be changed here" in refused.error
    assert (await run(guest, calls, f"f.seek(0, 2)\nf.write({end})\nf.truncate()\nf.close()")).status == "ok"
    assert world.read("a") == before + b"end"


@pytest.mark.parametrize("mode", ["r", "rb"])
async def test_opening_a_large_file_without_lines_does_not_read_all_of_it(guest: Guest, mode: str) -> None:
    read = []

    async def zeros(operation: str, arguments: JsonObject) -> Answer:
        if "offset" not in arguments:
            return Failed(
                error="OSError", reason="too large; read the file in pieces, with offset and length"
            )
        read.append(length := int(str(arguments["length"])))
        return Returned(value=base64.b64encode(bytes(length)).decode())

    request = RunRequest(
        code=f"len(open('big', {mode!r}).read(1_000_000))", limits=GuestLimits(seconds=120, wall_seconds=300)
    )
    ended = await guest.run(request, zeros)
    assert (ended.error, ended.value) == ("", 1_000_000)
    assert sum(read) <= 20_000_000
