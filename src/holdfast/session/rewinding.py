"""Going back: the workspace after each turn as a restore point, and a session brought back to one.

Chat, staged changes, budget and grants follow from the journal by themselves; the files are brought back here. What has
left the workspace (mail, pushes, other machines) cannot be undone, and is named.
"""

from collections.abc import Iterable

from holdfast.core import Change, Value
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    Recorded,
    RestorePointMade,
    TurnEnded,
)
from holdfast.core.fold import effective

_UNDONE_BY_US = ("world", "session", "llm", "person")


class RewindPlan(Value):
    """What going back to a turn would mean."""

    turn: int
    seq: int
    manifest: str
    changes: tuple[Change, ...] = ()
    """What would happen to files."""
    left: tuple[str, ...] = ()
    """Files that stay as they are, because their content was not kept."""
    stays: tuple[str, ...] = ()
    """Calls since then whose effects cannot be undone."""


def plan_rewind(recorded: Iterable[Recorded], turn: int) -> RewindPlan:
    """Where a turn ended, and what was done since that stays done. Raises InvalidInput for a turn that cannot be gone to."""
    counted = effective(recorded)
    # A turn that went on after its budget was raised has ended more than once.
    ends = [e.seq for e in counted if isinstance(e.event, TurnEnded) and e.event.turn == turn]
    ended = max(ends, default=0)
    points = (e for e in counted if isinstance(e.event, RestorePointMade) and e.event.turn == turn)
    point = next((e for e in points if e.seq > ended), None)
    if point is None or not isinstance(point.event, RestorePointMade):
        raise InvalidInput(
            f"there is no restore point of turn {turn}",
            hint="holdfast rewind SESSION, or /rewind, lists the turns that can be gone to",
        )
    settled = {
        e.event.call for e in counted if isinstance(e.event, CallSettled) and e.event.status != "error"
    }
    stays = tuple(
        f"{e.event.call.id} {e.event.call.operation}"
        for e in counted
        if e.seq > point.seq
        and isinstance(e.event, CallIntended)
        and e.event.call.id in settled
        and e.event.call.operation.partition(".")[0] not in _UNDONE_BY_US
    )
    return RewindPlan(turn=turn, seq=point.seq, manifest=point.event.manifest, stays=stays)


def last_point(recorded: Iterable[Recorded]) -> Recorded | None:
    """The newest restore point that still counts."""
    points = [entry for entry in effective(recorded) if isinstance(entry.event, RestorePointMade)]
    return points[-1] if points else None
