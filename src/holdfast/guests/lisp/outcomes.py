"""How a run of Lisp ended, as an outcome: what 001 makes of the value of a turn."""

import msgspec

from holdfast.core import Error, Needs, Nonconverged, Ok, Outcome
from holdfast.guests.contract import Run


def outcome_of(run: Run) -> Outcome:
    """The outcome of a run: one that the program gave passes through, a plain value is ok, an error has its code."""
    match run.status:
        case "ok":
            return _given(run) or Ok(value=run.value)
        case "error":
            given = _given(run)
            return given if isinstance(given, Error) else Error(message=run.error, code="runtime-error")
        case "refused":
            return Error(message=run.error, code="syntax-error")
        case "limit":
            return Nonconverged(reason="budget", dimension=run.error.partition(":")[0])
        case "parked":
            return Needs(need="approval", description="a call waits for a person")
        case "lost":
            return Error(message=run.error or "the run was lost", code="lost")


def _given(run: Run) -> Outcome | None:
    """The outcome that the program itself made, if its value is one."""
    if not isinstance(run.value, dict) or "outcome" not in run.value:
        return None
    try:
        outcome: Outcome = msgspec.convert(run.value, Outcome)
    except msgspec.ValidationError:
        return None
    return outcome
