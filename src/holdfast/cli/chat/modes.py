"""The modes of a chat, switched by Shift-Tab: ask, accept edits, plan.

`ask` is the policy as configured. `edits` is a setting of this chat: what a turn staged is committed when it ends. `plan` is the named
policy `safe-analysis`, which changes nothing. No mode allows a call that the policy does not.
"""

import asyncio
from collections.abc import Collection
from typing import Literal, get_args

from holdfast.core.events import (
    CallSettled,
    CodePosted,
    MessagePosted,
    RecordedEvent,
    SessionOpened,
    SessionReconfigured,
)
from holdfast.session import Session
from holdfast.world import Proposal

Mode = Literal["ask", "edits", "plan"]
MODES: tuple[Mode, ...] = get_args(Mode)
LABELS: dict[Mode, str] = {"ask": "ask", "edits": "accept edits", "plan": "plan, read-only"}
PLAN_POLICY = "safe-analysis"
PLAN_REQUEST = "\n\n(Plan mode: look, but change nothing. End with a numbered plan of the changes.)"
GO_REQUEST = "Carry out the plan."


class ModeTracker:
    """Follows a session to know its mode, and the policy to return to after a plan, also in a resumed session."""

    def __init__(self) -> None:
        self.accepts_edits = False
        self.usual_policy = ""
        self.staged_in_turn: set[str] = set()
        """What the last turn staged, by path."""
        self._policy = ""

    def __call__(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case SessionOpened() | SessionReconfigured() if event.policy:
                self._policy = event.policy
                if self._policy != PLAN_POLICY:
                    self.usual_policy = self._policy
            case MessagePosted() | CodePosted():
                self.staged_in_turn.clear()
            case CallSettled():
                self.staged_in_turn.update(change.path for change in event.changes if change.is_staged)
            case _:
                pass

    @property
    def mode(self) -> Mode:
        """The mode. A session that was opened with the read-only policy has no other policy to return to, so it asks."""
        if self._policy == PLAN_POLICY and self.usual_policy:
            return "plan"
        return "edits" if self.accepts_edits else "ask"


async def commit_edits(session: Session, staged_in_turn: Collection[str]) -> tuple[str, ...]:
    """Commit what the turn staged and may be committed unseen, and return its paths. The rest stays staged. Raises CommitConflict."""
    proposals = await asyncio.to_thread(session.proposals)
    held = [each.path for each in proposals if _must_be_seen(each)]
    paths = [
        each.path
        for each in proposals
        if each.path in staged_in_turn
        and not _must_be_seen(each)
        and not any(path.startswith(f"{each.path}/") for path in held)
    ]
    # INVARIANT: every path is named, because naming none would commit all, and none of them is one that must be seen.
    return await session.commit(*paths) if paths else ()


def _must_be_seen(proposal: Proposal) -> bool:
    return bool(proposal.asks) or proposal.runs_when is not None
