"""What code in the WASI guest can do: values, output, tools, files, variables, waiting for an approval."""

import asyncio
from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, TOOLS, add, run

from holdfast.core import Answer, EscalationId, Failed, JsonObject, Parked, Refused, Returned
from holdfast.core.errors import SnapshotRefused
from holdfast.guests import Engine, Guest, RunRequest
from holdfast.guests.wasi import wasi_engine


async def test_a_run_has_the_value_of_its_last_expression(guest: Guest) -> None:
    assert (await run(guest, "x = 20\nx + 22")).value == 42
    assert (await run(guest, "{'a': [1, 2.5, None, True, 'é']}")).value == {"a": [1, 2.5, None, True, "é"]}


async def test_a_value_without_a_json_form_is_its_repr(guest: Guest) -> None:
    assert (await run(guest, "10 ** 30")).value == repr(10**30)
    assert (await run(guest, "float('nan')")).value == "nan"
    assert (await run(guest, "{1: 2}")).value == "{1: 2}"


async def test_printed_text_is_returned_in_order(guest: Guest) -> None:
    ended = await run(guest, "import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('x', end='')")
    assert ended.printed == "out\nerr\nx"


async def test_real_python_runs_with_the_whole_library(guest: Guest) -> None:
    code = """
import csv, io, sqlite3, statistics, uuid, enum, contextlib, decimal, asyncio
class Trouble(Exception): pass
def numbers():
    yield from (1, 2, 3)
@contextlib.contextmanager
def held():
    yield 5
with held() as five:
    pass
base = sqlite3.connect(':memory:')
base.execute('create table t (n)')
base.executemany('insert into t values (?)', [(n,) for n in numbers()])
try:
    raise Trouble('here')
except Trouble as trouble:
    caught = str(trouble)
async def later():
    await asyncio.sleep(0)
    return 'later'
[base.execute('select sum(n) from t').fetchone()[0], five, caught, statistics.mean([1, 3]), await later()]
"""
    ended = await run(guest, code)
    assert ended.error == ""
    assert ended.value == [6, 5, "here", 2, "later"]


async def test_a_traceback_shows_only_the_code(guest: Guest) -> None:
    ended = await run(guest, "def halve(n):\n    return n / 0\n\nhalve(1)")
    assert ended.status == "error"
    assert ended.error.splitlines() == [
        "Traceback (most recent call last):",
        '  File "<run 1>", line 4, in <module>',
        "    halve(1)",
        "    ~~~~~^^^",
        '  File "<run 1>", line 2, in halve',
        "    return n / 0",
        "           ~~^~~",
        "ZeroDivisionError: division by zero",
    ]


async def test_code_that_does_not_parse_is_refused_and_nothing_runs(guest: Guest, workspace: Path) -> None:
    ended = await run(guest, "open('made', 'w')\nif True print(1)")
    assert ended.status == "refused"
    assert "SyntaxError" in ended.error
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize(
    ("code", "status"), [("exit()", "ok"), ("exit(0)", "ok"), ("exit(3)", "error"), ("exit('no')", "error")]
)
async def test_a_failing_exit_status_is_an_error(guest: Guest, code: str, status: str) -> None:
    assert (await run(guest, f"import sys\nsys.{code}")).status == status


async def test_variables_last_from_run_to_run(guest: Guest) -> None:
    await run(guest, "count = 1\ndef more():\n    return count + 1")
    await run(guest, "count = more()")
    assert (await run(guest, "more()")).value == 3


async def test_an_engine_may_forget_variables_between_runs(cache: Path, workspace: Path) -> None:
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, keeps_variables=False)
    guest = engine.guest()
    await run(guest, "x = 1")
    assert "NameError" in (await run(guest, "x")).error
    await engine.close()


async def test_two_guests_share_nothing_but_the_workspace(engine: Engine) -> None:
    one, other = engine.guest(), engine.guest()
    await run(one, "secret = 1\nimport builtins, json\nbuiltins.leak = json.leak = 1")
    ended = await run(
        other, "import json, builtins\n['secret' in dir(), hasattr(builtins, 'leak'), hasattr(json, 'leak')]"
    )
    assert ended.value == [False, False, False]


async def test_tools_are_objects_grouped_by_server(guest: Guest) -> None:
    assert (await run(guest, "desk.add(1, right=2) + desk.add(left=3, right=4)")).value == 10
    assert "multiple values for argument 'left'" in (await run(guest, "desk.add(1, left=2)")).error
    assert "takes 2 arguments but 3 were given" in (await run(guest, "desk.add(1, 2, 3)")).error


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (Refused(reason="not on a Sunday", rule="r1"), "PermissionError: not on a Sunday"),
        (Failed(error="FileNotFoundError", reason="no such note"), "FileNotFoundError: no such note"),
        (Failed(error="TimeoutError", reason="too slow"), "TimeoutError: too slow"),
        (Failed(error="SystemExit", reason="broke"), "RuntimeError: broke"),
    ],
)
async def test_a_refused_or_failed_call_raises_where_it_is_made(
    guest: Guest, answer: Answer, line: str
) -> None:
    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        return answer

    ended = await run(guest, "desk.add(1, 2)", on_call)
    assert ended.error.splitlines()[-1] == line
    assert "tools.py" not in ended.error


async def test_a_second_run_of_the_same_request_behaves_the_same(engine: Engine) -> None:
    code = """
import datetime, random, secrets, time, uuid
started = time.time()
time.sleep(0.01)
[random.random(), str(uuid.uuid4()), secrets.token_hex(4), str(datetime.datetime.now()), time.time() - started > 0.0099]
"""
    first, second = await run(engine.guest(), code), await run(engine.guest(), code)
    assert first.value == second.value
    assert isinstance(first.value, list)
    assert str(first.value[3]).startswith("2026-01-01 00:00:00")
    assert first.value[4] is True


