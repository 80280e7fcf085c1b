"""The `auto` engine: code runs in the fast engine, and in the complete one if the fast one does not support it.

A session switches only after the first engine has refused the code before anything ran, so no effect can happen twice. Code that
is wrong (a misspelt name, a tool called with wrong arguments) goes back to its author, not to the other engine. A session
switches once: from then on all its code runs in the second engine, which imports the plain data among the variables. Two sets of
variables side by side would contradict each other.
"""

from typing import Protocol

import msgspec

from holdfast.core import Answer, Value
from holdfast.core.errors import SnapshotRefused
from holdfast.guests.contract import Capabilities, Engine, Guest, OnCall, Run, RunRequest
from holdfast.guests.python.state import ExportedVariables, import_programs, refuse_all
from holdfast.guests.tool_stubs import python_name

_FIRST, _SECOND = b"1", b"2"


class _Choice(Value):
    """Why a run is in its engine, and which variables of the session that engine does not have."""

    reason: str
    omitted: tuple[str, ...] = ()

    def notice(self, engine: str) -> str:
        """What the author of the code must know, as a line of its output."""
        if not self.omitted:
            return ""
        return f"[this code runs in {engine} from now on; define again what was not carried over: {', '.join(self.omitted)}]\n"


_STARTED_THERE = _Choice(reason="the run started there")


class ExportingGuest(Guest, Protocol):
    """A guest that can export its plain data to another engine."""

    async def export_variables(self) -> ExportedVariables:
        """The variables that are plain data."""
        ...


class ExportingEngine(Protocol):
    """An engine whose guests can export their variables."""

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        ...

    def guest(self) -> ExportingGuest:
        """A new guest."""
        ...

    async def close(self) -> None:
        """Stop every worker."""
        ...


class AutoEngine:
    """Creates guests that start in `python` and switch to `wasi` when they have to."""

    def __init__(self, *, python: ExportingEngine, wasi: Engine) -> None:
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
            notes=(
                f"{first.engine} first; code that it does not support switches the session to {second.engine}",
            ),
        )

    def guest(self) -> "AutoGuest":
        return AutoGuest(self._first.guest(), self._second.guest(), self.capabilities)

    async def close(self) -> None:
        await self._first.close()
        await self._second.close()


class AutoGuest:
    """The guest of a session, in one of two engines."""

    def __init__(self, first: ExportingGuest, second: Guest, capabilities: Capabilities) -> None:
        self._first = first
        self._second = second
        self._capabilities = capabilities
        self._has_switched = False
        self._choice = _STARTED_THERE
        """The choice for the current run, which may resume after a wait."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        if self._has_switched:
            self._choice = _Choice(reason="this session already runs there")
            return self._with_choice(await self._second.run(request, on_call))
        run = await self._first.run(request, on_call)
        self._choice = _Choice(reason="it supports this code")
        if run.status == "refused" and run.is_unsupported:
            omitted = await self._switch() - {python_name(tool.group) for tool in request.tools}
            self._choice = _Choice(reason=_reason(self._first, run), omitted=tuple(sorted(omitted)))
            run = await self._second.run(request, on_call)
        return self._with_choice(run)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        self._has_switched = _is_second(snapshot)
        return self._with_choice(await self._current.resume(snapshot[1:], answer, request, on_call))

    async def snapshot(self) -> bytes:
        state = await self._current.snapshot()
        return self._prefix(state) if state else b""

    async def restore(self, state: bytes) -> None:
        has_switched = _is_second(state) if state else False
        await (self._second if has_switched else self._first).restore(state[1:])
        self._has_switched = has_switched
        self._choice = _STARTED_THERE

    async def close(self) -> None:
        await self._first.close()
        await self._second.close()

    @property
    def _current(self) -> Guest:
        return self._second if self._has_switched else self._first

    async def _switch(self) -> frozenset[str]:
        """Switch to the second engine with the plain data. Returns the names of the other variables."""
        exported = await self._first.export_variables()
        for code in import_programs(exported.variables):
            await self._second.run(RunRequest(code=code), refuse_all)
        self._has_switched = True
        return frozenset(exported.omitted)

    def _with_choice(self, run: Run) -> Run:
        snapshot = None if run.snapshot is None else self._prefix(run.snapshot)
        engine = self._current.capabilities.engine
        printed = self._choice.notice(engine) + run.printed
        return msgspec.structs.replace(
            run, snapshot=snapshot, printed=printed, engine=engine, engine_reason=self._choice.reason
        )

    def _prefix(self, data: bytes) -> bytes:
        # The prefix needs no signature: each engine loads only snapshots that it signed itself.
        return (_SECOND if self._has_switched else _FIRST) + data


def _is_second(data: bytes) -> bool:
    if data[:1] not in (_FIRST, _SECOND):
        raise SnapshotRefused("this is not a snapshot of the auto sandbox", hint="Start the turn again.")
    return data[:1] == _SECOND


def _reason(first: Guest, refused: Run) -> str:
    last = refused.error.strip().splitlines()[-1]
    return f"{first.capabilities.engine} refused the code before anything ran: {last}"
