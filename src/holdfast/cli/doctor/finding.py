"""One line of the punch list."""

from typing import Literal

from holdfast.core import Value

State = Literal["ok", "note", "bad"]


class CheckResult(Value):
    """What was looked at, how it is, and how to mend it. A note works, but less well than it could."""

    part: str
    state: State
    told: str
    fix: str = ""
