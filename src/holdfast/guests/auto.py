"""The `auto` engine: code runs in the fast engine, and in a complete one if the fast one does not support it.

A session switches only after an engine has refused the code before anything ran, so no effect can happen twice. Code that
is wrong (a misspelt name, a tool called with wrong arguments) goes back to its author, not to the other engine. A session
switches for good: from then on all its code runs in that engine, which imports the plain data among the variables. Two sets of
variables side by side would contradict each other.
"""

from typing import Protocol

import msgspec

from holdfast.core import Answer, Value
from holdfast.core.errors import SnapshotRefused
from holdfast.guests.contract import Capabilities, Guest, OnCall, Run, RunRequest
from holdfast.guests.python.state import ExportedVariables, import_programs
from holdfast.guests.tool_stubs import python_name

_PREFIXES = {"python": b"1", "wasi": b"2", "system": b"3"}
"""INVARIANT: recorded states begin with these bytes."""


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


class ImportingGuest(Guest, Protocol):
    """A guest that can take over plain data from another engine."""

    async def import_variables(self, programs: tuple[str, ...]) -> None:
        """Define variables by these programs before the next code runs."""
        ...


class ImportingEngine(Protocol):
    """An engine whose guests can take over variables."""

    @property
    def capabilities(self) -> Capabilities:
        """What its guests can do."""
        ...

    def guest(self) -> ImportingGuest:
        """A new guest."""
        ...

    async def close(self) -> None:
        """Stop every worker."""
        ...


class AutoEngine:
    """Creates guests that start in `python` and switch to `system`, or where that does not run to `wasi`, when they have to."""

    def __init__(
        self,
        *,
        python: ExportingEngine,
        system: ImportingEngine | None = None,
        wasi: ImportingEngine | None = None,
    ) -> None:
        self._first = python
        self._later = tuple(engine for engine in (system, wasi) if engine is not None)

    @property
    def capabilities(self) -> Capabilities:
        first, later = self._first.capabilities, [engine.capabilities for engine in self._later]
        others = ", then to ".join(each.engine for each in later)
        return Capabilities(
            engine="auto",
            version="; ".join(f"{each.engine} {each.version}" for each in (first, *later)),
            language=first.language,
            has_snapshot=first.has_snapshot and all(each.has_snapshot for each in later),
            judges_files=first.judges_files and all(each.judges_files for each in later),
            checks_types=first.checks_types,
            follows_values=first.follows_values,
            notes=(f"{first.engine} first; code that it does not support switches the session to {others}",),
        )

    def guest(self) -> "AutoGuest":
        later = tuple(engine.guest() for engine in self._later)
        return AutoGuest(self._first.guest(), later, self.capabilities)

    async def close(self) -> None:
        await self._first.close()
        for engine in self._later:
            await engine.close()


class AutoGuest:
    """The guest of a session, in one of several engines."""

    def __init__(
        self, first: ExportingGuest, later: tuple[ImportingGuest, ...], capabilities: Capabilities
    ) -> None:
        self._first = first
        self._later = later
        self._current: Guest = first
        self._capabilities = capabilities
        self._choice = _STARTED_THERE
        """The choice for the current run, which may resume after a wait."""

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def run(self, request: RunRequest, on_call: OnCall) -> Run:
        is_first = self._current is self._first
        self._choice = _Choice(
            reason="it supports this code" if is_first else "this session already runs there"
        )
        run = await self._current.run(request, on_call)
        for guest in self._not_tried():
            if run.status != "refused" or not run.is_unsupported:
                break
            reason = _reason(self._current, run)
            omitted = await self._switch(guest) - {python_name(tool.group) for tool in request.tools}
            self._choice = _Choice(reason=reason, omitted=tuple(sorted(omitted)))
            run = await guest.run(request, on_call)
        return self._with_choice(run)

    async def resume(self, snapshot: bytes, answer: Answer, request: RunRequest, on_call: OnCall) -> Run:
        self._current = self._of_prefix(snapshot)
        return self._with_choice(await self._current.resume(snapshot[1:], answer, request, on_call))

    async def snapshot(self) -> bytes:
        state = await self._current.snapshot()
        return self._prefix(state) if state else b""

    async def restore(self, state: bytes) -> None:
        guest = self._of_prefix(state) if state else self._first
        await guest.restore(state[1:])
        self._current = guest
        self._choice = _STARTED_THERE

    async def close(self) -> None:
        await self._first.close()
        for guest in self._later:
            await guest.close()

    def _not_tried(self) -> tuple[ImportingGuest, ...]:
        """The guests in the engines that come after the current one."""
        guests: tuple[Guest, ...] = (self._first, *self._later)
        return self._later[guests.index(self._current) :]

    async def _switch(self, guest: ImportingGuest) -> frozenset[str]:
        """Switch to another engine with the plain data. Returns the names of the other variables."""
        exported = await self._first.export_variables()
        await guest.import_variables(tuple(import_programs(exported.variables)))
        self._current = guest
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
        return _PREFIXES[self._current.capabilities.engine] + data

    def _of_prefix(self, data: bytes) -> Guest:
        for guest in (self._first, *self._later):
            if data[:1] == _PREFIXES[guest.capabilities.engine]:
                return guest
        raise SnapshotRefused("this is not a snapshot of the auto sandbox", hint="Start the turn again.")


def _reason(guest: Guest, refused: Run) -> str:
    last = refused.error.strip().splitlines()[-1]
    return f"{guest.capabilities.engine} refused the code before anything ran: {last}"
