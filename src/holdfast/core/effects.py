"""Effects: what a program did to files in its sandbox, and what became of it once the policy had judged it."""

from holdfast.core.decisions import Verdict
from holdfast.core.tools import Change, FileEffect
from holdfast.core.values import Value


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
