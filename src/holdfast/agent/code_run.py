"""One run of guest code inside a turn: started, resumed after a wait, or run again after a crash.

All three take the same path. Calls are numbered, and the gate answers a recorded call without executing it again; running
the code a second time from the state before it brings the guest to where it was.

An engine that changes files by itself works on a copy; `FolderChanges` submits those changes to the gate after the run.
"""

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterable

from holdfast.agent.conversation import Conversation
from holdfast.agent.program_origins import ProgramOrigins, follow_program
from holdfast.agent.rebuild_state import rebuild_state, run_limits, runs_leading_to
from holdfast.agent.session_guests import SessionGuests
from holdfast.agent.tool_replies import explain_refusal, raise_if_over_budget
from holdfast.core import (
    PERSON,
    Answer,
    Call,
    CallId,
    Change,
    Clock,
    EscalationId,
    Failed,
    JsonObject,
    Level,
    Parked,
    Refused,
    Tool,
    Value,
    call_id,
    digest_bytes,
    pluralize,
)
from holdfast.core.errors import SnapshotRefused
from holdfast.core.events import Noted, RunEnded, RunParked, RunStarted, RunStatus
from holdfast.gate import Gate
from holdfast.guests import Guest, GuestLimits, OnCall, Run, RunRequest
from holdfast.store import Journal
from holdfast.world import World

FetchBlob = Callable[[str], Awaitable[bytes]]
"""Loads a blob by its digest."""


class FinishedRun(Value):
    """A run that ended but is not recorded yet: it is appended together with what follows from it."""

    event: RunEnded
    blobs: tuple[bytes, ...] = ()


class FolderChanges:
    """Collects the files that a run changed. A run that waits reports them in pieces."""

    def __init__(self, view: World | None) -> None:
        self._view = view
        """A copy of the workspace; None if no engine works on a folder."""
        self._touched: dict[str, bool] = {}
        """Each changed file, and whether it existed before the run."""

    def __bool__(self) -> bool:
        return bool(self._touched)

    def add(self, changes: Iterable[Change]) -> None:
        """Add what a run, or a part of it, changed."""
        for change in changes:
            self._touched.setdefault(change.path, change.kind != "created")

    def clear(self) -> None:
        """Start over for a new run."""
        self._touched.clear()

    async def submit(self, on_call: OnCall) -> tuple[str, ...] | None:
        """Submit every changed file to the gate. Returns the refusals; None if a call waits for approval."""
        assert self._view is not None, "an engine that changes files is given a copy to work on"
        refusals: list[str] = []
        for path, existed in sorted(self._touched.items()):
            if self._view.exists(path) and self._view.stat(path).kind == "file":
                answer = await on_call("world.write", _write_arguments(path, self._view.read(path)))
            elif existed:
                answer = await on_call("world.delete", {"path": path})
            else:
                continue  # created and deleted in the same run
            if isinstance(answer, Parked):
                return None
            if isinstance(answer, Refused | Failed):
                refusals.append(f"{path} was not changed: {answer.reason}")
        return tuple(refusals)


