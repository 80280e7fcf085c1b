"""The files of a turn: reported one by one, bounded, and restored whatever program changed them."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.guests.wasi.running import KEY
from tests.installed_programs import cache_folder

from holdfast.app import Runtime
from holdfast.core import FakeClock, FunctionToolset, JsonObject, Ok, Tool
from holdfast.guests import Engines
from holdfast.mcp import ServerSpec
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

__all__ = ["run"]

ALLOW = FixedPolicy(default="allow")
OUTSIDE = Tool(name="outside.act", parameters={"type": "object", "properties": {}}, roles={})
SERVER = """
from pathlib import Path
from mcp.server.mcpserver import MCPServer

server = MCPServer("disk")

@server.tool()
def scribble(name: str) -> str:
    Path(name).write_text("by the server")
    return name

server.run("stdio")
"""


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    yield started
    await started.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "kept.txt").write_text("kept")
    return folder


def allowing(folder: Path) -> str:
    policy = folder / "allow.yaml"
    policy.write_text(
        "policy: all\nrules:\n  - name: all\n    allow: '*'\n    because: a test\n"
        "    examples: {matches: [{world.write: {path: a, content: b}}]}\n"
    )
    return str(policy)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def report(session: Session) -> dict[str, str]:
    return {change.path: change.kind for change in session.history()[-1].changes}


def acting(work: Callable[[], object]) -> FunctionToolset:
    def act(_: JsonObject) -> None:
        work()

    return FunctionToolset({OUTSIDE.name: (OUTSIDE, act)})


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".GIT/config", "sub/.git/hooks/x", ".git", ".holdfast/policy.yaml"]
)
async def test_no_policy_opens_a_protected_name_even_if_it_does_not_exist(
    runtime: Runtime, project: Path, path: str
) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "config").write_text("[core]")
    before = tree(project)
    session = await runtime.create(workspace=project, policy=ALLOW, needs_model=False)
    for attempt in (
        f"open({path!r}, 'w').write('evil')",
        f"open('x', 'w').write('evil')\nworld.move(source='x', destination={path!r})",
        f"world.delete(path={path!r}, recursive=True)",
        f"open({path!r}).read()",
    ):
        assert not isinstance(await session.execute(attempt), Ok), attempt
    (project / "x").unlink()
    assert tree(project) == before


@pytest.mark.parametrize("restore_points", ["auto", "never"])
async def test_a_turn_reports_created_modified_and_deleted_files(tmp_path: Path, restore_points: str) -> None:
    settings = Settings(restore_points=restore_points)  # type: ignore[arg-type]
    runtime = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=settings)
    try:
        session = await runtime.create(policy=ALLOW, needs_model=False)
        await session.execute("for name in ('a', 'b', 'c'):\n    open(name, 'w').write(name)")
        assert report(session) == {"a": "created", "b": "created", "c": "created"}
        code = (
            "import os\nopen('a', 'w').write('2')\nos.remove('b')\nopen('d', 'w').write('')\nos.remove('d')"
        )
        await session.execute(f"{code}\nopen('c', 'w').write('c')")
        assert report(session) == {"a": "modified", "b": "deleted"}, "an unchanged file is not reported"
        await session.execute("1")
        assert report(session) == {}
    finally:
        await runtime.close()


def test_the_library_reports_the_files_of_a_turn(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("open('new.txt', 'w').write('x')")
    done = run("exec", "-p", allowing(tmp_path), "--json", "code.py")
    assert done.code == 0, done.err
    assert json.loads(done.out)["files"] == {"created": ["new.txt"], "modified": [], "deleted": []}


async def test_a_rewind_to_a_later_turn_keeps_changes_made_between_turns(
    runtime: Runtime, project: Path
) -> None:
    session = await runtime.create(workspace=project, policy=ALLOW, needs_model=False)
    await session.execute("open('a.txt', 'w').write('one')")
    (project / "kept.txt").write_text("edited by hand")
    await session.execute("open('b.txt', 'w').write('two')")
    after = tree(project)
    await session.execute("open('b.txt', 'w').write('three')")
    await session.rewind(2)
    assert tree(project) == after
    await session.rewind(0)
    assert tree(project) == {"kept.txt": b"kept"}


async def test_changes_by_a_tool_outside_the_world_are_reported_and_restored(
    runtime: Runtime, project: Path
) -> None:
    def act() -> None:
        (project / "by-tool").write_bytes(os.urandom(100_000))
        (project / "kept.txt").unlink()

    session = await runtime.create(workspace=project, policy=ALLOW, needs_model=False, toolsets=[acting(act)])
    await session.execute("outside.act()")
    assert report(session) == {"by-tool": "created", "kept.txt": "deleted"}
    await session.rewind(0)
    assert tree(project) == {"kept.txt": b"kept"}


async def test_files_written_by_an_mcp_server_are_reported_and_restored(
    tmp_path: Path, project: Path
) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    spec = ServerSpec(name="disk", command=sys.executable, args=(str(tmp_path / "server.py"),))
    runtime = await Runtime.start(home=tmp_path / "home", servers=[spec])
    try:
        session = await runtime.create(workspace=project, policy=ALLOW, needs_model=False)
        outcome = await session.execute("disk.scribble(name='note.txt')")
        assert isinstance(outcome, Ok), outcome
        assert report(session) == {"note.txt": "created"}
        await session.rewind(0)
        assert tree(project) == {"kept.txt": b"kept"}
    finally:
        await runtime.close()


@pytest.mark.timeout(900)  # the first test that needs the component waits for its build
async def test_changes_by_python_in_wasi_are_reported_and_restored(tmp_path: Path, project: Path) -> None:
    pytest.importorskip("wasmtime")
    engines = Engines(key=KEY, cache=cache_folder("wasi"))
    runtime = await Runtime.start(home=tmp_path / "home", engines=engines)
    try:
        session = await runtime.create(workspace=project, policy=ALLOW, needs_model=False, sandbox="wasi")
        outcome = await session.execute(
            "import os, shutil\nos.makedirs('d/e')\nopen('d/e/f', 'wb').write(bytes(range(256)))\n"
            "os.rename('kept.txt', 'moved.txt')"
        )
        assert isinstance(outcome, Ok), outcome
        assert report(session) == {"d/e/f": "created", "kept.txt": "deleted", "moved.txt": "created"}
        after = tree(project)
        await session.execute("import shutil\nshutil.rmtree('d')")
        await session.rewind(1)
        assert tree(project) == after
        await session.rewind(0)
        assert tree(project) == {"kept.txt": b"kept"}
    finally:
        await runtime.close()


async def test_a_guest_meets_a_full_workspace_as_an_ordinary_error(tmp_path: Path, project: Path) -> None:
    settings = Settings(workspace_bytes=1000, workspace_files=3)
    runtime = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=settings)
    try:
        session = await runtime.create(
            workspace=project,
            policy=ALLOW,
            needs_model=False,
            toolsets=[acting(lambda: (project / "by-tool").write_bytes(bytes(900)))],
        )
        code = "try:\n    with open('{0}', 'w') as file:\n        file.write('x' * {1})\n    report = 'written'\nexcept OSError as error:\n    report = 'full'\nreport"
        assert await session.execute(code.format("big", 2000)) == Ok(value="full")
        assert await session.execute(code.format("small", 200)) == Ok(value="written")
        await session.execute("outside.act()")
        assert await session.execute(code.format("small", 250)) == Ok(value="full"), "others count too"
        assert await session.execute(code.format("third", 0)) == Ok(value="full"), "so do their files"
        assert set(tree(project)) == {"kept.txt", "small", "by-tool"}
    finally:
        await runtime.close()


async def test_chat_files_staged_changes_budget_and_grants_move_together(
    runtime: Runtime, project: Path
) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    session = await runtime.create(workspace=project, policy=policy, needs_model=False)
    await session.execute("open('staged.txt', 'w').write('waits')")
    spent = session.budget.spent
    files = tree(project)
    await session.commit()
    await session.execute("open('later.txt', 'w').write('later')")
    fork = await runtime.fork(session.id, at=1, policy=policy, needs_model=False)
    await session.rewind(1)
    assert tree(project) == files
    for one in (session, fork):
        assert len(one.history()) == 1
        assert [proposal.path for proposal in one.proposals()] == ["staged.txt"]
        assert one.budget.spent.calls == spent.calls
        assert one.workspace.files() == ("kept.txt",)
    await fork.commit()
    assert fork.workspace.files() == ("kept.txt", "staged.txt")
    assert session.workspace.files() == ("kept.txt",)


async def test_a_fork_is_planned_and_made_at_the_command_line(
    run: Run, tmp_path: Path, project: Path
) -> None:
    runtime = await Runtime.start(home=tmp_path / "holdfast")
    session = await runtime.create(
        workspace=project,
        policy=allowing(tmp_path),
        needs_model=False,
        name="work",
        toolsets=[acting(lambda: None)],
    )
    await session.execute("open('a.txt', 'w').write('one')")
    await session.execute("open('a.txt', 'w').write('two')\noutside.act()")
    await runtime.close()
    plan = await asyncio.to_thread(run, "fork", "work", "--at", "1", "--dry-run")
    assert plan.code == 0, plan.err
    assert plan.out == "would be modified  a.txt\n"
    assert "cannot be undone: 2.2 outside.act" in plan.err
    assert (await asyncio.to_thread(run, "sessions", "--json")).out.count('"id"') == 1, "a plan makes nothing"
    made = await asyncio.to_thread(run, "fork", "work", "--at", "1", "-n", "other")
    assert made.code == 0, made.err
    read = await asyncio.to_thread(run, "files", "cat", "other", "a.txt")
    assert read.out == "one"
    assert (project / "a.txt").read_text() == "two"


async def test_a_huge_file_is_not_stored_and_every_step_reports_it(
    run: Run, tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def grow() -> None:
        (project / "huge").touch()
        os.truncate(project / "huge", 3_000_000_000)

    runtime = await Runtime.start(home=tmp_path / "holdfast")
    session = await runtime.create(
        workspace=project,
        policy=allowing(tmp_path),
        needs_model=False,
        name="work",
        toolsets=[acting(grow)],
    )
    await session.execute("1")
    await session.execute("outside.act()\nopen('small.txt', 'w').write('kept')")
    assert report(session) == {"huge": "created", "small.txt": "created"}
    (note,) = (note for note in session.diagnostics() if note.code == "not-kept")
    assert "huge" in note.text
    await runtime.close()
    backup = tmp_path / "backup.zip"
    assert (await asyncio.to_thread(run, "export", "work", "-o", str(backup))).code == 0
    for words, where in (
        ("fork work --dry-run", "would not be in the fork"),
        ("fork work -n other", "not in the fork"),
        ("rewind work --to 1 --dry-run", "would stay unchanged"),
        ("rewind work --to 1", "stays unchanged"),
    ):
        said = await asyncio.to_thread(run, *words.split())
        assert said.code == 0, said.err
        assert f"{where}, because it was not saved: huge\n" in said.err
    assert sorted(path.name for path in project.iterdir()) == ["huge", "kept.txt"]
    listed = await asyncio.to_thread(run, "files", "ls", "other")
    assert "small.txt" in listed.out
    assert "huge" not in listed.out
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "another"))
    said = await asyncio.to_thread(run, "import", str(backup))
    assert "missing, because it was not saved: huge\n" in said.err
