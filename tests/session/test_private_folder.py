"""F24: in a folder that only the session uses, the host sees what the guest wrote as soon as the run ends."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.cli.commands import Run, run
from tests.guests.engines import KEY
from tests.installed_programs import cache_folder

import holdfast.workspace as workspace
from holdfast.app import Runtime
from holdfast.core import Ok, Proposed
from holdfast.guests import Engines, Sandbox
from holdfast.policy import load_policy
from holdfast.session import Settings

__all__ = ["run"]

WRITES: dict[Sandbox, str] = {
    "python": "open('out/a.txt', 'w').write('made')\n1",
    "wasi": "import os\nos.makedirs('out')\nopen('out/a.txt', 'w').write('made')\n1",
    "lisp": '(world/write "out/a.txt" "made") 1',
}


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    engines = Engines(key=KEY, cache=cache_folder("wasi"))
    started = await Runtime.start(home=tmp_path / "home", settings=Settings(), servers=(), engines=engines)
    yield started
    await started.close()


@pytest.mark.parametrize("sandbox", WRITES)
async def test_f24_the_host_lists_and_reads_what_a_run_wrote(runtime: Runtime, sandbox: Sandbox) -> None:
    session = await runtime.sandbox(sandbox=sandbox)
    assert await session.execute(WRITES[sandbox]) == Ok(value=1)
    assert session.proposals() == ()
    assert workspace.list_files(session.id, home=runtime.home) == ("out/a.txt",)
    assert workspace.read(session.id, "out/a.txt", home=runtime.home) == b"made"
    assert session.workspace.read("out/a.txt") == b"made"


async def test_f24_a_rewind_takes_the_files_away_again(runtime: Runtime) -> None:
    session = await runtime.sandbox(sandbox="python")
    await session.execute(WRITES["python"])
    await session.rewind(0)
    assert workspace.list_files(session.id, home=runtime.home) == ()


@pytest.mark.parametrize("policy", ["project", "safe-edit"])
async def test_f24_a_policy_that_stages_still_stages(runtime: Runtime, policy: str) -> None:
    session = await runtime.create(policy=policy, needs_model=False)
    outcome = await session.execute("open('src/a.txt', 'w').write('made')")
    assert isinstance(outcome, Proposed)
    assert workspace.list_files(session.id, home=runtime.home) == ()


async def test_f24_in_a_folder_of_the_user_changes_are_proposed(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    session = await runtime.create(workspace=tmp_path / "project", needs_model=False)
    assert session.status.policy == "project"
    assert isinstance(await session.execute("open('a.txt', 'w').write('made')"), Proposed)
    fork = await runtime.fork(session.id, needs_model=False)
    assert fork.status.policy == "project", "a fork keeps the policy of its parent"


async def test_f24_a_session_keeps_its_policy_when_it_is_resumed(runtime: Runtime) -> None:
    session = await runtime.create(policy="project", needs_model=False)
    await session.close()
    assert (await runtime.resume(session.id, needs_model=False)).status.policy == "project"
    again = await runtime.create(policy="auto", needs_model=False)
    assert again.status.policy == "scratch"


def test_f24_the_scratch_policy_is_the_project_policy_with_changes_allowed() -> None:
    """A rule that is added to one of the two must be added to the other."""

    def shape(name: str) -> object:
        document = load_policy(name).document
        rules = [
            (rule.name, rule.verdict, rule.operations, rule.roles)
            for rule in document.rules
            # Nobody but the session runs what is in the folder.
            if rule.name not in ("propose-changes", "runs-by-itself-later", "change-inside")
        ]
        return rules, document.allowed_operations, document.denied_operations

    assert shape("scratch") == shape("project")


def test_f24_at_the_command_line_a_file_is_there_at_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("open('a.txt', 'w').write('made')")
    assert run("exec", "code.py").code == 0
    [session] = (path.name for path in (tmp_path / "holdfast" / "sessions").iterdir())
    assert run("files", "ls", session).out.split() == ["4", "a.txt"]
    assert run("files", "cat", session, "a.txt").out == "made"