class CodeRun:
    """Runs code in the session's guest and records the result."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        gate: Gate,
        guests: SessionGuests,
        fetch_blob: FetchBlob,
        clock: Clock,
        limits: GuestLimits,
        language_tools: frozenset[str] = frozenset(),
        engine_tools: frozenset[str] = frozenset(),
        view: World | None = None,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._guests = guests
        self._language_tools = language_tools
        """Features of Lisp that are judged as tools; no other language has them."""
        self._engine_tools = engine_tools
        """Calls that an engine makes for the code it runs, and that the code is not offered."""
        self._fetch_blob = fetch_blob
        self._clock = clock
        self._limits = limits
        self._changes = FolderChanges(view)
        self._states: dict[Guest, str | None] = {}
        """The recorded state that each guest is in; None is a new guest."""
        self._waiting_for: tuple[CallId, EscalationId] | None = None
        self._over_budget: Refused | None = None
        """The call of this run that the budget could not pay for."""
        self._reported: set[Guest] = set()
        self._program: ProgramOrigins | None = None
        """Follows the program of the current run, if the policy asks."""
        self._calls_in_flight = 0
        self._is_held = False
        """Whether a call of the program is not begun, because the turn is to rest."""
        self._resting: asyncio.Event | None = None

    def rest(self, resting: asyncio.Event) -> None:
        """Begin no other call. Sets the event when the program waits for one and none runs: run again, it comes to the same place."""
        self._resting = resting

    def _note_rest(self) -> None:
        if self._resting is not None and self._is_held and not self._calls_in_flight:
            self._resting.set()

    def language_of(self, language: str | None) -> str:
        """The language that code runs as; by default the session's own. Raises InvalidInput if no sandbox runs it."""
        return language if language and self._guests.speaking(language) else self._guests.language

    async def run(
        self,
        code: str,
        *,
        tool_call: str | None,
        seed: int,
        language: str = "",
        timeout_seconds: float | None = None,
    ) -> FinishedRun | None:
        """Run code, or resume the open run: from its snapshot if it has one, else by running it again.

        None means that it waits for approval.
        """
        started = self._conversation.run
        if started is not None:
            guest = self._guests.of_engine(started.engine)
        else:
            guest = self._guests.speaking(language)
            started = await self._record_start(guest, code, tool_call, seed, timeout_seconds)
        self._program = self._follow(guest, started)
        parked = self._conversation.parked_run
        if parked is not None and parked.snapshot is not None:
            answer = explain_refusal(
                raise_if_over_budget(
                    await self._gate.submit(await self._waiting_call(parked.call), can_defer_outcome=True)
                )
            )
            if isinstance(answer, Parked):
                return None
            self._states[guest] = _UNKNOWN
            on_call = self._call_handler(started.turn, int(parked.call.partition(".")[2]))
            try:
                snapshot = await self._fetch_blob(parked.snapshot)
                run = await guest.resume(snapshot, answer, self._request(guest, started), on_call)
            except SnapshotRefused:
                pass  # another engine version or another key: the journal still has every answer
            else:
                return await self._record(guest, started, run, on_call)
        await self._restore_state(guest, started.state)
        self._changes.clear()
        self._over_budget = None
        self._states[guest] = _UNKNOWN  # until it is recorded: a cancelled run leaves the guest in any state
        on_call = self._call_handler(started.turn, started.first_call - 1)
        run = await guest.run(self._request(guest, started), on_call)
        return await self._record(guest, started, run, on_call)

    async def _record_start(
        self, guest: Guest, code: str, tool_call: str | None, seed: int, timeout_seconds: float | None
    ) -> RunStarted:
        conversation = self._conversation
        engine = guest.capabilities.engine
        started = RunStarted(
            turn=conversation.turn,
            run=conversation.runs + 1,
            code=code,
            engine=engine,
            tool_call=tool_call,
            first_call=conversation.next_call,
            seed=seed,
            started_ms=self._clock.now_ms(),
            state=conversation.guest_states.get(engine),
            facts=self._new_facts(guest),
            author=self._author(),
            timeout_seconds=timeout_seconds,
        )
        await self._journal.append(started)
        return started

    async def _record(
        self, guest: Guest, started: RunStarted, run: Run, on_call: OnCall
    ) -> FinishedRun | None:
        self._check_budget()
        self._changes.add(run.changes)
        refusals: tuple[str, ...] | None = ()
        if run.status != "parked" and self._changes:
            refusals = await self._changes.submit(on_call)
            self._check_budget()
        if run.status == "parked" or refusals is None:
            assert self._waiting_for is not None, "a guest parks only when a call was answered with Parked"
            waiting_call, escalation = self._waiting_for
            blobs = (run.snapshot,) if run.snapshot is not None else ()
            await self._journal.append(
                RunParked(
                    turn=started.turn,
                    run=started.run,
                    call=waiting_call,
                    escalation=escalation,
                    snapshot=digest_bytes(run.snapshot) if run.snapshot is not None else None,
                    printed=run.printed,
                ),
                blobs=blobs,
            )
            return None
        state = await guest.snapshot() if run.status in ("ok", "error") else b""
        shown = self._shown_level(started, has_failed=run.status != "ok")
        hidden = shown if started.tool_call is not None and shown and self._gate.hides(shown) else None
        value, whole, kept = self._gate.record_value(run.value)
        dropped = (*run.dropped, *refusals)
        ended = RunEnded(
            turn=started.turn,
            run=started.run,
            status=_STATUS[run.status],
            value=value,
            whole=whole,
            printed=run.printed + "".join(f"[{sentence}]\n" for sentence in dropped),
            dropped=dropped,
            error=run.error,
            engine=run.engine,
            engine_reason=run.engine_reason,
            state=digest_bytes(state) if state else None,
            shown="own" if hidden is not None else shown,
            hidden=hidden,
            variables=self._program.variables() if self._program is not None else None,
        )
        self._states[guest] = ended.state if state else _UNKNOWN
        return FinishedRun(event=ended, blobs=(*((state,) if state else ()), *kept))

    async def _restore_state(self, guest: Guest, state: str | None) -> None:
        """Bring the guest to a recorded state, unless it is already in it."""
        if state == self._states.get(guest):
            return
        try:
            await guest.restore(await self._fetch_blob(state) if state is not None else b"")
        except SnapshotRefused as refusal:
            # Signed by another data directory or engine version: never load it, but do not lock the person out either.
            await self._journal.append(await self._rebuild_state(guest, state, refusal))
        self._states[guest] = state

    async def _rebuild_state(self, guest: Guest, state: str | None, refusal: SnapshotRefused) -> Noted:
        """Run the earlier code again with its recorded answers, or start without variables. Returns the note about it."""
        # Without a judged call for each file, a run could read other files than it did then.
        runs = (
            runs_leading_to(state, self._journal.recorded)
            if state is not None and guest.capabilities.judges_files
            else None
        )
        if runs is not None and await rebuild_state(
            runs, guest=guest, answers=self._gate.calls, tools=self._tools(guest), limits=self._limits
        ):
            again = f"{pluralize(len(runs), 'earlier run')} again, with the recorded results of its calls"
            text = f"the saved variables could not be loaded ({refusal}), so they were rebuilt by running {again}"
            return Noted(code="variables-rebuilt", text=text)
        await guest.restore(b"")
        text = f"variables of earlier runs could not be restored ({refusal}); this run started without them"
        return Noted(code="variables-lost", text=text)

    def _author(self) -> Level | None:
        """The level of who wrote the code that is about to run; None if the policy does not ask."""
        level = self._gate.author_level()
        posted = self._conversation.posted_code
        if level is None or posted is None:
            return level
        return "own" if posted.principal == PERSON else "stranger"

    def _follow(self, guest: Guest, started: RunStarted) -> ProgramOrigins | None:
        if not self._gate.asks_levels:
            return None
        capabilities = guest.capabilities
        variables = self._gate.origins.variables.get(capabilities.engine)
        return follow_program(
            started, capabilities=capabilities, tools=self._tools(guest), variables=variables
        )

    def _shown_level(self, started: RunStarted, *, has_failed: bool) -> Level | None:
        if self._program is None:
            return None
        return self._gate.level_of(
            self._program.shown(has_failed=has_failed), author=started.author or "stranger"
        )

    def _new_facts(self, guest: Guest) -> tuple[str, ...]:
        """What the engine can do on this machine. Reported once per process, because it does not change."""
        if guest in self._reported:
            return ()
        self._reported.add(guest)
        return guest.capabilities.facts

    def _call_handler(self, turn: int, last: int) -> OnCall:
        number = last

        async def on_call(operation: str, arguments: JsonObject) -> Answer:
            nonlocal number
            if self._resting is not None:
                self._is_held = True
                self._note_rest()
                await asyncio.Event().wait()  # until this task is cancelled
            number += 1
            call = Call(id=call_id(turn, number), operation=operation, arguments=arguments)
            program = self._program
            origins = program.of_call(operation, arguments) if program is not None else None
            self._calls_in_flight += 1
            try:
                answer = await self._gate.submit(call, can_defer_outcome=True, origins=origins)
            finally:
                self._calls_in_flight -= 1
                self._note_rest()
            if isinstance(answer, Parked):
                self._waiting_for = call.id, answer.escalation
            if isinstance(answer, Refused) and answer.exhausted is not None:
                # Park the guest; once there is more budget, the code runs again up to this call.
                self._over_budget = answer
                return Parked(escalation=EscalationId(""))
            return explain_refusal(answer)

        return on_call

    def _check_budget(self) -> None:
        refused, self._over_budget = self._over_budget, None
        if refused is not None:
            raise_if_over_budget(refused)

    async def _waiting_call(self, id: CallId) -> Call:
        call = await self._gate.escalated_call(id)
        assert call is not None, "a parked run names a call that was escalated"
        return call

    def _tools(self, guest: Guest) -> tuple[Tool, ...]:
        hidden = self._engine_tools
        if guest.capabilities.language != "lisp":
            hidden |= self._language_tools
        return tuple(tool for tool in self._gate.tools() if tool.name not in hidden)

    def _request(self, guest: Guest, started: RunStarted) -> RunRequest:
        return RunRequest(
            code=started.code,
            tools=self._tools(guest),
            limits=run_limits(self._limits, started),
            seed=started.seed,
            now_ms=started.started_ms,
        )


_UNKNOWN = "unknown"
_STATUS: dict[str, RunStatus] = {
    "ok": "ok",
    "error": "error",
    "limit": "limit",
    "lost": "lost",
    "refused": "error",
}


def _write_arguments(path: str, content: bytes) -> JsonObject:
    try:
        return {"path": path, "content": content.decode()}
    except UnicodeDecodeError:
        return {"path": path, "content": base64.b64encode(content).decode(), "encoding": "base64"}
