"""Code in the project's own Python: judged like a program, over the staged workspace, with the tools over a socket."""

import asyncio
import contextlib
import gzip
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.engines import KEY, component_cache
from tests.installed_programs import cache_folder

from holdfast import Runtime
from holdfast.commands import probe_sandbox
from holdfast.core import Error, Needs, Nonconverged, Ok, Outcome, Proposed, Response, parse_limits
from holdfast.core.errors import EngineMissing
from holdfast.core.events import CallIntended, CommandEnded, RecordedEvent, RunEnded
from holdfast.guests import Engines
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "stage"})
ASKING = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
NEEDS_CPYTHON = "def lines(path):\n    yield from open(path)\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engines() -> AsyncIterator[Engines]:
    if (await probe_sandbox(cache_folder("sandbox"))).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    made = Engines(key=KEY, cache=component_cache())
    yield made
    await made.close()


@pytest_asyncio.fixture(loop_scope="module")
async def runtime(tmp_path: Path, engines: Engines) -> AsyncIterator[Runtime]:
    made = await Runtime.start(home=tmp_path / "home", engines=engines, settings=Settings(), servers=())
    yield made
    await made.live_sessions.close()
    await made.store.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    return folder


async def opened(runtime: Runtime, project: Path, policy: FixedPolicy | str = STAGING) -> Session:
    return await runtime.create(workspace=project, policy=policy, sandbox="system", needs_model=False)


def value(outcome: Outcome) -> object:
    assert isinstance(outcome, Ok | Proposed), outcome
    return outcome.value


async def test_code_uses_the_packages_of_the_project(runtime: Runtime, project: Path) -> None:
    venv = [sys.executable, "-m", "venv", "--without-pip", str(project / ".venv")]
    await asyncio.to_thread(subprocess.run, venv, check=True)
    [packages] = (project / ".venv" / "lib").glob("python3.*/site-packages")
    (packages / "pricing.py").write_text("TAX = 19\n")
    (project / "shop.py").write_text("import pricing\n\n\ndef gross(net):\n    return net + pricing.TAX\n")
    session = await opened(runtime, project)
    seen = value(await session.execute("import shop, sys\n[shop.gross(81), sys.prefix]"))
    assert seen == [100, str(project / ".venv")]


async def test_what_code_changes_is_staged_and_seen_by_everything_else(
    runtime: Runtime, project: Path
) -> None:
    session = await opened(runtime, project)
    first = await session.execute(
        "import subprocess\nwith open('a.txt', 'a') as f:\n    f.write('two\\n')\n"
        "subprocess.run(['sh', '-c', 'echo three >> a.txt; echo made'])\nn = 3"
    )
    assert isinstance(first, Proposed)
    assert (project / "a.txt").read_text() == "one\n"
    later = "[n, world.read(path='a.txt'), shell.run(argv=['wc', '-l', 'a.txt'])['output']]"
    assert value(await session.execute(later)) == [3, "one\ntwo\nthree\n", "3 a.txt\n"]
    events = [entry.event for entry in await runtime.store.read(session.id)]
    printed = [event.printed for event in events if isinstance(event, RunEnded)]
    assert printed[0] == "made\n", "what the programs of the code print is shown too"
    calls = [event.call.operation for event in events if isinstance(event, CallIntended)]
    assert calls == ["shell.python", "shell.stop", "shell.python", "world.read", "shell.run", "shell.stop"]
    assert len([event for event in events if isinstance(event, CommandEnded)]) == 3
    assert session.processes() == (), "code leaves no process behind"
    await session.commit()
    assert (project / "a.txt").read_text() == "one\ntwo\nthree\n"


async def test_f03_a_file_that_nobody_closed_is_whole_when_the_code_ends(
    runtime: Runtime, project: Path
) -> None:
    session = await opened(runtime, project)
    code = "import gzip\nf = open('b.txt', 'w')\nf.write('all of it')\ng = gzip.open('b.gz', 'wt')\ng.write('all of it')"
    assert isinstance(await session.execute(code), Proposed)
    await session.commit()
    assert (project / "b.txt").read_text() == "all of it"
    assert gzip.decompress((project / "b.gz").read_bytes()) == b"all of it"


@pytest.mark.parametrize(
    "death", ["os.kill(os.getpid(), 9)", "os._exit(0)", "os.kill(os.getpid(), signal.SIGPROF)"]
)
async def test_f03_a_run_that_dies_stages_nothing_and_names_what_was_dropped(
    runtime: Runtime, project: Path, death: str
) -> None:
    session = await opened(runtime, project)
    await session.execute("shell.start(argv=['sleep', '1000'])")
    half = "import os, signal\nf = open('half.txt', 'w')\nf.write('h')\nf.flush()\nworld.write(path='whole.txt', content='w')\n"
    assert isinstance(await session.execute(half + death), Error | Nonconverged)
    ended = [e.event for e in await runtime.store.read(session.id) if isinstance(e.event, RunEnded)][-1]
    assert [path.partition(" ")[0] for path in ended.dropped] == ["half.txt"]
    assert value(await session.execute("import os\nsorted(os.listdir())")) == ["a.txt", "whole.txt"]
    assert [change.path for change in session.proposals()] == ["whole.txt"]


_RAISES = """
import gzip, pathlib
open('whole.txt', 'w').write('whole')
left = open('left.txt', 'a')
left.write('l')
packed = gzip.open('left.gz', 'wt')
packed.write('p')
open_again = open
try:
    with open('cut.txt', 'w') as file:
        file.write('c' * 100_000)
        raise KeyError('in the middle')
except KeyError:
    with open('log.txt', 'w') as log:
        log.write('failed')
    raise
"""


