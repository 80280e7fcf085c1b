"""The result of one check."""

from typing import Literal

from holdfast.core import Value

State = Literal["ok", "note", "bad"]


class CheckResult(Value):
    """What was checked, its state, and how to fix it. A note works, but less well than it could."""

    part: str
    state: State
    detail: str
    fix: str = ""
