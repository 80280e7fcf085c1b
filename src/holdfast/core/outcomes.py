"""How a turn or a call ended. An outcome is a value: a turn that went wrong is not an exception."""

from collections.abc import Callable
from typing import Literal

import msgspec

from holdfast.core.values import Json, Value


class Ok(Value, tag_field="outcome", tag="ok"):
    """It is done."""

    value: Json = None


class Proposed(Value, tag_field="outcome", tag="proposed"):
    """It is done, and changes wait to be committed or rejected."""

    value: Json = None
    proposals: tuple[str, ...] = ()


class Needs(Value, tag_field="outcome", tag="needs"):
    """It cannot go on without something from outside: evidence, another framing, a tool, a clarification, an approval."""

    need: Literal["evidence", "reframing", "primitive", "clarification", "approval"]
    description: str
    context: Json = None


class Nonconverged(Value, tag_field="outcome", tag="nonconverged"):
    """It stopped before it was done; `value` is how far it came. It can go on when the limit is raised."""

    value: Json = None
    iterations: int = 0
    reason: Literal["budget", "max-iterations", "cancelled"] = "budget"
    dimension: str = ""


class Cycle(Value, tag_field="outcome", tag="cycle"):
    """It came back to where it was before."""

    value: Json = None
    length: int = 0
    signatures: tuple[str, ...] = ()


class Error(Value, tag_field="outcome", tag="error"):
    """It went wrong; `code` is stable, `hint` names a way out."""

    message: str
    code: str
    hint: str | None = None
    is_recoverable: bool = True


Outcome = Ok | Proposed | Needs | Nonconverged | Cycle | Error


def read_outcome(value: Json) -> Outcome | None:
    """The outcome that a program gave as its value; None where the value is plain data."""
    if not isinstance(value, dict) or "outcome" not in value:
        return None
    try:
        return msgspec.convert(value, Outcome)  # type: ignore[no-any-return]
    except msgspec.ValidationError:
        return None


def is_success(outcome: Outcome) -> bool:
    """Whether it is done."""
    return isinstance(outcome, Ok | Proposed)


def is_blocked(outcome: Outcome) -> bool:
    """Whether it waits for someone, or failed."""
    return isinstance(outcome, Needs | Error)


def bind(outcome: Outcome, then: Callable[[Json], Outcome]) -> Outcome:
    """Go on with the value of an `Ok`; every other outcome passes unchanged, a proposed one too."""
    return then(outcome.value) if isinstance(outcome, Ok) else outcome
