"""Programs across the life of a session: another policy, a fork, an import, and a sandbox that nobody uses."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.commands import ScriptedSandbox, ScriptedSandboxes, SessionSandbox
from holdfast.core import JsonObject
from holdfast.core.events import CallSettled, Event, SandboxClosed
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "stage"})
NO_PROGRAMS = FixedPolicy(
    default="allow",
    verdicts={f"shell.{verb}": "deny" for verb in ("run", "start", "read", "write", "stop")},
)


def run(*argv: str, stdin: str = "") -> ScriptedReply:
    return use("shell__run", {"argv": list(argv), "stdin": stdin})


CHANGE: tuple[ScriptedReply, ...] = (run("tee", "a", stdin="staged"), "Done.")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with asyncio.timeout(60):
        started = await start(tmp_path / "home")
        yield started
        await started.close()


async def start(home: Path) -> Runtime:
    return await Runtime.start(
        home=home, settings=Settings(acts_with="tools"), servers=(), sandboxes=ScriptedSandboxes()
    )


def results(session: Session) -> list[JsonObject]:
    settled = [entry.event for entry in session._journal.recorded if isinstance(entry.event, CallSettled)]
    return [each.result for each in settled if isinstance(each.result, dict)]


async def changed_session(runtime: Runtime, folder: Path) -> Session:
    """A session in which a program changed a file, which is staged."""
    folder.mkdir()
    (folder / "a").write_text("base")
    session = await runtime.create(model=ScriptedModel(CHANGE), workspace=folder, policy=STAGING)
    await session.send("go")
    assert [each.path for each in session.proposals()] == ["a"]
    return session


async def test_another_policy_adds_and_removes_the_tools_for_programs_at_once(
    runtime: Runtime, tmp_path: Path
) -> None:
    seen: list[bool] = []

    def answer(prompt: Prompt) -> Reply:
        seen.append(any(tool.name.startswith("shell") for tool in prompt.tools))
        return say("Done.")

    session = await runtime.create(model=ScriptedModel([answer] * 3), policy=NO_PROGRAMS)
    await session.send("go")
    for policy in (STAGING, NO_PROGRAMS):
        name = session.id
        await session.close()
        session = await runtime.resume(name, model=ScriptedModel([answer] * 3), policy=policy)
        await session.send("go")
    assert seen == [False, True, False]


async def test_a_program_in_a_fork_sees_the_staged_changes_and_leaves_the_parent_alone(
    runtime: Runtime, tmp_path: Path
) -> None:
    parent = await changed_session(runtime, tmp_path / "project")
    replies = [*CHANGE, run("cat", "a"), run("tee", "a", stdin="of the fork"), "Done."]
    fork = await runtime.fork(parent.id, model=ScriptedModel(replies), policy=STAGING)
    await fork.send("go")
    assert [each["output"] for each in results(fork)][-2:] == ["staged", "of the fork"]
    assert "of the fork" in fork.proposals()[0].diff
    assert "of the fork" not in parent.proposals()[0].diff
    assert (tmp_path / "project" / "a").read_text() == "base"


async def test_a_program_in_an_imported_session_sees_its_staged_changes(
    runtime: Runtime, tmp_path: Path
) -> None:
    session = await changed_session(runtime, tmp_path / "project")
    await runtime.snapshot(session.id, tmp_path / "file")
    other = await start(tmp_path / "other")
    imported = await other.restore(
        tmp_path / "file", model=ScriptedModel([*CHANGE, run("cat", "a"), "Done."]), policy=STAGING
    )
    assert [each.path for each in imported.proposals()] == ["a"]
    await imported.send("look")
    assert [each["output"] for each in results(imported)] == ["staged", "staged"]
    await other.close()


async def test_a_sandbox_that_nobody_uses_is_closed_and_the_next_command_opens_another() -> None:
    closed = asyncio.Event()
    opened: list[ScriptedSandbox] = []

    def record(event: Event) -> None:
        if isinstance(event, SandboxClosed):
            assert event.reason == "idle"
            closed.set()

    async def open_sandbox() -> ScriptedSandbox:
        opened.append(ScriptedSandbox(dict))
        return opened[-1]

    async def nothing_hidden() -> tuple[str, ...]:
        return ()

    sandbox = SessionSandbox(
        open=open_sandbox,
        status=ScriptedSandbox(dict).status,
        staged=lambda: (),
        hidden=nothing_hidden,
        record=record,
        idle_seconds=0,
    )
    for count in (1, 2):
        closed.clear()
        async with sandbox.use() as used:
            assert used is opened[-1]
        await closed.wait()
        assert sandbox.current is None
        assert len(opened) == count
    await sandbox.close()
