"""What goes wrong in a Lisp program.

LispTrouble
├── Fault          the program did something wrong; `try` turns it into an error outcome
│   └── Malformed  the text is no program; where it is found before anything ran, the code is refused
├── LimitReached   a limit of the run; nothing in the program can catch it
├── BudgetSpent    a `with-budget` has nothing left; it ends there, as a nonconverged outcome (in `budgets`)
└── Crowded        what is about to be made may not fit; memory is looked at, and it is tried again

None of these leaves the package: the guest turns each into a `Run`.

Where something stands in the source.

How a run of Lisp ended, as an outcome of its turn.
"""

from typing import NamedTuple

import msgspec

from holdfast.core import Error, Json, Needs, Nonconverged, Ok, Outcome
from holdfast.guests.contract import Run


class Place(NamedTuple):
    """Line and column, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class LispTrouble(Exception):
    """Base of everything a running program can stumble over."""


class LispError(LispTrouble):
    """The program did something wrong; `code` is stable."""

    def __init__(self, code: str, message: str, *, place: Place | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.place = code, message, place
        self.trace: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return "\n".join((f"{where}{self.code}: {self.message}", *self.trace))


class Malformed(LispError):
    """The text is no program: a parenthesis, a string or a special form is not as it must be."""

    def __init__(self, message: str, *, place: Place | None = None) -> None:
        super().__init__("syntax-error", message, place=place)


class LimitReached(LispTrouble):
    """A limit of the run; `limit` is the field of GuestLimits that it is about."""

    def __init__(self, limit: str, message: str) -> None:
        super().__init__(f"{limit}: {message}")
        self.limit = limit


class Crowded(LispTrouble):
    """What is about to be made may not fit: look at the memory in use, then try again."""


def outcome_of(run: Run) -> Outcome:
    """The outcome of a run: one that the program gave passes through, a plain value is ok, an error has its code."""
    match run.status:
        case "ok":
            return outcome_in(run.value) or Ok(value=run.value)
        case "error":
            given = outcome_in(run.value)
            return given if isinstance(given, Error) else Error(message=run.error, code="runtime-error")
        case "refused":
            return Error(message=run.error, code="syntax-error")
        case "limit":
            return Nonconverged(reason="budget", dimension=run.error.partition(":")[0])
        case "parked":
            return Needs(need="approval", description="a call waits for a person")
        case "lost":
            return Error(message=run.error or "the run was lost", code="lost")


def outcome_in(value: Json) -> Outcome | None:
    """The outcome that a program itself made, if the value of its run is one."""
    if not isinstance(value, dict) or "outcome" not in value:
        return None
    try:
        outcome: Outcome = msgspec.convert(value, Outcome)
    except msgspec.ValidationError:
        return None
    return outcome
