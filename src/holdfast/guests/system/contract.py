"""What the system engine needs from the session: a Python process in the command sandbox, judged and settled like a program."""

from collections.abc import Collection
from typing import Protocol

from holdfast.core import Answer, Value
from holdfast.guests.contract import OnCall


class InterpreterGone(Exception):
    """The process of an interpreter has ended, or never belonged to this process of the host."""


class InterpreterEnd(Value):
    """How the process of an interpreter ended, and what became of the files that it changed."""

    signal: str = ""
    stopped: str = ""
    """Why the sandbox stopped it, such as its use of memory."""
    refused: tuple[str, ...] = ()
    """Changes that were dropped, each with the reason."""


class Interpreter(Protocol):
    """A Python process over the staged workspace, connected by a socket."""

    async def send(self, data: bytes) -> None:
        """Write to its socket. Raises InterpreterGone."""
        ...

    async def read(self, length: int) -> bytes | bytearray:
        """Read exactly this many bytes from its socket. Raises InterpreterGone."""
        ...

    @property
    def printed(self) -> bytes:
        """What it and the programs that it started have printed so far, up to a limit."""
        ...


class Interpreters(Protocol):
    """Starts and ends the interpreters of a session."""

    async def start(self, code: str, on_call: OnCall) -> Interpreter | Answer:
        """Start an interpreter for this code: a call that is judged. Returns its answer if there is no interpreter.

        Raises InterpreterGone if the call is on record but its process is not there.
        """
        ...

    async def end(
        self, interpreter: Interpreter, on_call: OnCall, *, is_dead: bool, unfinished: Collection[str] = ()
    ) -> Answer:
        """End an interpreter and settle what it changed: a call that is judged.

        If `is_dead`, its code did not come to an end, and what it changed is dropped: a file may be half-written. Else only what it
        did not finish is.
        """
        ...

    def ended(self, answer: Answer) -> InterpreterEnd:
        """What the answer to `end` says."""
        ...

    async def kill(self, interpreter: Interpreter) -> None:
        """End an interpreter and drop what it changed."""
        ...
