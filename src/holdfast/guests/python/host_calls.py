"""The calls of one run: made through the one callable, bounded, and answered from what is known after a wait.

Answers that are no values, as the exceptions that guest code sees.
"""

from typing import assert_never

import pydantic_monty as monty

from holdfast.core import Answer, Failed, Json, JsonObject, Parked, Refused, Returned, encode
from holdfast.guests.contract import OnCall
from holdfast.guests.python.limits import Bounds
from holdfast.guests.python.state import Progress

_CROSSING = frozenset(
    {
        "FileExistsError",
        "FileNotFoundError",
        "IsADirectoryError",
        "KeyError",
        "NotADirectoryError",
        "OSError",
        "PermissionError",
        "TimeoutError",
        "TypeError",
        "ValueError",
    }
)
_STANDS_FOR = {
    "BlockingIOError": "OSError",
    "InterruptedError": "OSError",
    "PathRefused": "PermissionError",
    "QuotaExceeded": "OSError",
    "ToolTimeout": "TimeoutError",
    "UnicodeDecodeError": "ValueError",
    "UnicodeEncodeError": "ValueError",
}


class GuestException(Exception):
    """An exception that is to be raised in the guest: its class by name, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    @property
    def crossing(self) -> monty.ExternalExceptionData:
        """The form in which it crosses into the interpreter."""
        return {"exc_type": self.kind, "message": self.message}  # type: ignore[typeddict-item]


def exception_of(answer: Refused | Failed) -> GuestException:
    """What the guest sees of a call that brought no value."""
    match answer:
        case Refused(reason=reason):
            return GuestException("PermissionError", reason)
        case Failed(error=error, reason=reason):
            kind = _STANDS_FOR.get(error, error)
            return GuestException(kind if kind in _CROSSING else "RuntimeError", reason)
        case _:
            assert_never(answer)


_MAX_ARGUMENTS = 8 << 20
_MAX_ANSWER = 64 << 20


class CallWaits(Exception):
    """A call waits for a person."""


class Calls:
    """Makes calls for the step that the run stands at; a step may make several."""

    def __init__(self, on_call: OnCall, bounds: Bounds, progress: Progress) -> None:
        self._on_call = on_call
        self._bounds = bounds
        self._progress = progress
        self._known: list[Answer] = []

    def know(self, answer: Answer) -> None:
        """The step begins again: it had answers already, and this one is for the call that waited."""
        self._known = [*self._progress.answers, answer]
        self._progress.answers = []

    def step_is_over(self) -> None:
        """The answers of the step are not needed any more."""
        self._progress.answers = []

    async def ask(self, operation: str, arguments: JsonObject) -> Json:
        """The value of a call. Raises GuestException, CallWaits or LimitReached."""
        answer = self._known.pop(0) if self._known else await self._made(operation, arguments)
        if isinstance(answer, Parked):
            raise CallWaits
        self._progress.answers.append(answer)
        match answer:
            case Returned(value=value):
                return _crossing(value)
            case Refused() | Failed():
                raise exception_of(answer)
            case _:
                assert_never(answer)

    async def _made(self, operation: str, arguments: JsonObject) -> Answer:
        size = len(encode(arguments))
        if size > _MAX_ARGUMENTS:
            told = f"the arguments of {operation} have {size} bytes, more than the {_MAX_ARGUMENTS} that a call may carry"
            raise GuestException("ValueError", told)
        with self._bounds.waiting():
            return await self._on_call(operation, arguments)


def _crossing(value: Json) -> Json:
    """A value that the interpreter can take. Raises GuestException."""
    try:
        size = len(encode(value))
    except (UnicodeEncodeError, RecursionError, TypeError) as error:
        raise GuestException("ValueError", f"the result cannot be given to Python code: {error}") from None
    if size > _MAX_ANSWER:
        raise GuestException(
            "ValueError", f"the result has {size} bytes, more than the {_MAX_ANSWER} that can be given"
        )
    return value
