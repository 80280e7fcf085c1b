"""The calls of one run: sent through `on_call`, counted, and answered from known answers when a stop is replayed.

A refused or failed call becomes an exception that guest code can catch.
"""

from typing import assert_never

import pydantic_monty as monty

from holdfast.core import (
    Answer,
    Failed,
    Json,
    JsonObject,
    Parked,
    Refused,
    Returned,
    encode,
    off_loop,
    text_bytes,
)
from holdfast.guests.contract import OnCall
from holdfast.guests.python.limits import LimitTracker
from holdfast.guests.python.state import RunProgress

_MAX_ARGUMENT_BYTES = 256 << 20
_MAX_RESULT_BYTES = 256 << 20
"""A file of the largest size that `world.read` returns fits, also in base64."""
_PIECE = 1 << 20
_RAISED_BY_NAME = frozenset(
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
_RAISED_AS = {
    "BlockingIOError": "OSError",
    "InterruptedError": "OSError",
    "PathRefused": "PermissionError",
    "QuotaExceeded": "OSError",
    "ToolTimeout": "TimeoutError",
    "UnicodeDecodeError": "ValueError",
    "UnicodeEncodeError": "ValueError",
}


class GuestException(Exception):
    """An exception to raise in the guest: the name of its class, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message

    @property
    def as_monty(self) -> monty.ExternalExceptionData:
        """The form that the interpreter accepts."""
        return {"exc_type": self.kind, "message": self.message}  # type: ignore[typeddict-item]


class CallParked(Exception):
    """A call waits for an approval."""


class HostCalls:
    """Makes the calls of one run. One stop of the interpreter may make several."""

    def __init__(self, on_call: OnCall, limits: LimitTracker, progress: RunProgress) -> None:
        self._on_call = on_call
        self._limits = limits
        self._progress = progress
        self._known: list[Answer] = []

    def replay(self, answer: Answer) -> None:
        """Replay the current stop: use its earlier answers, and this one for the call that waited."""
        self._known = [*self._progress.answers, answer]
        self._progress.answers = []

    def forget_answers(self) -> None:
        """Discard the answers of a stop that is finished."""
        self._progress.answers = []

    async def call(self, operation: str, arguments: JsonObject) -> Json:
        """The value of a call. Raises GuestException, CallParked or LimitReached."""
        answer = self._known.pop(0) if self._known else await self._call_host(operation, arguments)
        if isinstance(answer, Parked):
            raise CallParked
        self._progress.answers.append(answer)
        match answer:
            case Returned(value=value):
                return await off_loop(value, lambda: _check_result_size(value))
            case Refused() | Failed():
                raise _to_exception(answer)
            case _:
                assert_never(answer)

    async def _call_host(self, operation: str, arguments: JsonObject) -> Answer:
        size = await off_loop(arguments, lambda: text_bytes(arguments))
        limit = min(self._limits.value_bytes, _MAX_ARGUMENT_BYTES)
        if size > limit:
            raise GuestException(
                "ValueError",
                f"the arguments of {operation} have {size} bytes; a call may carry at most {limit} "
                "(code.value_bytes in config.toml)",
            )
        with self._limits.waiting():
            return await self._on_call(operation, arguments)


def _to_exception(answer: Refused | Failed) -> GuestException:
    match answer:
        case Refused(reason=reason):
            return GuestException("PermissionError", reason)
        case Failed(error=error, reason=reason):
            kind = _RAISED_AS.get(error, error)
            return GuestException(kind if kind in _RAISED_BY_NAME else "RuntimeError", reason)
        case _:
            assert_never(answer)


def _check_result_size(value: Json) -> Json:
    """The value, if the interpreter can take it. Raises GuestException."""
    try:
        size = _utf8_bytes(value) if isinstance(value, str) else len(encode(value))
    except (UnicodeEncodeError, RecursionError, TypeError) as error:
        raise GuestException("ValueError", f"the result cannot be given to Python code: {error}") from None
    if size > _MAX_RESULT_BYTES:
        raise GuestException(
            "ValueError",
            f"the result has {size} bytes; at most {_MAX_RESULT_BYTES} can be given to Python code",
        )
    return value


def _utf8_bytes(text: str) -> int:
    """The size of a text, without a copy of it. Raises UnicodeEncodeError."""
    return sum(len(text[at : at + _PIECE].encode()) for at in range(0, len(text), _PIECE))
