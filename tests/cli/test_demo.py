"""The demo: its output, its audit log, and its recovery after a crash."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli import commands
from tests.cli.terminals import terminal
from tests.cli.test_approvals import QUESTION, press
from tests.support.fork_server import forked_python

from holdfast.commands import probe_sandbox
from holdfast.core import FakeClock
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    EscalationAnswered,
    ModelReplied,
    RecordedEvent,
    TurnEnded,
)
from holdfast.store import Home, open_store

DYING_DEMO = """
import os, signal, sys
from holdfast.store.sqlite.store import SqliteStore

point, create = int(sys.argv[1]), SqliteStore.create

async def create_and_die(self, *arguments, **options):
    journal = await create(self, *arguments, **options)
    journal.follow(lambda entry: os.kill(os.getpid(), signal.SIGKILL) if entry.seq == point else None)
    return journal

SqliteStore.create = create_and_die
from holdfast.cli import main
sys.exit(main(["demo"]))
"""


def holdfast(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    return commands.holdfast(*words, home=home, TMPDIR=str(home))


def environment(home: Path) -> dict[str, str]:
    return {**commands.environment(home), "TMPDIR": str(home)}


def journal_of(home: Path) -> list[RecordedEvent]:
    async def read() -> list[RecordedEvent]:
        store = await open_store(Home(home / "holdfast"), clock=FakeClock())
        try:
            [session] = await store.sessions()
            return list(await store.read(session.id))
        finally:
            await store.close()

    return asyncio.run(read())


def test_the_demo_shows_a_whole_session(tmp_path: Path) -> None:
    done = holdfast("demo", home=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = done.stdout + done.stderr
    for words in (
        "fixed replies that ship with Holdfast",
        "allow   world.read path=/workspace/report.py",
        "deny    world.write path=/etc/cron.d/report",
        "ask     world.delete path=/workspace/old-report.csv",
        "the script `demo-answers` runs /approve for you",
        '+        return sum(float(row["price"]) * int(row["quantity"]) for row in csv.DictReader(lines))',
        "commit  CHANGES.md, report.py",
        "The audit log",
        "Spent",
        "Journal",
    ):
        assert words in shown, f"{words!r} is missing in\n{shown}"
    assert "\x1b[" not in shown, "no colour where there is no terminal"
    [project] = tmp_path.glob("holdfast-demo-*/shop")
    assert sorted(file.name for file in project.iterdir()) == ["CHANGES.md", "report.py", "sales.csv"]
    assert 'int(row["quantity"])' in (project / "report.py").read_text()


def test_where_no_sandbox_stands_the_demo_says_so_and_shows_the_rest(tmp_path: Path) -> None:
    cache = Home(tmp_path / "holdfast").cache
    asyncio.run(probe_sandbox(cache))
    file = cache / "sandbox.json"
    finding = json.loads(file.read_text())
    finding["status"] = {"tier": "none"}
    file.write_text(json.dumps(finding))
    done = holdfast("demo", "--yes", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "no command sandbox is available" in " ".join(done.stdout.split())
    assert "`holdfast doctor` says what is missing" in done.stdout
    assert "The audit log" in done.stdout
    assert "shell.run" not in done.stdout


def test_a_demo_can_be_audited_afterwards(tmp_path: Path) -> None:
    holdfast("demo", home=tmp_path)
    [session] = json.loads(holdfast("sessions", "--json", home=tmp_path).stdout)
    assert session["model"] == "scripted:demo"
    audit = json.loads(holdfast("audit", "--json", home=tmp_path).stdout)
    decided = {(entry["operation"], entry["decision"]["verdict"], entry["result"]) for entry in audit}
    assert {
        ("world.read", "allow", "ok"),
        ("world.write", "deny", "refused"),
        ("world.write", "stage", "ok"),
        ("world.delete", "escalate", "ok"),
    } <= decided


@pytest.fixture(scope="module")
def whole_length(tmp_path_factory: pytest.TempPathFactory) -> int:
    home = tmp_path_factory.mktemp("whole")
    holdfast("demo", home=home)
    recorded = journal_of(home)
    return next(entry.seq for entry in recorded if isinstance(entry.event, TurnEnded))


@pytest.mark.parametrize("tenth", [3, 8])
def test_a_demo_killed_during_its_turn_resumes_with_continue(
    tmp_path: Path, whole_length: int, tenth: int
) -> None:
    check_killed_at(tmp_path, max(3, whole_length * tenth // 10))


@pytest.mark.soak
@pytest.mark.parametrize("point", range(3, 60))
def test_a_demo_killed_at_any_event_resumes_with_continue(
    tmp_path: Path, whole_length: int, point: int
) -> None:
    if point < whole_length:
        check_killed_at(tmp_path, point)


def check_killed_at(home: Path, point: int) -> None:
    died = subprocess.run(
        forked_python("-c", DYING_DEMO, str(point)),
        env=environment(home),
        cwd=home,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    before = journal_of(home)
    assert len(before) >= point
    went_on = holdfast("--continue", home=home)
    assert went_on.returncode == 0, went_on.stderr
    assert "the old report is gone" in went_on.stdout

    after = journal_of(home)
    assert [entry.hash for entry in after[: len(before)]] == [entry.hash for entry in before], (
        "nothing is lost"
    )
    events = [entry.event for entry in after]
    assert sum(isinstance(event, TurnEnded) for event in events) == 1
    assert sum(isinstance(event, EscalationAnswered) for event in events) == 1
    replies = [event.step for event in events if isinstance(event, ModelReplied)]
    assert replies == [1, 2, 3, 4, 5], "the model is not asked again for what it answered"
    intents = [event.call.id for event in events if isinstance(event, CallIntended)]
    settled = [event.call for event in events if isinstance(event, CallSettled)]
    assert len(settled) == len(set(settled)), "no call is settled twice"
    assert set(intents) == set(settled), "no call is left open"
    for call in {call for call in intents if intents.count(call) > 1}:
        [first, *_] = [e for e in events if isinstance(e, CallIntended) and e.call.id == call]
        assert first.is_idempotent, "only a call without a second effect is made again"
    [project] = home.glob("holdfast-demo-*/shop")
    assert not (project / "old-report.csv").exists()


@pytest.mark.parametrize(("key", "word"), [("y\r", "commit"), ("\r", "reject")])
def test_the_demo_asks_at_a_terminal(tmp_path: Path, key: str, word: str) -> None:
    with terminal("demo", home=tmp_path, TMPDIR=str(tmp_path)) as user:
        assert user.wait_for(QUESTION)
        press(user, "y", "by terminal")
        assert user.wait_for("Commit these changes? [y/N] ")
        user.type(key)
        assert user.wait_for(f"{word}  CHANGES.md, report.py")
        assert user.end() == 0


def test_the_demo_names_the_program_as_the_shell_finds_it(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "holdfast"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom holdfast.cli import main\nsys.exit(main())\n")
    program.chmod(0o700)
    for path, name in (("/usr/bin:/bin", str(program)), (f"{program.parent}:/usr/bin:/bin", "holdfast")):
        done = subprocess.run(
            [str(program), "demo", "--yes"],
            env={**environment(tmp_path), "PATH": path},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == f"Next    {name} audit | {name} doctor | {name} --help"
