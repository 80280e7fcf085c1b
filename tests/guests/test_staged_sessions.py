"""Staging in a whole session: CPython sees what is staged, and its changes become proposals."""

from pathlib import Path

import pytest

from holdfast import Runtime
from holdfast.core import Needs, Ok, Proposed, Response
from holdfast.core.events import RunEnded, RunStarted
from holdfast.policy import FixedPolicy

pytestmark = pytest.mark.timeout(900)  # the first of them may have to build the component

STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "stage"})
NEEDS_CPYTHON = "def lines(path):\n    yield from open(path)\n"
"""Monty does not have generators, so code with one runs in CPython."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.txt").write_text("one\n")
    (folder / "src" / "gone.txt").write_text("gone\n")
    return folder


async def test_cpython_sees_what_it_staged_in_an_earlier_turn(runtime: Runtime, workspace: Path) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    first = await session.execute(
        "import os\nopen('src/a.txt', 'a').write('two\\n')\nos.remove('src/gone.txt')\n"
        "os.mkdir('src/new')\nopen('src/new/b.txt', 'w').write('b')"
    )
    assert isinstance(first, Proposed)
    second = await session.execute(
        "text = open('src/a.txt').read()\nopen('src/a.txt', 'a').write('three\\n')\n"
        "[text, sorted(os.listdir('src')), open('/app/src/new/b.txt').read()]"
    )
    assert isinstance(second, Proposed)
    assert second.value == ["one\ntwo\n", ["a.txt", "new"], "b"]
    assert (workspace / "src" / "a.txt").read_text() == "one\n"
    assert [proposal.path for proposal in session.proposals()] == [
        "src/a.txt",
        "src/gone.txt",
        "src/new/b.txt",
    ]
    await session.commit()
    assert (workspace / "src" / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert sorted(path.name for path in (workspace / "src").iterdir()) == ["a.txt", "new"]


async def test_cpython_and_monty_see_what_the_other_staged(runtime: Runtime, workspace: Path) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="auto", needs_model=False)
    await session.execute("open('src/a.txt', 'w').write('by monty\\n')")
    second = await session.execute(
        NEEDS_CPYTHON + "seen = list(lines('src/a.txt'))\nopen('src/c.txt', 'w').write('by cpython')\nseen"
    )
    assert isinstance(second, Proposed)
    assert second.value == ["by monty\n"]
    third = await session.execute("world.read(path='src/c.txt') + world.read(path='src/a.txt')")
    assert isinstance(third, Ok | Proposed)
    assert third.value == "by cpythonby monty\n"
    events = [each.event for each in await runtime.store.read(session.id)]
    starts = [event for event in events if isinstance(event, RunStarted)]
    assert starts[0].facts[0].startswith("auto ")
    assert [bool(started.facts) for started in starts] == [True, False, False]
    runs = [event for event in events if isinstance(event, RunEnded)]
    assert [ended.engine for ended in runs] == ["python", "wasi", "wasi"]
    assert "yield" in runs[1].engine_reason, "the journal says which engine ran and why"
    assert (workspace / "src" / "a.txt").read_text() == "one\n"


async def test_staged_changes_are_visible_after_a_restart_and_not_after_a_rollback(
    runtime: Runtime, workspace: Path
) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    await session.execute("open('src/a.txt', 'w').write('staged')")
    await session.close()
    again = await runtime.resume(session.id, policy=STAGING, sandbox="wasi", needs_model=False)
    seen = await again.execute("open('src/a.txt').read()")
    assert seen.value == "staged"  # type: ignore[union-attr]
    await again.reject()
    seen = await again.execute("open('src/a.txt').read()")
    assert seen.value == "one\n"  # type: ignore[union-attr]


async def test_a_file_created_before_a_wait_and_deleted_after_it_makes_no_call(
    runtime: Runtime, workspace: Path
) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    code = (
        "import os\nopen('draft.txt', 'w').write('x')\nos.remove('src/gone.txt')\n"
        "person.ask(question='Continue?')\nos.remove('draft.txt')"
    )
    assert isinstance(await session.execute(code), Needs)
    [waits] = session.escalations()
    await session.resolve(waits.id, Response(verdict="approve", reason="yes"))
    assert isinstance(await session.advance(), Proposed)
    assert [(entry.operation, entry.arguments.get("path")) for entry in session.audit()] == [
        ("person.ask", None),
        ("world.delete", "src/gone.txt"),
    ]


async def test_the_changes_of_a_cancelled_run_are_not_submitted_by_the_next(
    runtime: Runtime, workspace: Path
) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    code = "import os\nopen('draft.txt', 'w').write('x')\nos.remove('src/gone.txt')\nperson.ask(question='Continue?')"
    assert isinstance(await session.execute(code), Needs)
    await session.cancel()
    assert isinstance(await session.execute("open('src/gone.txt').read()"), Ok)
    assert session.audit(turn=2) == []


async def test_a_folder_may_replace_a_file(runtime: Runtime, workspace: Path) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    outcome = await session.execute(
        "import os, shutil\nos.remove('src/a.txt')\nos.mkdir('src/a.txt')\nopen('src/a.txt/b', 'w').write('x')"
    )
    assert isinstance(outcome, Proposed), outcome
    assert [proposal.path for proposal in session.proposals()] == ["src/a.txt", "src/a.txt/b"]
    await session.commit()
    assert (workspace / "src" / "a.txt" / "b").read_text() == "x"


@pytest.mark.parametrize("first", ["e" * 200, pytest.param("d", marks=pytest.mark.soak)])
async def test_folders_deeper_than_any_path_are_removed(
    runtime: Runtime, workspace: Path, first: str
) -> None:
    session = await runtime.create(workspace=workspace, policy=STAGING, sandbox="wasi", needs_model=False)
    dig = "import os\ntry:\n    while True:\n        os.mkdir({name!r})\n        os.chdir({name!r})\nexcept OSError:\n    pass\n"
    assert isinstance(await session.execute(dig.format(name=first)), Ok)
    dig = dig.format(name="d" * 200)
    assert await session.execute("sorted(os.listdir('/workspace'))") == Ok(value=["src"])
    assert isinstance(await session.execute(dig), Ok)
    await session.close()
    again = await runtime.resume(session.id, policy=STAGING, sandbox="wasi", needs_model=False)
    assert await again.execute("sorted(os.listdir('/workspace'))") == Ok(value=["src"])
    await again.execute(dig)
    await again.close()
    await runtime.store.delete(session.id)
    assert not (runtime.home.root / "sessions" / session.id).exists()
