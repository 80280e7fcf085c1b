"""Two engines in one: code goes to the quick one, and to the complete one where the quick one does not have what it needs.

The change is made only when the first engine has refused the code before anything ran, so no effect can happen twice.
Code that is wrong (a misspelt name, a tool called with the wrong arguments) goes back to its author, not to the other
engine. A session changes once: from then on all its code runs in the second engine, which took over the plain data
among the variables. Two sets of variables side by side would contradict each other.
"""

from typing import Protocol

import msgspec

from holdfast.core import Answer, Value
from holdfast.core.errors import SnapshotRefused
from holdfast.guests.contract import Capabilities, Engine, Guest, OnCall, Run, RunRequest
from holdfast.guests.python.state import ExportedVariables, refuse_all, taking_over
from holdfast.guests.tool_stubs import python_name

_FIRST, _SECOND = b"1", b"2"


class _Choice(Value):
    """Why a run is in its engine, and what of the session's variables is not."""

    reason: str
    left: tuple[str, ...] = ()

    def told(self, engine: str) -> str:
        """What the author of the code has to know, as a line of its output."""
        if not self.left:
            return ""
        return f"[this code runs in {engine} from now on; define again what did not come along: {', '.join(self.left)}]\n"


_BEGAN_THERE = _Choice(reason="the run began there")


class FirstGuest(Guest, Protocol):
    """A guest that can hand its plain data to another engine."""

    async def variables(self) -> ExportedVariables:
        """Those variables that are plain data."""
        ...


class FirstEngine(Protocol):
    """An engine whose guests can be left."""

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        ...

    def guest(self) -> FirstGuest:
        """A fresh guest."""
        ...

    async def close(self) -> None:
        """Stop every worker."""
        ...


class AutoEngine:
    """Makes guests that begin in `python` and move to `wasi` when they must."""

    def __init__(self, *, python: FirstEngine, wasi: Engine) -> None:
        self._first = python
        self._second = wasi

    @property
    def capabilities(self) -> Capabilities:
        first, second = self._first.capabilities, self._second.capabilities
        return Capabilities(
            engine="auto",
            version=f"{first.engine} {first.version}; {second.engine} {second.version}",
            language=first.language,
            has_snapshot=first.has_snapshot and second.has_snapshot,
            judges_files=first.judges_files and second.judges_files,
            checks_types=first.checks_types,
            notes=(f"{first.engine} first; what it does not support goes to {second.engine}, for good",),
        )

    def guest(self) -> "AutoGuest":
        return AutoGuest(self._first.guest(), self._second.guest(), self.capabilities)

    async def close(self) -> None:
        await self._first.close()
        await self._second.close()


class AutoGuest:
    """The guest of a session, in one of two engines."""

    def __init__(self, first: FirstGuest, second: Guest, capabilities: Capabilities) -> None:
        self._first = first
        self._second = second
        self._capabilities = capabilities
        self._has_moved = False
        self._choice = _BEGAN_THERE
        """Of the run at hand, which may go on after a wait."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        if self._has_moved:
            self._choice = _Choice(reason="this session runs there already")
            return self._signed(await self._second.run(request, on_call))
        ended = await self._first.run(request, on_call)
        self._choice = _Choice(reason="it supports this code")
        if ended.status == "refused" and ended.is_unsupported:
            left = await self._move() - {python_name(tool.group) for tool in request.tools}
            self._choice = _Choice(reason=_reason(self._first, ended), left=tuple(sorted(left)))
            ended = await self._second.run(request, on_call)
        return self._signed(ended)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        self._has_moved = _is_second(snapshot)
        return self._signed(await self._current.resume(snapshot[1:], answer, request, on_call))

    async def snapshot(self) -> bytes:
        state = await self._current.snapshot()
        return self._marked(state) if state else b""

    async def restore(self, state: bytes) -> None:
        has_moved = _is_second(state) if state else False
        await (self._second if has_moved else self._first).restore(state[1:])
        self._has_moved = has_moved
        self._choice = _BEGAN_THERE

    async def close(self) -> None:
        await self._first.close()
        await self._second.close()

    @property
    def _current(self) -> Guest:
        return self._second if self._has_moved else self._first

    async def _move(self) -> frozenset[str]:
        """Take the plain data along. The names of what stays behind."""
        handover = await self._first.variables()
        for code in taking_over(handover.variables):
            await self._second.run(RunRequest(code=code), refuse_all)
        self._has_moved = True
        return frozenset(handover.left)

    def _signed(self, ended: Run) -> Run:
        snapshot = None if ended.snapshot is None else self._marked(ended.snapshot)
        engine = self._current.capabilities.engine
        printed = self._choice.told(engine) + ended.printed
        return msgspec.structs.replace(
            ended, snapshot=snapshot, printed=printed, engine=engine, engine_reason=self._choice.reason
        )

    def _marked(self, data: bytes) -> bytes:
        # Not authenticated, and need not be: each engine opens only what it sealed itself.
        return (_SECOND if self._has_moved else _FIRST) + data


def _is_second(data: bytes) -> bool:
    if data[:1] not in (_FIRST, _SECOND):
        raise SnapshotRefused("this is no snapshot of two engines", hint="Start the turn again.")
    return data[:1] == _SECOND


def _reason(first: Guest, refused: Run) -> str:
    last = refused.error.strip().splitlines()[-1]
    return f"{first.capabilities.engine} refused the code before anything ran: {last}"
