"""Hunks of staged changes, decided by a person: on record, across restarts and crashes."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core.errors import CommitConflict
from holdfast.core.events import ProposalsSplit
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.world import HunkDecision, hunks_of, proposal_digest

BEFORE = "".join(f"{number}\n" for number in range(60))
AFTER = BEFORE.replace("3\n", "three\n", 1).replace("30\n", "thirty\n", 1).replace("\n50\n", "\nfifty\n", 1)
STAGING = FixedPolicy(default="stage", name="project")


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings(), servers=())
    yield started
    await started.close()


async def staged_session(runtime: Runtime, tmp_path: Path) -> Session:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text(BEFORE)
    session = await runtime.create(workspace=tmp_path / "work", policy=STAGING, needs_model=False)
    await session.execute(f"open('a.txt', 'w').write({AFTER!r})")
    return session


def decided(
    session: Session, *, accepted: tuple[int, ...] = (), rejected: tuple[int, ...] = ()
) -> HunkDecision:
    [proposal] = session.proposals()
    return HunkDecision(
        path=proposal.path, shown=proposal_digest(proposal), accepted=accepted, rejected=rejected
    )


def changed_lines(session: Session) -> list[str]:
    return [
        line
        for each in session.proposals()
        for hunk in hunks_of(each)
        for line in hunk.lines
        if line[0] in "+-"
    ]


async def test_accepted_hunks_are_committed_rejected_ones_dropped_and_the_rest_stays_after_a_restart(
    runtime: Runtime, tmp_path: Path
) -> None:
    session = await staged_session(runtime, tmp_path)
    assert await session.decide_hunks(decided(session, accepted=(1,), rejected=(2,))) == ("a.txt",)
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE.replace("3\n", "three\n", 1)
    assert changed_lines(session) == ["-50", "+fifty"]
    await session.close()
    session = await runtime.resume(session.id, policy=STAGING, needs_model=False)
    assert changed_lines(session) == ["-50", "+fifty"]
    await session.commit()
    assert (tmp_path / "work" / "a.txt").read_text() == AFTER.replace("thirty", "30")
    assert session.proposals() == ()


async def test_hunks_can_be_rejected_alone(runtime: Runtime, tmp_path: Path) -> None:
    session = await staged_session(runtime, tmp_path)
    assert await session.decide_hunks(decided(session, rejected=(1, 3))) == ()
    await session.close()
    session = await runtime.resume(session.id, policy=STAGING, needs_model=False)
    assert changed_lines(session) == ["-30", "+thirty"]
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE


@pytest.mark.parametrize("is_committed", [False, True])
async def test_after_a_crash_around_the_commit_every_hunk_is_committed_or_staged(
    runtime: Runtime, tmp_path: Path, is_committed: bool
) -> None:
    session = await staged_session(runtime, tmp_path)
    split = session._staged.split([decided(session, accepted=(2,))])
    parts, rests = session._staged.recorded(split)
    blobs = [*split.parts.values(), *split.rests.values()]
    await session._journal.append(ProposalsSplit(parts=parts, rests=rests), blobs=blobs)
    if is_committed:
        session._staged.apply_split(split)
    await session.close()
    session = await runtime.resume(session.id, policy=STAGING, needs_model=False)
    first, last = ["-3", "+three"], ["-50", "+fifty"]
    middle = [] if is_committed else ["-30", "+thirty"]
    assert changed_lines(session) == [*first, *middle, *last]
    await session.commit()
    assert (tmp_path / "work" / "a.txt").read_text() == AFTER


async def test_a_decision_about_another_version_changes_nothing(runtime: Runtime, tmp_path: Path) -> None:
    session = await staged_session(runtime, tmp_path)
    decision = decided(session, accepted=(1,))
    await session.execute(f"open('a.txt', 'w').write({BEFORE + 'more'!r})")
    seq = session.last_seq
    with pytest.raises(CommitConflict):
        await session.decide_hunks(decision)
    assert session.last_seq == seq
    assert (tmp_path / "work" / "a.txt").read_text() == BEFORE
