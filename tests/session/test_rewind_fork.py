"""Rewind and fork: files, messages, staged changes, budget and guest move together, over real files."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest

from holdfast.app import Runtime
from holdfast.core import PERSON, FakeClock, FunctionToolset, Json, JsonObject, Limits, Ok, Tool
from holdfast.core.errors import InvalidInput, ToolFailed, ToolTimeout
from holdfast.core.events import CodePosted, RecordedEvent, RestorePointMade, TurnEnded
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.world import FolderWorld

MAIL = Tool(name="mail.send", parameters={"type": "object", "properties": {}}, roles={})


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    yield started
    await started.close()


async def three_turns(runtime: Runtime, policy: FixedPolicy | None = None) -> Session:
    mail = FunctionToolset({MAIL.name: (MAIL, lambda _: "sent")})
    session = await runtime.create(
        policy=policy or FixedPolicy(default="allow"), needs_model=False, toolsets=[mail]
    )
    await session.execute("open('a.txt', 'w').write('one')\nn = 1")
    await session.execute("open('a.txt', 'w').write('two')\nopen('b.txt', 'w').write('b')\nn = 2")
    await session.execute("import os\nos.remove('b.txt')\nmail.send()\nn = 3")
    return session


def files(session: Session) -> dict[str, bytes]:
    assert isinstance(session.workspace, FolderWorld)
    return {path: session.workspace.read(path) for path in session.workspace.list()}


async def test_a_rewind_restores_files_variables_and_messages(runtime: Runtime) -> None:
    session = await three_turns(runtime)
    await session.rewind(2)
    assert files(session) == {"a.txt": b"two", "b.txt": b"b"}
    assert len(session.history()) == 2
    assert await session.execute("n") == Ok(value=2)
    await session.rewind(1)
    assert files(session) == {"a.txt": b"one"}
    assert await session.execute("n") == Ok(value=1)


async def test_a_rewind_before_the_first_turn_leaves_nothing(runtime: Runtime) -> None:
    session = await three_turns(runtime)
    await session.rewind(0)
    assert files(session) == {}
    assert session.history() == ()
    assert session.budget.spent.calls == 0


async def test_a_plan_names_what_would_change_and_what_cannot_be_undone(runtime: Runtime) -> None:
    session = await three_turns(runtime)
    plan = await session.plan_rewind(1)
    assert {change.path for change in plan.changes} == {"a.txt"}
    assert [word.split()[1] for word in plan.stays] == ["mail.send"]
    assert len(session.history()) == 3, "a plan changes nothing"
    with pytest.raises(InvalidInput):
        await session.plan_rewind(9)


async def test_a_rewind_restores_staged_changes(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    session = await runtime.create(policy=policy, needs_model=False)
    await session.execute("open('a.txt', 'w').write('staged')")
    await session.commit()
    await session.execute("open('a.txt', 'w').write('later')")
    await session.rewind(1)
    assert files(session) == {}
    assert [proposal.path for proposal in session.proposals()] == ["a.txt"]
    await session.commit()
    assert files(session) == {"a.txt": b"staged"}


async def test_a_fork_shares_the_past_and_has_its_own_future(runtime: Runtime) -> None:
    session = await three_turns(runtime)
    parent = session.id
    await session.close()
    runtime_policy = FixedPolicy(default="allow")
    child = await runtime.fork(parent, at=2, needs_model=False, policy=runtime_policy)
    assert files(child) == {"a.txt": b"two", "b.txt": b"b"}
    assert len(child.history()) == 2
    assert await child.execute("open('c.txt', 'w').write('c')\nn") == Ok(value=2)
    again = await runtime.resume(parent, policy=runtime_policy, needs_model=False)
    assert files(again) == {"a.txt": b"two"}
    assert len(again.history()) == 3


async def test_a_commit_that_was_not_recorded_is_not_a_conflict(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    session = await runtime.create(policy=policy, needs_model=False)
    await session.execute("open('a.txt', 'w').write('new')")
    session._staged.commit()  # and here the process dies, before the journal knows
    await session.close()
    again = await runtime.resume(session.id, policy=policy, needs_model=False)
    assert again.proposals() == ()
    assert files(again) == {"a.txt": b"new"}
    await again.execute("open('a.txt', 'w').write('newer')")
    await again.commit()
    assert files(again) == {"a.txt": b"newer"}


async def test_a_cancelled_turn_can_be_rewound_to(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
    session = await runtime.create(policy=policy, needs_model=False)
    await session.execute("open('a.txt', 'w').write('one')\nworld.delete(path='a.txt')")
    await session.cancel()
    await session.execute("open('a.txt', 'w').write('two')")
    await session.rewind(1)
    assert files(session) == {"a.txt": b"one"}


async def test_a_fork_has_the_limits_of_the_turn_it_starts_at(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow")
    session = await runtime.create(policy=policy, needs_model=False, limits=Limits(calls=3))
    await session.execute("1")
    await session.raise_budget(Limits(calls=50))
    await session.execute("2")
    early = await runtime.fork(session.id, at=1, policy=policy, needs_model=False)
    late = await runtime.fork(session.id, at=2, policy=policy, needs_model=False)
    assert (early.budget.limits.calls, late.budget.limits.calls) == (3, 50)


async def test_a_session_whose_last_turn_was_cancelled_can_be_forked_and_rewound(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.delete": "escalate"})
    session = await runtime.create(policy=policy, needs_model=False)
    await session.execute("open('a.txt', 'w').write('one')\nworld.delete(path='a.txt')")
    await session.cancel()
    assert (await session.plan_rewind(1)).turn == 1
    fork = await runtime.fork(session.id, policy=policy, needs_model=False)
    assert files(fork) == {"a.txt": b"one"}


async def test_a_rewind_to_a_resumed_turn_restores_its_last_end(
    runtime: Runtime,
) -> None:
    session = await runtime.create(
        policy=FixedPolicy(default="allow"), needs_model=False, limits=Limits(calls=1)
    )
    await session.execute("open('a.txt', 'w').write('one')\nopen('a.txt', 'w').write('two')")
    assert files(session) == {"a.txt": b"one"}
    await session.raise_budget(Limits(calls=9))
    await session.advance()
    [turn] = session.history()
    assert [(change.path, change.kind) for change in turn.changes] == [("a.txt", "created")]
    await session.execute("open('a.txt', 'w').write('three')")
    await session.rewind(1)
    assert files(session) == {"a.txt": b"two"}
    await session.rewind(1)
    assert files(session) == {"a.txt": b"two"}, "and can be gone back to again"


async def test_a_plan_names_possible_effects_and_not_failed_calls(runtime: Runtime) -> None:
    calls = iter([ToolTimeout("no answer"), ToolFailed("no such address")])

    def answer(_: JsonObject) -> Json:
        raise next(calls)

    mail = FunctionToolset({MAIL.name: (MAIL, answer)})
    session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False, toolsets=[mail])
    await session.execute(
        "for _ in range(2):\n    try:\n        mail.send()\n    except Exception:\n        pass"
    )
    assert [entry.result for entry in session.audit()] == ["timeout", "error"]
    assert (await session.plan_rewind(0)).stays == ("1.1 mail.send",)


async def test_a_missing_restore_point_is_made_before_the_next_turn(runtime: Runtime) -> None:
    session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False)
    await session.execute("open('a.txt', 'w').write('one')")
    reference = session.id
    await session.close()
    journal = await runtime.store.open(reference)
    posted = CodePosted(turn=2, code="", language="python", principal=PERSON)
    await journal.append(posted, TurnEnded(turn=2, outcome=Ok()))
    await journal.release()
    again = await runtime.resume(reference, policy=FixedPolicy(default="allow"), needs_model=False)
    await again.execute("open('a.txt', 'w').write('three')")
    await again.rewind(2)
    assert files(again) == {"a.txt": b"one"}


async def test_files_from_before_the_first_turn_are_not_changes(runtime: Runtime, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "old.txt").write_text("old")
    session = await runtime.create(policy=FixedPolicy(default="allow"), needs_model=False, workspace=project)
    told: list[RecordedEvent] = []
    await session.execute("open('new.txt', 'w').write('new')")
    session.follow(told.append)
    points = [entry.event for entry in told if isinstance(entry.event, RestorePointMade)]
    assert [[change.path for change in point.changes] for point in points] == [[], ["new.txt"]]


async def test_f05_what_was_paid_stays_paid_after_a_rewind(runtime: Runtime) -> None:
    session = await three_turns(runtime)
    before = session.budget.spent
    await session.rewind(1)
    assert session.budget.spent.calls < before.calls
    assert session.budget.paid.calls == before.calls
    await session.execute("open('c.txt', 'w').write('c')")
    assert session.budget.paid.calls > before.calls
    paid = session.budget.paid
    await session.close()
    again = await runtime.resume(session.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert again.budget.paid == paid


async def test_f05_a_fork_after_a_commit_does_not_stage_it_again(runtime: Runtime) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    session = await runtime.create(policy=policy, needs_model=False)
    await session.execute("open('a.txt', 'w').write('a')\nopen('b.txt', 'w').write('b')")
    await session.commit("a.txt")
    fork = await runtime.fork(session.id, policy=policy, needs_model=False)
    assert files(fork) == {"a.txt": b"a"}
    assert [each.path for each in fork.proposals()] == ["b.txt"]
    await session.rewind(1)
    assert files(session) == {}, "a rewind to the turn takes the commit back"
    assert [each.path for each in session.proposals()] == ["a.txt", "b.txt"]


async def staged_turns(runtime: Runtime, *programs: str) -> Session:
    policy = FixedPolicy(default="allow", verdicts={"world.write": "stage"})
    session = await runtime.create(policy=policy, needs_model=False)
    for program in programs:
        await session.execute(program)
    return session


async def test_a_fork_and_an_undo_after_a_rejection_do_not_stage_it_again(runtime: Runtime) -> None:
    session = await staged_turns(runtime, "open('a.txt', 'w').write('a')\nopen('b.txt', 'w').write('b')")
    await session.reject("a.txt")
    fork = await runtime.fork(session.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert [each.path for each in fork.proposals()] == ["b.txt"]
    await session.execute("open('c.txt', 'w').write('c')")
    await session.undo()
    assert [each.path for each in session.proposals()] == ["b.txt"]
    await session.rewind(1)
    assert [each.path for each in session.proposals()] == ["a.txt", "b.txt"], (
        "a rewind takes the rejection back"
    )


async def test_an_undo_leaves_a_commit_of_older_changes_committed(runtime: Runtime) -> None:
    session = await staged_turns(runtime, "open('a.txt', 'w').write('one')", "1 + 1")
    await session.commit()
    plan = await session.undo()
    assert (plan.changes, plan.kept) == ((), ("a.txt",))
    assert files(session) == {"a.txt": b"one"}
    assert session.proposals() == ()
    assert len(session.history()) == 1
    await session.undo()
    assert files(session) == {}
    assert session.history() == ()


async def test_an_undo_takes_back_what_was_committed_of_the_turn(runtime: Runtime) -> None:
    session = await staged_turns(
        runtime,
        "open('a.txt', 'w').write('one')\nopen('b.txt', 'w').write('one')",
        "open('b.txt', 'w').write('two')\nopen('c.txt', 'w').write('two')",
    )
    await session.commit()
    assert {change.path for change in (await session.plan_undo()).changes} == {"b.txt", "c.txt"}
    await session.undo()
    assert files(session) == {"a.txt": b"one"}
    assert [(each.path, each.kind) for each in session.proposals()] == [("b.txt", "created")]


async def test_an_undo_leaves_what_was_committed_before_the_turn(runtime: Runtime) -> None:
    session = await staged_turns(runtime, "open('a.txt', 'w').write('one')")
    await session.commit()
    await session.execute("open('a.txt', 'w').write('two')")
    await session.commit()
    await session.undo()
    assert files(session) == {"a.txt": b"one"}
    assert session.proposals() == ()


@pytest.mark.parametrize("verdict", ["allow", "stage"])
async def test_a_planned_undo_names_files_that_someone_else_changed(
    runtime: Runtime, verdict: Literal["allow", "stage"]
) -> None:
    policy = FixedPolicy(default="allow", verdicts={"world.write": verdict})
    session = await runtime.create(policy=policy, needs_model=False)
    assert isinstance(session.workspace, FolderWorld)
    root = Path(session.workspace.root.real)
    await session.execute("open('a.txt', 'w').write('one')\nopen('b.txt', 'w').write('one')")
    if verdict == "stage":
        await session.commit()
    (root / "a.txt").write_text("edited before the turn")
    await session.execute("for name in 'abc':\n    open(f'{name}.txt', 'w').write('two')")
    if verdict == "stage":
        await session.commit()
    plan = await session.plan_undo()
    assert [change.path for change in plan.changes] == ["a.txt", "b.txt", "c.txt"]
    assert plan.by_others == ("a.txt",)
    (root / "c.txt").write_text("edited after the turn")
    (root / "d.txt").write_text("new")
    assert (await session.plan_undo()).by_others == ("a.txt", "c.txt", "d.txt")
