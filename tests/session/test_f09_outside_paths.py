"""F09: an approved path outside the workspace works, for that call and that file alone."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Needs, Ok, Response, ToolMessage
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.session import Session, Settings

YES = Response(verdict="approve")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


def repeat_result(prompt: Prompt) -> Reply:
    """A model that says what the code returned."""
    last = prompt.messages[-1]
    assert isinstance(last, ToolMessage)
    return say(last.returns[0].content)


async def run(runtime: Runtime, code: str, *, policy: str = "ask-always") -> Session:
    """A session in which this code has run, up to the first call that waits."""
    replies: list[ScriptedReply] = [use("execute_code", {"code": code}), repeat_result]
    session = await runtime.create(model=ScriptedModel(replies), policy=policy)
    await session.send("Do it.")
    return session


async def approve_all(session: Session) -> str:
    """Approve every call, and return what the code printed and returned."""
    while (outcome := await session.advance()) and isinstance(outcome, Needs):
        for escalation in session.escalations():
            await session.resolve(escalation.id, YES)
    assert isinstance(outcome, Ok)
    return str(outcome.value)


async def test_an_approved_file_outside_is_read(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "name.txt").write_text("kelp\n")
    session = await run(runtime, f"open('{tmp_path}/name.txt').read()", policy="project")
    [escalation] = session.escalations()
    assert escalation.decision.rule == "ask-about-the-rest"
    assert "kelp" in await approve_all(session)


async def test_an_approved_file_outside_is_written_and_deleted(runtime: Runtime, tmp_path: Path) -> None:
    code = f"world.write(path='{tmp_path}/new/a.txt', content='salt')\nworld.append(path='{tmp_path}/new/a.txt', content='y')"
    await approve_all(await run(runtime, code))
    assert (tmp_path / "new" / "a.txt").read_text() == "salty"
    code = f"world.move(source='{tmp_path}/new/a.txt', destination='{tmp_path}/new/b.txt')\nworld.entries(path='{tmp_path}/new')"
    shown = await approve_all(await run(runtime, code))
    assert (tmp_path / "new" / "b.txt").read_text() == "salty"
    assert f"{tmp_path}/new/b.txt" in shown
    await approve_all(await run(runtime, f"world.delete(path='{tmp_path}/new/b.txt')"))
    assert not (tmp_path / "new" / "b.txt").exists()


async def test_a_write_outside_is_no_change_of_the_workspace(runtime: Runtime, tmp_path: Path) -> None:
    session = await run(runtime, f"world.write(path='{tmp_path}/a.txt', content='x')")
    await approve_all(session)
    assert session.workspace.files() == ()
    assert session.proposals() == ()


async def test_a_symlink_that_replaces_an_approved_file_is_not_followed(
    runtime: Runtime, tmp_path: Path
) -> None:
    (tmp_path / "name.txt").write_text("kelp")
    (tmp_path / "secret.txt").write_text("swordfish")
    session = await run(runtime, f"open('{tmp_path}/name.txt').read()")
    [escalation] = session.escalations()
    await session.resolve(escalation.id, YES)
    (tmp_path / "name.txt").unlink()
    os.symlink(tmp_path / "secret.txt", tmp_path / "name.txt")
    shown = await approve_all(session)
    assert "swordfish" not in shown
    assert "a path or host now leads elsewhere than approved" in shown


async def test_an_approval_opens_no_other_file_of_the_folder(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "name.txt").write_text("kelp")
    (tmp_path / "secret.txt").write_text("swordfish")
    session = await run(runtime, f"open('{tmp_path}/name.txt').read()\nopen('{tmp_path}/secret.txt').read()")
    [first] = session.escalations()
    await session.resolve(first.id, YES)
    assert isinstance(await session.advance(), Needs)
    [second] = session.escalations()
    assert second.call.arguments["path"] == f"{tmp_path}/secret.txt"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("world.move(source='a.txt', destination='{top}/b.txt')", "cannot be moved into or out of"),
        ("world.write(path='{top}/.git/hooks/pre-commit', content='x')", "protected"),
        ("world.read(path='{top}/home/config.toml')", "protected"),
    ],
)
async def test_what_can_never_be_done_is_denied_at_once(
    runtime: Runtime, tmp_path: Path, code: str, reason: str
) -> None:
    session = await run(runtime, code.format(top=tmp_path))
    assert session.escalations() == ()
    [refused] = session.audit()
    assert refused.result == "refused"
    assert reason in refused.decision.reason
