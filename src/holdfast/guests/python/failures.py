"""Answers that are no values, as the exceptions that guest code sees."""

from typing import assert_never

import pydantic_monty as monty

from holdfast.core import Failed, Refused

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