async def test_f03_files_that_an_exception_cuts_off_are_dropped_and_named_and_others_kept(
    runtime: Runtime, project: Path
) -> None:
    session = await opened(runtime, project)
    assert isinstance(await session.execute(_RAISES), Error)
    ended = [e.event for e in await runtime.store.read(session.id) if isinstance(e.event, RunEnded)][-1]
    assert [path.partition(" ")[0] for path in ended.dropped] == ["cut.txt", "left.gz", "left.txt"]
    assert value(await session.execute("import os\nsorted(os.listdir())")) == [
        "a.txt",
        "log.txt",
        "whole.txt",
    ]
    assert [change.path for change in session.proposals()] == ["log.txt", "whole.txt"]
    assert value(await session.execute("open_again('a.txt').read()")) == (project / "a.txt").read_text()


async def test_what_cancelled_code_changed_is_dropped_also_beside_a_background_program(
    runtime: Runtime, project: Path
) -> None:
    session = await opened(runtime, project)
    await session.execute("shell.start(argv=['sleep', '1000'])")
    has_written = asyncio.Event()

    def look(entry: RecordedEvent) -> None:
        if isinstance(entry.event, CallIntended) and entry.event.call.operation == "world.exists":
            has_written.set()

    session.follow(look)
    code = "import time\nopen('half.txt', 'w').write('h')\nworld.exists(path='half.txt')\ntime.sleep(1000)"
    running = asyncio.create_task(session.execute(code))
    await has_written.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    assert value(await session.execute("import os\nsorted(os.listdir())")) == ["a.txt"]
    assert session.proposals() == ()
    assert [each.is_running for each in session.processes()] == [True]


async def test_a_change_that_the_policy_denies_is_dropped_and_reported(
    runtime: Runtime, project: Path
) -> None:
    denying = FixedPolicy(default="allow", verdicts={"world.write": "deny"})
    session = await opened(runtime, project, denying)
    value(await session.execute("open('b.txt', 'w').write('b')"))
    [ended] = [e.event for e in await runtime.store.read(session.id) if isinstance(e.event, RunEnded)]
    assert "[b.txt was not changed:" in ended.printed
    assert not (project / "b.txt").exists()
    assert value(await session.execute("import os\nos.path.exists('b.txt')")) is False


async def test_code_that_waits_for_approval_continues_in_its_process(runtime: Runtime, project: Path) -> None:
    session = await opened(runtime, project, ASKING)
    code = "import os\nbefore = os.getpid()\nworld.delete(path='a.txt')\n[before == os.getpid(), 'went on']"
    assert isinstance(await session.execute(code), Needs)
    [escalation] = session.escalations()
    await session.resolve(escalation.id, Response(verdict="approve"))
    outcome = await session.advance()
    assert outcome is not None
    assert value(outcome) == [True, "went on"]
    assert not (project / "a.txt").exists()


async def test_code_whose_process_is_gone_is_lost_and_not_repeated(runtime: Runtime, project: Path) -> None:
    session = await opened(runtime, project, ASKING)
    code = "open('log.txt', 'a').write('ran\\n')\nworld.delete(path='a.txt')\nopen('log.txt', 'a').write('ran\\n')"
    assert isinstance(await session.execute(code), Needs)
    await session.close()
    again = await runtime.resume(session.id, policy=ASKING, needs_model=False)
    [escalation] = again.escalations()
    await again.resolve(escalation.id, Response(verdict="approve"))
    outcome = await again.advance()
    assert isinstance(outcome, Error)
    assert "has ended, and the code is not run again" in outcome.message
    assert not (project / "log.txt").exists()
    assert value(await again.execute("1 + 1")) == 2


async def test_a_policy_that_asks_about_programs_asks_about_code(runtime: Runtime, project: Path) -> None:
    session = await opened(runtime, project, "ask-always")
    outcome: Outcome | None = await session.execute("6 * 7")
    operations = []
    while waiting := session.escalations():
        operations.append(waiting[0].call.operation)
        await session.resolve(waiting[0].id, Response(verdict="approve"))
        outcome = await session.advance()
    assert outcome is not None
    assert operations == ["shell.python", "shell.stop"]
    assert value(outcome) == 42


async def test_a_policy_without_programs_has_no_system_sandbox(runtime: Runtime, project: Path) -> None:
    with pytest.raises(EngineMissing, match="full command sandbox"):
        await opened(runtime, project, "safe-analysis")


async def test_a_raised_budget_continues_in_the_same_process(runtime: Runtime, project: Path) -> None:
    limits = parse_limits("calls=2")
    session = await runtime.create(
        workspace=project, policy=STAGING, sandbox="system", needs_model=False, budget=limits
    )
    code = (
        "import os\nx = os.urandom(8)\nworld.exists(path='a.txt')\ny = x\nworld.exists(path='b.txt')\nx is y"
    )
    assert isinstance(await session.execute(code), Nonconverged)
    await session.raise_budget(parse_limits("calls=5"))
    outcome = await session.advance()
    assert outcome is not None
    assert value(outcome) is True


async def test_auto_switches_to_the_projects_python(runtime: Runtime, project: Path) -> None:
    session = await runtime.create(workspace=project, policy=STAGING, sandbox="auto", needs_model=False)
    await session.execute("x = [1, 2]\nopen('a.txt', 'w').write('by monty\\n')")
    seen = await session.execute(NEEDS_CPYTHON + "[x, list(lines('a.txt'))]")
    assert value(seen) == [[1, 2], ["by monty\n"]]
    runs = [e.event for e in await runtime.store.read(session.id) if isinstance(e.event, RunEnded)]
    assert [ended.engine for ended in runs] == ["python", "system"]
    assert "yield" in runs[1].engine_reason
