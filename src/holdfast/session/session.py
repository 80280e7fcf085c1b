"""A session: a conversation with a memory and a boundary. One turn at a time; whatever happens is in its journal."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

import msgspec

from holdfast.agent import Conversation, Turn, compact
from holdfast.core import (
    PERSON,
    Call,
    Escalation,
    EscalationId,
    Limits,
    Nonconverged,
    Outcome,
    Principal,
    Response,
    SessionId,
)
from holdfast.core.errors import EscalationUnknown, ModelMissing, SessionClosed, SessionNotReady
from holdfast.core.events import (
    AnyEvent,
    BudgetRaised,
    CodePosted,
    MessagePosted,
    Noted,
    ProposalsCommitted,
    ProposalsRejected,
    Recorded,
    RestorePointMade,
    SessionPaused,
    SessionRenamed,
    SessionResumed,
    SessionRewound,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.events import SessionClosed as ClosedEvent
from holdfast.gate import AuditEntry, Budget, Gate, Ruling, audit_view
from holdfast.session.approver import Approver
from holdfast.session.queueing import Line
from holdfast.session.rewinding import Marks, RewindPlan, plan_rewind
from holdfast.session.staging import restage
from holdfast.session.status import Status, TurnRecord
from holdfast.store import Journal, Store
from holdfast.world import Proposal, RestorePoints, StagedWorld, World


class Session:
    """One live session. Built by `app`; closing it releases what it holds and deletes nothing."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        status: Status,
        gate: Gate,
        turn: Turn,
        workspace: World,
        staged: StagedWorld,
        store: Store,
        resources: AsyncExitStack,
        points: RestorePoints | None = None,
        has_outside_tools: bool = False,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._turn = turn
        self._staged = staged
        self._store = store
        self._resources = resources
        self._points = points
        self._marks = Marks(journal)
        self._has_outside_tools = has_outside_tools
        self._driver: asyncio.Task[object] | None = None
        self._line = Line()
        self._is_closed = False
        self._leaves_turn_open = False
        self._queues: list[asyncio.Queue[Recorded | None]] = []
        self.status = status
        self.workspace = workspace
        self.approver: Approver | None = None
        self.approver_name = "approver"
        """What stands in the record as the way an answer of the approver came."""
        self.on_text: Callable[[str], None] = lambda _: None

    @property
    def id(self) -> SessionId:
        """The session's id: its only key."""
        return self._journal.session

    @property
    def last_seq(self) -> int:
        """The number of the newest event."""
        return self._journal.recorded[-1].seq

    @property
    def budget(self) -> Budget:
        """What may still be spent."""
        return self._gate.budget

    async def raise_budget(self, limits: Limits, *, principal: Principal = PERSON) -> None:
        """Put these limits in the place of the session's; a turn that ran out of budget can go on with `advance`."""
        self._check_live()
        await self._journal.append(BudgetRaised(limits=limits, principal=principal))

    def unknown_calls(self) -> tuple[Call, ...]:
        """Calls that were begun and cut off: whether they happened nobody knows, so look before you ask for them again."""
        cut_off = self._gate.calls.unknown()
        calls = tuple(intended.call for intended in cut_off if not intended.is_idempotent)
        # While a turn runs here, its own calls are merely not over yet.
        return calls if self._driver is None else tuple(c for c in calls if c.turn < self._conversation.turn)

    # -- turns

    async def send(
        self,
        text: str,
        *,
        principal: Principal = PERSON,
        transport: str = "library",
        message: str = "",
        queue: bool = False,
    ) -> Outcome:
        """One message, until the agent rests or waits for a person whom nobody can ask here (`Needs`).

        While a turn is open a message is refused, or with `queue` stands in line until that turn is over; it is on the
        record only then.
        """
        async with self._place(queue=queue):
            turn = len(self.status.turns) + 1
            posted = MessagePosted(
                turn=turn, text=text, principal=principal, transport=transport, message=message
            )
            return await self._drive(posted)

    async def execute(self, code: str, *, language: str = "python", principal: Principal = PERSON) -> Outcome:
        """A turn of code from the host: same gate, same record, no model."""
        async with self._place():
            turn = len(self.status.turns) + 1
            return await self._drive(CodePosted(turn=turn, code=code, language=language, principal=principal))

    async def advance(self) -> Outcome | None:
        """Carry on a turn that a crash cut off, that waited, or that a raised budget lets go on; None where there is none."""
        self._check_live()
        if not self.status.has_open_turn and not self.status.can_go_on:
            return None
        if self._driver is not None:
            raise SessionNotReady("a turn is running", hint="wait for it, or cancel it")
        with self._occupied():
            if not self.status.has_open_turn:
                await self._journal.append(TurnReopened(turn=self._conversation.turn))
            return await self._drive()

    async def compact(self, *, keep_turns: int = 2) -> str:
        """Put a summary in the place of older turns, and return it; the originals stay in the journal."""
        if self._turn.model is None:
            raise ModelMissing("this session has no model to summarise with")
        async with self._place():
            event = await compact(
                journal=self._journal,
                conversation=self._conversation,
                gate=self._gate,
                model=self._turn.model,
                keep_turns=keep_turns,
            )
        return event.summary

    async def cancel(self) -> None:
        """End the open turn, running or waiting; what was done stays done, and the session is ready again."""
        driver = self._driver
        if driver is not None:
            driver.cancel()
            await asyncio.wait({driver})
        elif self.status.has_open_turn and not self._is_closed:
            with self._occupied():
                await self._end_cancelled()

    # -- the person

    def escalations(self) -> tuple[Escalation, ...]:
        """What waits for a person, oldest first."""
        return self._gate.escalations.waiting()

    async def resolve(
        self,
        escalation: EscalationId,
        response: Response,
        *,
        principal: Principal = PERSON,
        transport: str = "library",
    ) -> Ruling:
        """Answer an escalation. Raises EscalationUnknown where it is answered already or came late."""
        return await self._gate.resolve(escalation, response, principal=principal, transport=transport)

    def proposals(self) -> tuple[Proposal, ...]:
        """Staged changes that wait to be committed or rejected."""
        return self._staged.proposals()

    async def commit(self, *paths: str, principal: Principal = PERSON) -> tuple[str, ...]:
        """Make staged changes for good, all of these or none. Raises CommitConflict."""
        self._check_held()
        changes = self._staged.commit(paths or None)
        await self._journal.append(ProposalsCommitted(changes=changes, principal=principal))
        return tuple(change.path for change in changes)

    async def reject(self, *paths: str, principal: Principal = PERSON) -> tuple[str, ...]:
        """Drop staged changes; the session goes on."""
        self._check_held()
        dropped = self._staged.reject(paths or None)
        await self._journal.append(ProposalsRejected(paths=dropped, principal=principal))
        return dropped

    # -- going back

    async def plan_rewind(self, to: int) -> RewindPlan:
        """What going back to the end of a turn would change, and what cannot be undone. 0 is before the first."""
        plan = plan_rewind(self._journal.recorded, to)
        if self._points is None:
            return plan
        return msgspec.structs.replace(plan, changes=await self._points.preview(plan.manifest))

    async def rewind(self, to: int, *, principal: Principal = PERSON) -> RewindPlan:
        """Go back to the end of a turn: chat, files, staged changes, budget and grants together."""
        async with self._place():
            plan = await self.plan_rewind(to)
            if self._points is not None:
                await self._points.restore(plan.manifest)
            await self._journal.append(SessionRewound(seq=plan.seq, turn=to, principal=principal))
            self._staged.reject()
            await restage(self._staged, self._journal, self._store)
        return plan

    async def keep_files(self) -> None:
        """Make a restore point of the workspace as it is now, whoever changed it."""
        async with self._place():
            if self._points is not None:
                manifest = (await self._points.make()).manifest
                await self._journal.append(RestorePointMade(turn=len(self.status.turns), manifest=manifest))

    # -- the record

    def history(self) -> tuple[TurnRecord, ...]:
        """Every turn, numbered from 1."""
        return tuple(self.status.turns)

    def diagnostics(self) -> tuple[Noted, ...]:
        """What was worth telling, oldest first."""
        return tuple(self.status.notes)

    def audit(self, *, turn: int | None = None, operation: str | None = None) -> list[AuditEntry]:
        """Every call on the record, refusals included."""
        return audit_view(self._journal.recorded, turn=turn, operation=operation)

    def follow(self, follower: Callable[[Recorded], None]) -> None:
        """Hand every event, past and to come, to a function that neither raises nor waits."""
        self._journal.follow(follower)

    async def events(self, *, after: int = 0) -> AsyncIterator[Recorded]:
        """Every event above a number, then each new one as it becomes durable; ends when the session is closed."""
        queue: asyncio.Queue[Recorded | None] = asyncio.Queue()
        self._journal.follow(queue.put_nowait)
        self._queues.append(queue)
        while (entry := await queue.get()) is not None:
            if entry.seq > after:
                yield entry

    async def note(self, code: str, text: str) -> None:
        """Put something on the record that changes nothing."""
        await self._journal.append(Noted(code=code, text=text))

    # -- lifecycle

    async def rename(self, name: str | None) -> None:
        """Give the session another name."""
        await self._journal.append(SessionRenamed(name=name))

    async def pause(self) -> None:
        """Take no turn until resumed."""
        self._check_ready()
        await self._journal.append(SessionPaused())

    async def resume(self) -> None:
        """Take turns again."""
        self._check_live()
        if self.status.lifecycle == "paused":
            await self._journal.append(SessionResumed())

    async def abort(self, reason: str = "") -> None:
        """End the session for good and drop what is staged."""
        self._check_live()
        await self.cancel()
        if self._staged.proposals():
            await self.reject()
        await self._journal.append(ClosedEvent(how="aborted", reason=reason))
        await self.close()

    async def complete(self, reason: str = "") -> None:
        """End the session for good, its work done."""
        self._check_ready()
        await self._journal.append(ClosedEvent(how="completed", reason=reason))
        await self.close()

    async def close(self) -> None:
        """Release everything this process holds. Idempotent, prompt, and the session can be taken up again."""
        if self._is_closed:
            return
        self._is_closed = True
        driver = self._driver
        if driver is not None and driver is not asyncio.current_task():
            self._leaves_turn_open = True
            driver.cancel()
            await asyncio.wait({driver})
        self._line.dissolve(SessionClosed(f"session {self.id} was closed", hint="open it again to go on"))
        for queue in self._queues:
            queue.put_nowait(None)
        await self._resources.aclose()

    # -- inside

    @asynccontextmanager
    async def _place(self, *, queue: bool = False) -> AsyncIterator[None]:
        """The session to oneself, for a turn or for what must not happen during one."""
        if queue and (self._is_busy or self._line):
            self._check_live()
            try:
                await self._line.wait()
                self._check_ready()
            except BaseException:
                self._call_next()
                raise
        else:
            self._check_ready()
            if self._line:
                raise SessionNotReady("other messages wait in line", hint="stand in line too: queue=True")
        with self._occupied():
            yield

    @contextmanager
    def _occupied(self) -> Iterator[None]:
        self._driver = asyncio.current_task()
        try:
            yield
        finally:
            self._driver = None
            self._call_next()

    def _call_next(self) -> None:
        if not self._is_busy:
            self._line.call_first()

    @property
    def _is_busy(self) -> bool:
        return self._driver is not None or self.status.has_open_turn

    async def _drive(self, *posted: AnyEvent) -> Outcome:
        try:
            if posted:
                await self._mark_missing()
                await self._journal.append(*posted)
            outcome = await self._turn.advance(self.on_text)
            while self.escalations() and self.approver is not None:
                await self._ask(self.approver)
                outcome = await self._turn.advance(self.on_text)
            if not self.status.has_open_turn:
                await self._mark(self._conversation.turn)
            return outcome
        except asyncio.CancelledError:
            if not self._leaves_turn_open and self.status.has_open_turn:
                await asyncio.shield(self._end_cancelled())
            raise

    async def _mark_missing(self) -> None:
        """Make the point before the first turn, or the one that a cancelled or cut-off turn did not come to make."""
        last = self._marks.last
        if last is None or last.turn < len(self.status.turns):
            await self._mark(len(self.status.turns))

    async def _mark(self, turn: int) -> None:
        """Make a restore point of the workspace; where nothing can have changed, the last one stands for this turn too."""
        if self._points is None:
            return
        last, touched = self._marks.last, self._marks.touched
        if last is not None and not touched and not self._has_outside_tools:
            manifest = last.manifest
        else:
            look_at = sorted(touched) if last is not None and not self._has_outside_tools else None
            manifest = (await self._points.make(look_at)).manifest
        await self._journal.append(RestorePointMade(turn=turn, manifest=manifest))

    async def _ask(self, approver: Approver) -> None:
        """Put what waits before the person; whoever answers first, here or elsewhere, has answered."""
        for escalation in self.escalations():
            here = asyncio.ensure_future(approver(escalation))
            anywhere = asyncio.ensure_future(self._gate.wait(escalation.id))
            try:
                await asyncio.wait({here, anywhere}, return_when=asyncio.FIRST_COMPLETED)
                response = here.result() if here.done() and not anywhere.done() else None
                if response is not None:
                    await self.resolve(escalation.id, response, transport=self.approver_name)
                await anywhere
            except EscalationUnknown:
                pass  # answered elsewhere in the same moment
            finally:
                here.cancel()
                anywhere.cancel()
                await asyncio.gather(here, anywhere, return_exceptions=True)

    async def _end_cancelled(self) -> None:
        for escalation in self.escalations():
            await self._gate.escalations.expire(escalation.id, "the turn was cancelled")
        outcome = Nonconverged(reason="cancelled")
        await self._journal.append(TurnEnded(turn=self._conversation.turn, outcome=outcome))

    def _check_held(self) -> None:
        if self._is_closed:
            raise SessionClosed(f"session {self.id} is closed", hint="open it again to go on")

    def _check_live(self) -> None:
        self._check_held()
        if self.status.lifecycle in ("completed", "aborted", "failed"):
            raise SessionClosed(
                f"session {self.id} was {self.status.lifecycle}", hint="fork it to go on from here"
            )

    def _check_ready(self) -> None:
        self._check_live()
        if self.status.lifecycle == "paused":
            raise SessionNotReady(f"session {self.id} is paused", hint="resume it first")
        if self._is_busy:
            raise SessionNotReady(
                "a turn is running or waits for a person", hint="wait for it, answer what waits, or cancel it"
            )
