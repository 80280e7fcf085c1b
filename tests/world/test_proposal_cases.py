"""Numbered cases of proposals: staged, seen, committed all or nothing, and only by the host."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import FakeClock, Needs, Ok, Response, is_success
from holdfast.core.errors import CommitConflict, QuotaExceeded, SessionIsClosed
from holdfast.core.events import ProposalsCommitted, ProposalsRejected
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.world import FolderWorld, MemoryWorld, Quota, StagedWorld, UndoJournal, World

Bases = dict[str, Callable[[Path], World]]
BASES: Bases = {
    "memory": lambda folder: MemoryWorld(quota=Quota(bytes=40)),
    "folder": lambda folder: FolderWorld(folder, quota=Quota(bytes=40)),
}


class Stage:
    """A base with two files, and an overlay over it."""

    def __init__(self, base: World, undo: Path) -> None:
        base.write("a", b"old a")
        base.write("b", b"old b")
        self.base, self.staged = base, StagedWorld(base, undo=UndoJournal(undo))
        self.before = self.files(base)

    @staticmethod
    def files(world: World) -> dict[str, bytes]:
        return {path: world.read(path) for path in world.files()}


def w1(stage: Stage) -> None:
    stage.staged.write("a", b"new")
    assert (stage.staged.read("a"), stage.base.read("a")) == (b"new", b"old a")


def w2(stage: Stage) -> None:
    before = stage.base.fingerprint()
    stage.staged.write("a", b"new")
    assert stage.staged.fingerprint() != stage.base.fingerprint() == before


def w3(stage: Stage) -> None:
    stage.staged.delete("a")
    with pytest.raises(FileNotFoundError):
        stage.staged.read("a")
    assert stage.base.read("a") == b"old a"


def w4(stage: Stage) -> None:
    stage.staged.delete("a")
    stage.staged.write("a", b"again")
    assert stage.staged.read("a") == b"again"


def w5(stage: Stage) -> None:
    stage.staged.write("a", b"new")
    stage.staged.delete("b")
    stage.staged.commit()
    assert stage.files(stage.base) == {"a": b"new"}
    assert stage.staged.proposals() == ()


def w6(stage: Stage) -> None:
    stage.staged.write("a", b"new")
    stage.staged.delete("b")
    stage.staged.reject()
    assert stage.files(stage.base) == stage.files(stage.staged) == stage.before
    assert stage.staged.proposals() == ()


def w7(stage: Stage) -> None:
    first, second = stage.staged.write("a", b"one"), stage.staged.write("a", b"two")
    assert (first.before, first.after != second.after) == (second.before, True), "each write is reported"
    assert [proposal.path for proposal in stage.staged.proposals()] == ["a"]
    stage.staged.commit()
    assert stage.base.read("a") == b"two"


def w8(stage: Stage) -> None:
    stage.staged.write("a", b"new")
    stage.staged.write("c", b"new")
    stage.base.write("a", b"by other")
    with pytest.raises(CommitConflict) as refused:
        stage.staged.commit()
    assert refused.value.paths == ("a",)
    assert stage.files(stage.base) == stage.before | {"a": b"by other"}


def w9(stage: Stage) -> None:
    stage.staged.write("a", b"new")
    stage.staged.delete("b")
    stage.staged.write("c", b"x" * 20)
    stage.base.write("filler", b"x" * 25)  # now it is more than the base may hold
    before = stage.files(stage.base)
    with pytest.raises(QuotaExceeded):
        stage.staged.commit()
    assert stage.files(stage.base) == before


OVERLAY = {"W1": w1, "W2": w2, "W3": w3, "W4": w4, "W5": w5, "W6": w6, "W7": w7, "W8": w8, "W9": w9}


@pytest.mark.parametrize("kind", BASES)
@pytest.mark.parametrize("case", OVERLAY)
def test_a_case_of_the_overlay_holds(tmp_path: Path, case: str, kind: str) -> None:
    (tmp_path / "base").mkdir()
    OVERLAY[case](Stage(BASES[kind](tmp_path / "base"), tmp_path / "undo"))


STAGING = FixedPolicy(default="allow", verdicts={"world.write": "stage"})


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    yield started
    await started.close()


async def staging(runtime: Runtime) -> Session:
    session = await runtime.create(policy=STAGING, needs_model=False)
    await session.execute("open('a.txt', 'w').write('proposed')")
    assert [proposal.path for proposal in session.proposals()] == ["a.txt"]
    return session


async def test_w10_abort_drops_what_is_staged(runtime: Runtime) -> None:
    session = await staging(runtime)
    await session.abort()
    assert session.workspace.files() == ()
    assert session.proposals() == ()
    with pytest.raises(SessionIsClosed):
        await session.execute("1")


async def test_w11_reject_does_not_abort(runtime: Runtime) -> None:
    session = await staging(runtime)
    await session.reject()
    assert session.proposals() == ()
    assert await session.execute("1 + 1") == Ok(value=2)


@pytest.mark.parametrize("operation", ["world.commit", "session.commit_proposals"])
async def test_w12_no_call_of_a_guest_commits(runtime: Runtime, operation: str) -> None:
    session = await staging(runtime)
    outcome = await session.execute(f"{operation}()")
    assert not isinstance(outcome, Ok)
    assert session.workspace.files() == ()
    assert [proposal.path for proposal in session.proposals()] == ["a.txt"]


@pytest.mark.parametrize("policy", ["safe-edit", "project"])
async def test_f16_a_guest_commits_after_the_yes_of_a_person(runtime: Runtime, policy: str) -> None:
    session = await runtime.create(policy=policy, needs_model=False, sandbox="lisp")
    await session.execute('(world/write "src/a.txt" "new")')
    assert isinstance(await session.execute("(session/commit-proposals!)"), Needs)
    [escalation] = session.escalations()
    assert session.workspace.files() == (), "nothing is committed before the yes"
    await session.resolve(escalation.id, Response(verdict="approve"))
    outcome = await session.advance()
    assert outcome is not None
    assert is_success(outcome)
    assert session.workspace.files() == ("src/a.txt",)
    assert session.proposals() == ()


async def test_f16_a_no_to_a_commit_leaves_the_proposals_staged(runtime: Runtime) -> None:
    session = await staging(runtime)
    assert isinstance(await session.execute("session.commit_proposals()"), Needs)
    [escalation] = session.escalations()
    assert escalation.decision.rule == "requires-approval", "even a policy that allows it asks"
    await session.resolve(escalation.id, Response(verdict="deny"))
    await session.advance()
    assert session.workspace.files() == ()
    assert [proposal.path for proposal in session.proposals()] == ["a.txt"]


@pytest.mark.parametrize("operation", ["world.withdraw()", "session.rollback_proposals()"])
async def test_what_a_guest_withdraws_stays_withdrawn_after_a_restart(
    runtime: Runtime, operation: str
) -> None:
    session = await staging(runtime)
    listed = await session.execute("[each['path'] for each in world.proposals()]")
    assert listed == Ok(value=["a.txt"])
    assert await session.execute(operation) == Ok(value=["a.txt"])
    await session.close()
    again = await runtime.resume(session.id, policy=STAGING, needs_model=False)
    assert again.proposals() == ()


async def test_w14_proposals_and_what_became_of_them_are_on_record(runtime: Runtime) -> None:
    session = await staging(runtime)
    await session.commit()
    await session.execute("open('b.txt', 'w').write('proposed')")
    await session.reject()
    recorded = await runtime.store.read(session.id)
    committed = [each.event for each in recorded if isinstance(each.event, ProposalsCommitted)]
    rejected = [each.event for each in recorded if isinstance(each.event, ProposalsRejected)]
    assert [change.path for event in committed for change in event.changes] == ["a.txt"]
    assert [path for event in rejected for path in event.paths] == ["b.txt"]
    writes = session.audit(operation="world.write")
    assert [entry.decision.verdict for entry in writes] == ["stage", "stage"]
