"""How a run of Lisp ended, as an outcome of its turn."""

import msgspec

from holdfast.core import Error, Json, Needs, Nonconverged, Ok, Outcome
from holdfast.guests.contract import Run


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