async def test_files_are_the_workspace_under_both_names(guest: Guest, workspace: Path) -> None:
    (workspace / "given.txt").write_text("given")
    ended = await run(
        guest,
        "open('/workspace/new.txt', 'w').write('new')\nopen('/app/given.txt').read() + open('new.txt').read()",
    )
    assert ended.value == "givennew"
    assert (workspace / "new.txt").read_text() == "new"


async def test_the_file_operations_of_the_library_work_in_the_sandbox(guest: Guest, workspace: Path) -> None:
    code = """
import os, shutil, sqlite3, tarfile, tempfile, zipfile
open('a', 'w').write('12345'); os.truncate('a', 2); os.utime('a'); os.link('a', 'b'); os.replace('b', 'c')
shutil.copy2('a', 'e'); os.mkdir('d'); shutil.move('e', 'd/e'); shutil.copytree('d', 'dd'); shutil.rmtree('d')
with tarfile.open('t.tgz', 'w:gz') as tar: tar.add('dd')
with zipfile.ZipFile('z.zip', 'w') as archive: archive.write('a')
base = sqlite3.connect('db'); base.execute('create table t (n)'); base.execute('insert into t values (7)'); base.commit(); base.close()
with tempfile.NamedTemporaryFile('w', dir='.') as passing: passing.write('x'); passing.flush(); os.fsync(passing.fileno())
with tempfile.TemporaryDirectory() as folder: open(folder + '/x', 'w').close()
[sqlite3.connect('db').execute('select n from t').fetchone()[0], zipfile.ZipFile('z.zip').read('a').decode(), sorted(os.listdir('dd'))]
"""
    ended = await run(guest, code)
    assert ended.error == ""
    assert ended.value == [7, "12", ["e"]]
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "c", "db", "dd", "t.tgz", "z.zip"]


async def test_a_module_in_the_workspace_can_be_imported_and_leaves_no_cache(
    guest: Guest, workspace: Path
) -> None:
    (workspace / "mine.py").write_text("answer = 42")
    assert (await run(guest, "import mine\nmine.answer")).value == 42
    assert [path.name for path in workspace.iterdir()] == ["mine.py"]


async def test_files_created_modified_and_deleted_are_reported(guest: Guest, workspace: Path) -> None:
    for name in ("kept", "modified", "deleted"):
        (workspace / name).write_text(name)
    ended = await run(
        guest,
        "import os\nos.makedirs('a/b')\nopen('a/b/created', 'w').write('1')\nopen('modified', 'a').write('!')\n"
        "os.remove('deleted')\nopen('kept').read()",
    )
    assert [(change.kind, change.path) for change in ended.changes] == [
        ("created", "a/b/created"),
        ("deleted", "deleted"),
        ("modified", "modified"),
    ]


async def test_a_write_that_resets_its_times_is_reported(guest: Guest, workspace: Path) -> None:
    (workspace / "note").write_text("old")
    code = "import os\nt = os.stat('note')\nopen('note', 'r+').write('new')\nos.utime('note', ns=(t.st_atime_ns, t.st_mtime_ns))"
    assert [change.path for change in (await run(guest, code)).changes] == ["note"]


async def ask(operation: str, arguments: JsonObject) -> Answer:
    """`desk.ask` waits for a person; the rest is carried out."""
    if operation == "desk.ask":
        return Parked(escalation=EscalationId("e1"))
    return await add(operation, arguments)


async def test_a_run_that_waits_resumes_in_the_middle_of_the_line(guest: Guest) -> None:
    parked = await run(
        guest, "print('asking')\ntotal = desk.add(1, 2) + desk.ask()\nprint('asked')\ntotal", ask
    )
    assert (parked.status, parked.printed) == ("parked", "asking\n")
    assert parked.snapshot is not None
    request = RunRequest(code="", tools=TOOLS)
    ended = await guest.resume(parked.snapshot, Returned(value=39), request, add)
    assert (ended.status, ended.value) == ("ok", 42)
    assert (await run(guest, "total")).value == 42


async def test_a_run_that_waited_in_a_process_that_has_ended_is_refused(engine: Engine) -> None:
    parked = await run(engine.guest(), "desk.ask()", ask)
    assert parked.snapshot is not None
    with pytest.raises(SnapshotRefused):
        await engine.guest().resume(parked.snapshot, Returned(), RunRequest(code=""), add)


async def test_a_new_run_abandons_one_that_waits(guest: Guest) -> None:
    await run(guest, "kept = 1")
    await run(guest, "kept = 2\ndesk.ask()", ask)
    assert (await run(guest, "kept")).value == 1


async def test_cancelling_a_run_ends_its_process(guest: Guest) -> None:
    called = asyncio.Event()

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        called.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.create_task(run(guest, "desk.add(1, 2)", on_call))
    await called.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await run(guest, "1")).value == 1


async def test_closing_in_the_middle_of_a_run_ends_it_at_once(guest: Guest) -> None:
    called, never = asyncio.Event(), asyncio.Event()

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        called.set()
        await never.wait()
        raise AssertionError

    waiting = asyncio.create_task(run(guest, "desk.add(1, 2)", on_call))
    await called.wait()
    await guest.close()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_guest_closed_while_it_computes_is_lost(guest: Guest) -> None:
    computing = asyncio.Event()

    async def on_call(operation: str, arguments: JsonObject) -> Answer:
        computing.set()
        return Returned()

    spinning = asyncio.create_task(run(guest, "desk.ask()\nwhile True: pass", on_call, seconds=30))
    await computing.wait()
    await guest.close()
    assert (await spinning).status == "lost"
