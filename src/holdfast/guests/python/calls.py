"""The calls of one run: made through the one callable, bounded, and answered from what is known after a wait."""

from typing import assert_never

from holdfast.core import Answer, Failed, Json, JsonObject, Parked, Refused, Returned, encode
from holdfast.guests.contract import OnCall
from holdfast.guests.python.bounds import Bounds
from holdfast.guests.python.failures import GuestException, exception_of
from holdfast.guests.python.progress import Progress

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
