"""A session in a file: opened in another data directory with messages, files, staged changes and budget, without grants."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import (
    Escalation,
    FakeClock,
    FunctionToolset,
    Ok,
    Proposed,
    Response,
    SessionId,
    Tool,
)
from holdfast.core.errors import SessionExists
from holdfast.core.events import GrantGiven
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import ControlRequests, Grants, RevokeGrant
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session

STAGES = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "escalate"})
ASKS = FixedPolicy(default="escalate")
PUT = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "here", clock=FakeClock())
    yield runtime
    await runtime.close()


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "there", clock=FakeClock())
    yield runtime
    await runtime.close()


def code(source: str) -> Reply:
    return use("execute_code", {"code": source})


def files(session: Session) -> dict[str, bytes]:
    return {path: session.workspace.read(path) for path in session.workspace.list()}


async def test_a_snapshot_opens_in_another_data_directory(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("Yes.")

    replies: list[ScriptedReply] = [code("open('staged.txt', 'w').write('new')"), "Done.", listen]
    project = tmp_path / "project"
    project.mkdir()
    (project / "kept.txt").write_text("kept")
    session = await here.create(model=ScriptedModel(replies), policy=STAGES, workspace=project)
    assert isinstance(await session.send("Write it."), Proposed)
    (project / "by-hand.txt").write_text("mine")
    await here.snapshot(session.id, tmp_path / "session.zip")

    again = await there.restore(tmp_path / "session.zip", model=ScriptedModel(replies), policy=STAGES)
    assert files(again) == {"kept.txt": b"kept", "by-hand.txt": b"mine"}
    assert [proposal.path for proposal in again.proposals()] == ["staged.txt"]
    assert again.budget.spent == session.budget.spent
    assert await again.send("Is it there?") == Ok(value="Yes.")
    assert len(heard[0].messages) == 5, "the model is given the whole conversation"
    await again.commit()
    assert files(again)["staged.txt"] == b"new"
    assert not (project / "staged.txt").exists(), "the folder it came from is left alone"
    assert [turn.number for turn in again.history()] == [1, 2]


async def test_grants_of_a_snapshot_do_not_apply(here: Runtime, there: Runtime, tmp_path: Path) -> None:
    async def always(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    session = await here.create(policy=STAGES, needs_model=False, approver=always)
    await session.execute("import os\nopen('a', 'w').write('a')\nos.remove('a')")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=STAGES, needs_model=False)
    await again.execute("import os\nopen('b', 'w').write('b')\nos.remove('b')")
    assert len(again.escalations()) == 1


async def test_grants_of_a_snapshot_do_not_apply_in_its_fork(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    async def always(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False, approver=always)
    assert await session.execute("box.put()") == Ok(value="done")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=ASKS, toolsets=[box], needs_model=False)
    fork = await there.fork(again.id, policy=ASKS, toolsets=[box], needs_model=False)
    await fork.execute("box.put()")
    assert len(fork.escalations()) == 1


async def test_what_was_revoked_stays_revoked_in_a_fork_from_the_first_event(here: Runtime) -> None:
    """A crash right after it must not leave a fork with an approval that its parent no longer has."""

    async def yes(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False, approver=yes)
    await session.execute("box.put()")
    [grant] = session.grants()
    ControlRequests(here.home.control_requests(session.id)).put(RevokeGrant(grant=grant.id))
    assert await session.advance() is None, "it only applies the control request"
    fork = await here.fork(session.id, at=1, policy=ASKS, toolsets=[box], needs_model=False)
    again = await here.fork(fork.id, at=1, policy=ASKS, toolsets=[box], needs_model=False)
    for each in (fork, again):
        recorded = await here.store.read(each.id)
        first = next(place for place, entry in enumerate(recorded) if entry.session == each.id)
        assert any(isinstance(entry.event, GrantGiven) for entry in recorded[:first])
        assert Grants(ReplayedHistory(recorded[: first + 1]), clock=FakeClock()).active() == ()


async def permissive_snapshot(here: Runtime, file: Path) -> SessionId:
    """A session in a file that was run under a policy of its own making."""
    policy = file.with_name("lawless.yaml")
    policy.write_text("policy: lawless\nrules:\n  - {name: all, allow: '*'}\n")
    session = await here.create(policy=str(policy), needs_model=False)
    await session.execute("1")
    await here.snapshot(session.id, file)
    assert session.status.policy == str(policy)
    return session.id


async def test_a_snapshot_does_not_choose_its_policy(here: Runtime, there: Runtime, tmp_path: Path) -> None:
    id = await permissive_snapshot(here, tmp_path / "session.zip")
    ours = "scratch"
    again = await there.restore(tmp_path / "session.zip", needs_model=False)
    assert again.status.policy == ours
    [told] = [note.text for note in again.diagnostics() if note.code == "policy-chosen"]
    assert ours in told
    await again.rewind(0)
    await again.close()
    again = await there.resume(id, needs_model=False)
    assert again.status.policy == ours, "also once it went back to before it came here"
    assert len([note for note in again.diagnostics() if note.code == "policy-chosen"]) <= 1


async def test_a_fork_of_a_snapshot_runs_under_our_policy(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    await permissive_snapshot(here, tmp_path / "session.zip")
    store = there.store
    session = await store.import_session(tmp_path / "session.zip", now_ms=0)
    fork = await there.fork(session, at=1, needs_model=False)
    assert fork.status.policy == "scratch"


async def test_the_policy_chosen_for_a_snapshot_is_kept(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    id = await permissive_snapshot(here, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy="ask-always", needs_model=False)
    await again.close()
    assert (await there.resume(id, needs_model=False)).status.policy == "ask-always"


async def test_an_unused_approval_of_a_snapshot_does_not_count(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False)
    await session.execute("box.put()")
    [waits] = session.escalations()
    await session.resolve(waits.id, Response(verdict="approve"))
    await session.close()
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=ASKS, toolsets=[box], needs_model=False)
    await again.advance()
    assert box.performed == []
    [entry] = again.audit(operation=PUT.name)
    assert entry.decision.reason.endswith("it was approved in another home")


PUT_ONCE = FunctionToolset({PUT.name: (PUT, lambda _: "done")})


async def test_f07_variables_of_a_snapshot_are_rebuilt_without_repeating_a_call(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    allow = FixedPolicy(default="allow")
    session = await here.create(policy=allow, toolsets=[PUT_ONCE], needs_model=False)
    await session.execute("def double(n):\n    return 2 * n\nn = [20, box.put()]")
    await session.execute("open('a.txt', 'w').write('x')\nn.append(double(n[0]))\nm = open('a.txt').read()")
    await session.execute("this does not parse")
    await here.snapshot(session.id, tmp_path / "session.zip")
    box = FunctionToolset({PUT.name: (PUT, lambda _: "again")})
    again = await there.restore(tmp_path / "session.zip", policy=allow, toolsets=[box], needs_model=False)
    again.workspace.delete("a.txt")
    assert await again.execute("[n, m, double(4)]") == Ok(value=[[20, "done", 40], "x", 8])
    assert box.performed == [], "no call was made again"
    assert not again.workspace.exists("a.txt"), "and no file was written again"
    assert "variables-rebuilt" in [note.code for note in again.diagnostics()]
    await again.close()
    later = await there.resume(again.id, policy=allow, needs_model=False)
    assert await later.execute("double(21)") == Ok(value=42), "from here on they are its own"


async def test_f07_definitions_and_facts_of_lisp_are_rebuilt(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    allow = FixedPolicy(default="allow")
    session = await here.create(policy=allow, sandbox="lisp", needs_model=False)
    await session.execute('(define (twice n) (* 2 n)) (assert \'(checked "a"))')
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=allow, sandbox="lisp", needs_model=False)
    assert await again.execute('(list (twice 21) (fact? \'(checked "a")))') == Ok(value=[42, True])


async def test_f07_variables_that_cannot_be_rebuilt_are_reported_and_the_session_continues(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    session = await here.create(policy=FixedPolicy(default="allow"), toolsets=[PUT_ONCE], needs_model=False)
    await session.execute("n = box.put()")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(
        tmp_path / "session.zip", policy=STAGES, needs_model=False
    )  # without the tool
    assert await again.execute("m = 1\nm") == Ok(value=1)
    assert "variables-lost" in [note.code for note in again.diagnostics()]
    assert await again.execute("m + 1") == Ok(value=2), "what it makes here it keeps"


async def test_a_snapshot_does_not_replace_an_existing_session(here: Runtime, tmp_path: Path) -> None:
    session = await here.create(policy=STAGES, needs_model=False)
    await here.snapshot(session.id, tmp_path / "session.zip")
    with pytest.raises(SessionExists):
        await here.restore(tmp_path / "session.zip", policy=STAGES, needs_model=False)


async def test_a_rewind_before_the_import_leaves_the_session_in_its_own_folder(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    session = await here.create(policy=FixedPolicy(default="allow"), needs_model=False, workspace=project)
    await session.execute("open('a.txt', 'w').write('one')")
    await session.execute("open('a.txt', 'w').write('two')")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(
        tmp_path / "session.zip", policy=FixedPolicy(default="allow"), needs_model=False
    )
    await again.rewind(1)
    await again.close()
    once_more = await there.resume(again.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert files(once_more) == {"a.txt": b"one"}
    assert (project / "a.txt").read_text() == "two"
