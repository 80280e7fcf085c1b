"""Pairs: a sender, a receiver and a thread. A pair is directed and has exactly one session.

The session id is derived from the pair and the roster's folder. Two concurrent first messages therefore claim the same
id, and the store lets one of them create the session. No table beside the journals could disagree with them.
"""

import re

from holdfast.core import EXTERNAL, Principal, SessionId, Value, digest
from holdfast.core.errors import InvalidInput

EXTERNAL_SENDER = "external"
"""The sender of messages that come from no team: a person, or a person's program."""
RESERVED = frozenset([EXTERNAL_SENDER, "person", "agent", "operator"])
MAX_NAME_LENGTH = 64

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]*")
_WRITTEN = re.compile(r"(?P<sender>\S+) -> (?P<receiver>\S+?)(?: #(?P<thread>\S+))?")


class Pair(Value):
    """One direction of messages between two teams. The default thread has no name."""

    sender: str
    receiver: str
    thread: str = ""

    def __str__(self) -> str:
        return f"{self.sender} -> {self.receiver}" + (f" #{self.thread}" if self.thread else "")

    @property
    def principal(self) -> Principal:
        """The principal recorded for the sender."""
        return EXTERNAL if self.sender == EXTERNAL_SENDER else Principal(f"team:{self.sender}")

    def has_same_teams(self, other: "Pair") -> bool:
        """Whether sender and receiver are the same, in any thread."""
        return (self.sender, self.receiver) == (other.sender, other.receiver)

    def session_id(self, folder: str) -> SessionId:
        """The id of the pair's session, for teams that keep their files in `folder`."""
        return SessionId(f"team-{digest([folder, self.sender, self.receiver, self.thread])[:32]}")

    @classmethod
    def parse(cls, text: str) -> "Pair | None":
        """Parse the text form of a pair; None if it is not one."""
        written = _WRITTEN.fullmatch(text)
        if written is None:
            return None
        return cls(sender=written["sender"], receiver=written["receiver"], thread=written["thread"] or "")


def check_name(text: object, what: str = "team name") -> str:
    """The name, if it is safe in a path, in a line of text and beside other names. Raises InvalidInput."""
    if not isinstance(text, str) or not _NAME.fullmatch(text) or len(text) > MAX_NAME_LENGTH or ".." in text:
        raise InvalidInput(
            f"{text!r} is not a valid {what}",
            hint=f"use letters, digits, '_', '-', '@' and dots, at most {MAX_NAME_LENGTH} of them",
        )
    return text


def check_thread(text: object) -> str:
    """The name of a thread; empty for the default thread. Raises InvalidInput."""
    return "" if text in (None, "") else check_name(text, "thread name")
