"""Pairs: who talks to whom, in which thread. A pair is directed, and has exactly one session.

The session's id follows from the pair and the folder of the roster, so two first messages at once claim the same id and
the store lets one of them create it. There is no table beside the journals that could disagree with them.
"""

import re

from holdfast.core import EXTERNAL, Principal, SessionId, Value, digest
from holdfast.core.errors import InvalidInput

EXTERNAL_SENDER = "external"
"""Who asks when it is no team: a person, or a program of theirs."""
RESERVED = frozenset([EXTERNAL_SENDER, "person", "agent", "operator"])
MAX_NAME_LENGTH = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_WRITTEN = re.compile(r"(?P<sender>\S+) -> (?P<receiver>\S+?)(?: #(?P<thread>\S+))?")


class Pair(Value):
    """One direction of talk between two teams; the unnamed thread is the usual one."""

    sender: str
    receiver: str
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}" + (f" #{self.thread}" if self.thread else "")

    @property
    def principal(self) -> Principal:
        """The sender, as the record names it."""
        return EXTERNAL if self.sender == EXTERNAL_SENDER else Principal(f"team:{self.sender}")

    def session_id(self, folder: str) -> SessionId:
        """The id of the pair's session, in the company whose folder this is."""
        return SessionId(f"team-{digest([folder, self.sender, self.receiver, self.thread])[:32]}")

    @classmethod
    def parse(cls, text: str) -> "Pair | None":
        """The pair that was written as this; None where it was none."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            return None
        return cls(sender=written["sender"], receiver=written["receiver"], thread=written["thread"] or "")


def check_name(text: object, what: str = "name of a team") -> str:
    """The name, or InvalidInput: what passes here is safe in a path, in a line and beside other names."""
    if not isinstance(text, str) or not _NAME.fullmatch(text) or len(text) > MAX_NAME_LENGTH or ".." in text:
        raise InvalidInput(
            f"{text!r} is no {what}",
            hint=f"use letters, digits, '_', '-' and dots, at most {MAX_NAME_LENGTH} of them",
        )
    return text


def check_thread(text: object) -> str:
    """The name of a thread; empty is the usual one."""
    return "" if text in (None, "") else check_name(text, "name of a thread")
