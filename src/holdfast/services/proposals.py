"""Staged changes of a session, as a person chooses among them: shown, committed or rejected."""

from collections.abc import Sequence
from typing import Literal, assert_never

from holdfast.core import PERSON, Principal, Value
from holdfast.core.errors import InvalidInput
from holdfast.session import Session
from holdfast.world import HunkDecision, Proposal, StagedWorld

ProposalAction = Literal["commit", "reject"]


class DecidedProposals(Value, omit_defaults=False):
    """What was committed or rejected, and what is still staged because it needs approval by name."""

    action: ProposalAction
    paths: tuple[str, ...]
    asking: tuple[str, ...]


def choose_proposals(staged: Session | StagedWorld, paths: Sequence[str] = ()) -> tuple[Proposal, ...]:
    """The proposals for these paths, or all. Raises InvalidInput if a path has none.

    A session that another process holds can be looked at as its staged world.
    """
    files = staged.workspace if isinstance(staged, Session) else staged
    wanted = {files.resolve(path) for path in paths}
    chosen = tuple(each for each in staged.proposals() if not wanted or each.path in wanted)
    if wanted - {each.path for each in chosen}:
        raise InvalidInput(
            "some of these paths have no proposal", hint="list them with: holdfast proposals show"
        )
    return chosen


async def decide_proposals(
    session: Session, action: ProposalAction, paths: Sequence[str] = ()
) -> DecidedProposals:
    """Commit or reject the proposals for these paths, or all. Raises CommitConflict."""
    match action:
        case "commit":
            done = await session.commit(*paths)
            asking = tuple(each.path for each in session.proposals() if each.asks)
        case "reject":
            done, asking = await session.reject(*paths), ()
        case _:
            assert_never(action)
    return DecidedProposals(action=action, paths=done, asking=asking)


async def decide_hunks(
    session: Session, decisions: Sequence[HunkDecision], *, principal: Principal = PERSON
) -> DecidedProposals:
    """Commit the accepted hunks, drop the rejected ones, keep the others staged. Raises CommitConflict."""
    done = await session.decide_hunks(*decisions, principal=principal)
    asking = tuple(each.path for each in session.proposals() if each.asks)
    return DecidedProposals(action="commit", paths=done, asking=asking)
