"""Errors of Lisp programs, their places in the source, and the outcome of a run.

LispException
├── LispError            an error of the program; `try` turns it into an error outcome
│   └── LispSyntaxError  the text is not a program; if nothing has run yet, the code is refused
├── LimitReached         a limit of the run; the program cannot catch it
├── BudgetExhausted      a `with-budget` has nothing left and ends as a nonconverged outcome (in `vm.limits`)
└── MemoryCheckNeeded    an allocation may not fit; the machine measures memory and tries again

None of these leaves the package: the guest turns each into a `Run`.
"""

from typing import NamedTuple

import msgspec

from holdfast.core import Error, Json, Needs, Nonconverged, Ok, Outcome
from holdfast.guests.contract import Run


class SourcePlace(NamedTuple):
    """A place in the source: line and column, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class LispException(Exception):
    """Base class of everything that interrupts a running program."""


class LispError(LispException):
    """An error of the program; `code` is stable."""

    def __init__(self, code: str, message: str, *, place: SourcePlace | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.place = code, message, place
        self.trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return "\n".join((f"{where}{self.code}: {self.message}", *self.trace))


class LispSyntaxError(LispError):
    """The text is not a program: a parenthesis, a string or a special form is malformed."""

    def __init__(self, message: str, *, place: SourcePlace | None = None) -> None:
        super().__init__("syntax-error", message, place=place)


class LimitReached(LispException):
    """The run reached a limit; `limit` is the field of GuestLimits."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(f"{limit}: {message}")
        self.limit = limit


class MemoryCheckNeeded(LispException):
    """An allocation may not fit: measure the memory in use, then try again."""


def outcome_of(run: Run) -> Outcome:
    """The outcome of a run. An outcome that the program returned is passed through; any other value is ok."""
    match run.status:
        case "ok":
            return outcome_in(run.value) or Ok(value=run.value)
        case "error":
            returned = outcome_in(run.value)
            return returned if isinstance(returned, Error) else Error(message=run.error, code="runtime-error")
        case "refused":
            return Error(message=run.error, code="syntax-error")
        case "limit":
            return Nonconverged(reason="budget", dimension=run.error.partition(":")[0])
        case "parked":
            return Needs(need="approval", description="a call needs approval")
        case "lost":
            return Error(message=run.error or "the run was lost", code="lost")


def outcome_in(value: Json) -> Outcome | None:
    """The outcome that the program returned, if its value is one."""
    if not isinstance(value, dict) or "outcome" not in value:
        return None
    try:
        outcome: Outcome = msgspec.convert(value, Outcome)
    except msgspec.ValidationError:
        return None
    return outcome
