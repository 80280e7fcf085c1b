"""How a turn or a call ended. An outcome is a value; a failed turn is not an exception."""

from collections.abc import Callable
from typing import Literal, TypeGuard

import msgspec

from holdfast.core.values import Json, Value


class Ok(Value, tag_field="outcome", tag="ok"):
    """Success."""

    value: Json = None


class Proposed(Value, tag_field="outcome", tag="proposed"):
    """Success, with staged changes to commit or reject."""

    value: Json = None
    proposals: tuple[str, ...] = ()


class Needs(Value, tag_field="outcome", tag="needs"):
    """Blocked until it gets evidence, a different question, a tool, a clarification or an approval."""

    need: Literal["evidence", "reframing", "primitive", "clarification", "approval"]
    description: str
    context: Json = None


class Nonconverged(Value, tag_field="outcome", tag="nonconverged"):
    """Stopped before it was complete; `value` is the partial result. It can continue if the limit is raised."""

    value: Json = None
    iterations: int = 0
    reason: Literal["budget", "max-iterations", "cancelled"] = "budget"
    dimension: str = ""


class Cycle(Value, tag_field="outcome", tag="cycle"):
    """Returned to an earlier state."""

    value: Json = None
    length: int = 0
    signatures: tuple[str, ...] = ()


class Error(Value, tag_field="outcome", tag="error"):
    """Failure. `code` is stable; `hint` says what to do next."""

    message: str
    code: str
    hint: str | None = None
    is_recoverable: bool = True


Outcome = Ok | Proposed | Needs | Nonconverged | Cycle | Error


def read_outcome(value: Json) -> Outcome | None:
    """Parse the outcome that a program returned as its value; None if the value is plain data."""
    if not isinstance(value, dict) or "outcome" not in value:
        return None
    try:
        return msgspec.convert(value, Outcome)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return None


def is_success(outcome: Outcome) -> TypeGuard[Ok | Proposed]:
    """Whether the outcome is a success."""
    return isinstance(outcome, Ok | Proposed)


def is_blocked(outcome: Outcome) -> bool:
    """Whether the outcome needs input or is a failure."""
    return isinstance(outcome, Needs | Error)


def bind(outcome: Outcome, then: Callable[[Json], Outcome]) -> Outcome:
    """Apply `then` to the value of an `Ok`; return any other outcome, also a proposed one, unchanged."""
    return then(outcome.value) if isinstance(outcome, Ok) else outcome
