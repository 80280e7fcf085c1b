"""What several changes come to, file by file: a file that was made and removed again was never there."""

from collections.abc import Iterable
from typing import Literal

from holdfast.core import Change


def summed_up(changes: Iterable[Change]) -> tuple[Change, ...]:
    """One change for each file that is different at the end, sorted by path; what is only staged is left out."""
    whole: dict[str, Change] = {}
    for change in changes:
        if change.is_staged:
            continue
        first = whole.get(change.path)
        whole[change.path] = _joined(first.before if first else change.before, change)
    return tuple(change for _, change in sorted(whole.items()) if change.before != change.after)


def _joined(before: str | None, last: Change) -> Change:
    kind: Literal["created", "modified", "deleted"] = (
        "created" if before is None else "deleted" if last.after is None else "modified"
    )
    return Change(path=last.path, kind=kind, before=before, after=last.after, mode=last.mode)
