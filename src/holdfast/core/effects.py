"""Effects: what a program did to files in its sandbox, and what became of it once the policy had judged it.

A symlink is a file with the mode LINK_MODE whose content is its target, as in git.
"""

from holdfast.core.decisions import Verdict
from holdfast.core.tools import Change, FileEffect
from holdfast.core.values import Value

LINK_MODE = 0o120000
"""The mode of a symlink in effects, changes and staged files."""


class JudgedEffect(Value):
    """What a program did to a file, and what the policy decided about it."""

    effect: FileEffect = FileEffect()
    verdict: Verdict = "deny"
    rule: str = ""
    reason: str = ""


class SettledEffects(Value):
    """What became of the effects of a program: each with its verdict, and the changes of the workspace."""

    judged: tuple[JudgedEffect, ...] = ()
    """An effect that was allowed and could not be written is denied here, with the reason."""
    changes: tuple[Change, ...] = ()
    bytes_written: int = 0


def link_problem(path: str, target: str) -> str:
    """Why a new symlink at a normal path might lead out of the workspace, by its text alone; empty if it stays inside.

    `..` may only come first: after a name it would be relative to wherever a symlink of that name leads.
    """
    if not target:
        return "has no target"
    if target.startswith("/"):
        return "has an absolute target"
    parts = [part for part in target.split("/") if part not in ("", ".")]
    rising = next((place for place, part in enumerate(parts) if part != ".."), len(parts))
    if ".." in parts[rising:]:
        return "has a target with '..' after a name"
    if rising > path.count("/"):
        return "leads out of the workspace"
    return ""


def link_destination(path: str, target: str) -> str:
    """The normal path that a symlink names, for a target without a `link_problem`; `.` is the workspace."""
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."
