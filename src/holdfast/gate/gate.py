"""The gate: the only path from a call to an effect.

Below are the policy (judges), the journal (records) and the toolsets (act); above is the code that runs a guest. What must
always happen is in `submit` and nowhere else: no effect before its intent is on disk, and no call without a record.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

import msgspec

from holdfast.commands import HostVerdict
from holdfast.core import (
    Amount,
    Answer,
    BlobRef,
    Call,
    CallId,
    CallOrigins,
    Clock,
    Decision,
    Escalation,
    EscalationId,
    Failed,
    FileEffect,
    GrantId,
    Json,
    JsonObject,
    JudgedEffect,
    Level,
    Limits,
    Origins,
    Parked,
    Paths,
    Principal,
    Refused,
    Response,
    SettledEffects,
    Tool,
    Toolset,
    Value,
    lowest,
    off_loop,
    reaches,
)
from holdfast.core.errors import BudgetExceeded, CommandError
from holdfast.core.events import (
    BudgetWarned,
    CallIntended,
    CallRefused,
    CallSettled,
    Event,
    GrantGiven,
    GrantRevoked,
)
from holdfast.gate.authorize import Authorized, Authorizer
from holdfast.gate.budget import Budget, cost_of
from holdfast.gate.call_index import CallIndex, answer_of
from holdfast.gate.commands.file_effects import Effects, EffectTarget, ReadChanged, StoreBlob
from holdfast.gate.commands.host_access import AskPerson, HostAccess
from holdfast.gate.control_requests import ControlRequests, JournalRequest, apply_journal_request
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.execute import Executor, at_most
from holdfast.gate.grants import Grants, SavedGrants, grant_for
from holdfast.gate.judge import Judge, ToolRegistry, sanitize_call
from holdfast.gate.labels.argument_levels import ArgumentLevels
from holdfast.gate.labels.file_labels import FileLabels, MemoryFileLabels
from holdfast.gate.labels.session_origins import SessionOrigins
from holdfast.gate.large_values import FetchBlob, LargeValues, Recorded
from holdfast.gate.loop_detector import LoopDetector
from holdfast.gate.model_calls import ModelCalls, Summary
from holdfast.gate.output_filter import MAX_RESULT_BYTES, OutputFilter
from holdfast.gate.provenance import Provenance
from holdfast.gate.refusals import deny, exhausted_dimension, over_budget, refused_answer
from holdfast.gate.tree_budget import TreeBudget
from holdfast.models import Model, OnPiece, Prompt, Reply
from holdfast.policy import OwnEndpoints, Policy, SessionFacts
from holdfast.store import Journal

Checkpoint = Callable[[int], Awaitable[Sequence[Event]]]
"""Saves the files of a turn after a call, and returns what to record together with the call's outcome; nothing if none changed."""


class GateSettings(Value):
    """Limits and modes of the gate."""

    call_seconds: float = 60.0
    escalation_seconds: float | None = None
    """How long a call waits for an answer before silence is a denial; None waits until it is answered."""
    max_repeats: int = 20
    """How many times in a row one turn may make the same call, get the same answer and change nothing, before the circuit breaker
    refuses it.
    """
    max_argument_bytes: int = MAX_RESULT_BYTES
    """The arguments of one call together."""
    can_ask: bool = True
    """Whether anyone can answer an escalation. If not, a call that needs approval is refused at once."""


class Gate:
    """Judges a call, asks for approval, records the intent, charges the budget, executes, records the outcome."""

    def __init__(
        self,
        *,
        journal: Journal,
        policy: Policy,
        toolsets: Sequence[Toolset],
        paths: Paths,
        clock: Clock,
        turn_limits: Limits | None = None,
        tree: TreeBudget | None = None,
        saved_grants: SavedGrants | None = None,
        control_requests: ControlRequests | None = None,
        settings: GateSettings | None = None,
        output_filter: OutputFilter | None = None,
        fetch_blob: FetchBlob | None = None,
        facts: Callable[[], SessionFacts] = SessionFacts,
        own_endpoints: OwnEndpoints = tuple,
        effect_writer: EffectTarget | None = None,
        keep_blob: StoreBlob | None = None,
        file_labels: FileLabels | None = None,
        instruction_digests: Sequence[str] = (),
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._journal = journal
        self._checkpoint = checkpoint
        self._clock = clock
        self._settings = settings or GateSettings()
        self._saved_grants = saved_grants
        self._control_requests = control_requests
        self.on_request: Callable[[JournalRequest], None] = lambda _: None
        """Receives each control request of another process before it is applied, to show it."""
        self._in_flight: dict[CallId, asyncio.Event] = {}
        """One event per call id in flight, set when it ends, so that a call submitted twice at once is executed once."""
        self._registry = ToolRegistry(toolsets, policy=policy)
        self._shown: tuple[Policy, tuple[Tool, ...], tuple[Tool, ...]] | None = None
        """A cache: what the model is shown, of which tools under which policy."""
        output_filter = output_filter or OutputFilter()
        self._large_values = LargeValues(fetch_blob, redactor=output_filter.redactor)
        self.calls = CallIndex(journal, large_values=self._large_values)
        self.budget = Budget(journal, turn_limits=turn_limits or Limits(), tree=tree)
        self.escalations = Escalations(journal, clock=clock)
        self.grants = Grants(journal, clock=clock, saved=saved_grants)
        self.loop_detector = LoopDetector(journal)
        self.origins = SessionOrigins(
            journal, file_labels=file_labels or MemoryFileLabels(), instruction_digests=instruction_digests
        )
        self._levels = ArgumentLevels(self.origins)
        self._judge = Judge(
            policy=policy,
            registry=self._registry,
            paths=paths,
            calls=self.calls,
            max_repeats=self._settings.max_repeats,
            facts=facts,
            own_endpoints=own_endpoints,
            levels=self._levels,
        )
        self._authorizer = Authorizer(
            judge=self._judge,
            escalations=self.escalations,
            provenance=Provenance(journal),
            grants=self.grants,
            large_values=self._large_values,
            clock=clock,
            escalation_seconds=self._settings.escalation_seconds,
            can_ask=self._settings.can_ask,
            travels=checkpoint is not None,
        )
        self._model_calls = ModelCalls(journal=journal, budget=self.budget)
        self._hosts = HostAccess(
            journal=journal,
            judge=self._judge,
            grants=self.grants,
            escalations=self.escalations,
            clock=clock,
            escalation_seconds=self._settings.escalation_seconds,
            can_ask=self._settings.can_ask,
        )
        self._effects: Effects | None = None
        if effect_writer is not None and keep_blob is not None:
            self._effects = Effects(
                journal=journal,
                judge=self._judge,
                grants=self.grants,
                budget=self.budget,
                writer=effect_writer,
                keep=keep_blob,
            )
        self._executor = Executor(
            journal=journal,
            judge=self._judge,
            paths=paths,
            clock=clock,
            output_filter=output_filter,
            call_seconds=self._settings.call_seconds,
            applied=self._effects.applied if self._effects is not None else lambda _: (),
        )

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._judge.policy

    def use_policy(self, policy: Policy) -> None:
        """Switch to another policy. Calls that wait for approval under the old one are refused when they resume."""
        self._judge.policy = policy
        self._registry.use_policy(policy)

    def tools(self) -> tuple[Tool, ...]:
        """The tools that the policy could allow: what a model is shown. The same tuple until something changes."""
        policy, offered, shown = self.policy, self._registry.tools(), self._shown
        if shown is None or shown[0] is not policy or shown[1] is not offered:
            could_allow = policy.could_allow
            shown = self._shown = policy, offered, tuple(tool for tool in offered if could_allow(tool))
        return shown[2]

    def tool(self, operation: str) -> Tool | None:
        """The tool behind an operation; None if no toolset offers it."""
        registered = self._registry.get(operation)
        return registered.tool if registered is not None else None

    @property
    def asks_levels(self) -> bool:
        """Whether the policy in force asks where values come from."""
        return self._levels.rules(self.policy) is not None

    def author_level(self) -> Level | None:
        """The lowest level of anything that the model has been shown, descriptions included; None if the policy does not ask."""
        rules = self._levels.rules(self.policy)
        if rules is None:
            return None
        if self._registry.has_unread_description(self.policy.could_allow):
            return "stranger"
        return self.origins.author(rules)

    def level_of(self, made_of: Origins, *, author: Level) -> Level | None:
        """The lowest level of what something is made of; None if the policy does not ask."""
        rules = self._levels.rules(self.policy)
        return self._levels.level_of_origins(made_of, author, rules) if rules is not None else None

    def hidden_level(self, operation: str, *, given: Level | None) -> Level | None:
        """The level of an operation's results, if the model is not shown their words; else None.

        `given` is the level of the words that the model named in the arguments.
        """
        rules = self._levels.rules(self.policy)
        if rules is None:
            return None
        level = lowest(given or "own", self.origins.level_of(operation, (), rules))
        return level if self.hides(level) else None

    def hides(self, level: Level | None) -> bool:
        """Whether the model is not shown words of this level."""
        rules = self._levels.rules(self.policy)
        return rules is not None and level is not None and not reaches(level, rules.shows)

    async def submit(
        self, call: Call, *, can_defer_outcome: bool = False, origins: CallOrigins | None = None
    ) -> Answer:
        """Answer a call. A call submitted again under the same id gets its recorded answer.

        Everything about the call is on disk when this returns. With `can_defer_outcome` the caller promises to append a record
        of its own before anyone outside can see the answer; the outcome is then written together with the next record.
        `origins` say what the arguments are made of; without them, anyone could have written them.
        """
        async with self._one_at_a_time(call.id):
            given = call
            call, digest, problem = await off_loop(
                given.arguments, lambda: sanitize_call(given, max_bytes=self._settings.max_argument_bytes)
            )
            recorded = await self.calls.answer(call)
            if recorded is not None:
                return recorded
            if problem:
                return await self._refuse(call, digest, deny("invalid-arguments", problem))
            await self.apply_control_requests()
            interrupted = self.calls.interrupted(call)
            if interrupted is not None and not interrupted.is_idempotent:
                return await self._settle_unknown(interrupted)
            authorized = await self._authorizer.authorize(call, digest, origins=origins)
            if isinstance(authorized, Parked):
                return authorized
            if isinstance(authorized, Decision):
                return await self._refuse(call, digest, authorized)
            try:
                reservation = await self.budget.reserve(_max_cost(authorized), call=call.id)
            except BudgetExceeded as error:
                return await self._refuse(call, digest, over_budget(error))
            try:
                self.grants.reserve_use(authorized.grant, call.id)
                intended = await self._large_call(authorized.call, authorized.digest)
                await self._record_intent(
                    CallIntended(
                        call=intended.value,
                        decision=authorized.decision,
                        digest=authorized.digest,
                        tool_digest=authorized.registered.digest,
                        asked=digest if authorized.call is not call else "",
                        is_idempotent=authorized.registered.tool.is_idempotent,
                        escalation=authorized.escalation,
                        grant=authorized.grant,
                        reserved=reservation.amount,
                    ),
                    intended.blobs,
                )
                del intended  # its blobs are on disk
                settled = await self._executor.execute(authorized, reservation.amount)
                outcome, blobs = await off_loop(
                    settled.result, lambda: self._large_values.record_result(settled)
                )
                saved: Sequence[Event] = ()
                if self._checkpoint is not None and not authorized.registered.tool.is_read_only:
                    saved = await self._checkpoint(call.turn)
                # The reservation is held until the outcome is recorded, which is exact if all of it was spent.
                if can_defer_outcome and not blobs and not saved and cost_of(outcome) == reservation.amount:
                    self._journal.append_deferred(outcome)
                    self.calls.record_deferred(outcome)
                    self.origins.record_deferred(outcome)
                    self.budget.record_deferred(outcome)
                else:
                    await self._journal.append(outcome, *saved, blobs=blobs)
            except BaseException:
                self.budget.release(reservation)
                self.grants.release_use(call.id)
                raise
            finally:
                if self._effects is not None:
                    self._effects.release(call.id)
            await self._record_warnings()
            return answer_of(
                outcome if not blobs else msgspec.structs.replace(outcome, result=settled.result)
            )

    async def settle_effects(
        self, call: Call, effects: Sequence[FileEffect], read: ReadChanged, *, is_staged: bool = False
    ) -> SettledEffects:
        """Judge what a command changed, record the verdicts, and write, stage or drop each effect."""
        if self._effects is None:
            raise CommandError("this session has no workspace that programs can change")
        return await self._effects.settle(call, effects, read, is_staged=is_staged)

    async def judge_effects(self, call: Call, effects: Sequence[FileEffect]) -> tuple[JudgedEffect, ...]:
        """Judge changes of files that a call would bring, without making them."""
        if self._effects is None:
            raise CommandError("this session has no workspace that programs can change")
        return await self._effects.judge(call, effects)

    async def judge_host(
        self, call: Call, host: str, port: int, ask: AskPerson, *, address: str = ""
    ) -> HostVerdict:
        """Judge a connection of a command's programs. `ask` asks a person here, where the policy escalates.

        With `address` the host is allowed and lies at that address, which is not public: the person is asked.
        """
        return await self._hosts.judge(call, host, port, ask, address=address)

    async def ask_model(
        self, *, turn: int, step: int, model: Model, prompt: Prompt, on_piece: OnPiece
    ) -> Reply:
        """Ask the model, recorded and charged like any effect. Raises BudgetExceeded or ModelError."""
        await self.apply_control_requests()
        reply = await self._model_calls.ask(
            turn=turn, step=step, model=model, prompt=prompt, on_piece=on_piece
        )
        await self._record_warnings()
        return reply

    async def ask_model_aside(
        self, *, turn: int, model: Model, prompt: Prompt, as_event: Callable[[Reply], Summary]
    ) -> Summary:
        """Ask the model outside the conversation. Records and charges the event made from its reply."""
        return await self._model_calls.ask_aside(turn=turn, model=model, prompt=prompt, as_event=as_event)

    async def resolve(
        self, id: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> Ruling:
        """Record a person's answer and the grant it includes. Raises EscalationUnknown if it is too late."""
        if response.offer is not None:
            self.escalations.check_offer(id, response.offer)
        recording = asyncio.ensure_future(self._record_answer(id, response, principal, transport))
        try:
            return await asyncio.shield(recording)
        except asyncio.CancelledError:
            # Whoever waits for the answer stops the one who asked as soon as it is there, and the grant comes after it.
            await asyncio.gather(recording, return_exceptions=True)
            raise

    async def _record_answer(
        self, id: EscalationId, response: Response, principal: Principal, transport: str
    ) -> Ruling:
        ruling = await self.escalations.answer(id, response, principal=principal, transport=transport)
        asked = ruling.escalation
        if response.verdict == "approve" and response.scope != "once":
            asked = await self._large_values.whole_escalation(
                asked
            )  # a grant fixes the digests of whole arguments
        grant = grant_for(asked, response, principal=principal, now_ms=self._clock.now_ms())
        if grant is not None:
            await self._journal.append(GrantGiven(grant=grant))
            if grant.scope == "always" and self._saved_grants is not None:
                await self._saved_grants.save(grant)
        return ruling

    async def preview_edit(self, escalation: Escalation, arguments: JsonObject) -> Escalation:
        """The escalation as it would be with other arguments: its targets and the decision. Nothing is recorded."""
        call = msgspec.structs.replace(escalation.call, arguments=arguments, large=None)
        judgement = await self._judge.judge(call, call.digest)
        return msgspec.structs.replace(
            escalation, call=call, targets=judgement.request.targets, decision=judgement.decision, offers=()
        )

    async def apply_control_requests(self) -> None:
        """Apply requests from other processes: raised limits and revoked grants."""
        if self._control_requests is not None and self._control_requests.count():
            await self._control_requests.apply(self._journal, self.budget, self.on_request)

    async def apply_request(self, name: str, request: JournalRequest) -> None:
        """Apply one request under its name, once."""
        await apply_journal_request(name, request, self._journal, self.budget, self.on_request)

    async def wait(self, id: EscalationId) -> Ruling:
        """Wait for a person's answer. If the time runs out, the ruling is a denial."""
        return await self.escalations.wait(id)

    def record_value(self, value: Json) -> tuple[Json, BlobRef | None, Sequence[bytes]]:
        """The value of a run for the journal, and the blob with the whole if it is too large."""
        return self._large_values.record_value(value)

    async def escalated_call(self, id: CallId) -> Call | None:
        """The call that was escalated under this id, with all of its arguments. Raises JournalDamaged."""
        call = self.escalations.call(id)
        return await self._large_values.whole_call(call) if call is not None else None

    async def whole_escalation(self, escalation: Escalation) -> Escalation:
        """An escalation with all arguments of its call, of which the journal may have previews. Raises JournalDamaged."""
        return await self._large_values.whole_escalation(escalation)

    async def revoke(self, id: GrantId) -> None:
        """Revoke a grant."""
        await self._journal.append(GrantRevoked(grant=id))

    @asynccontextmanager
    async def _one_at_a_time(self, call: CallId) -> AsyncIterator[None]:
        while (before := self._in_flight.get(call)) is not None:
            await before.wait()
        ended = self._in_flight[call] = asyncio.Event()
        try:
            yield
        finally:
            del self._in_flight[call]
            ended.set()

    async def _record_intent(self, event: CallIntended, blobs: Sequence[bytes]) -> None:
        """Write an intent to disk. If this task is cancelled meanwhile, settle the call as never executed."""
        try:
            await self._journal.append(event, blobs=blobs)
        except asyncio.CancelledError:
            settled = CallSettled(
                call=event.call.id, status="cancelled", error="cancelled before it was executed"
            )
            await asyncio.shield(self._journal.append(settled))
            raise

    async def _refuse(self, call: Call, digest: str, decision: Decision) -> Refused:
        recorded, blobs = await self._large_call(call, digest)
        await self._journal.append(CallRefused(call=recorded, decision=decision), blobs=blobs)
        return refused_answer(decision, exhausted=exhausted_dimension(decision))

    async def _large_call(self, call: Call, digest: str) -> Recorded[Call]:
        return await off_loop(call.arguments, lambda: self._large_values.record_call(call, digest))

    async def _settle_unknown(self, interrupted: CallIntended) -> Failed:
        reason = (
            "the process died during this call; whether it took effect is unknown, and it is not repeated"
        )
        await self._journal.append(
            CallSettled(
                call=interrupted.call.id, status="unknown", error=reason, amount=at_most(interrupted.reserved)
            )
        )
        return Failed(error="unknown", reason=reason)

    async def _record_warnings(self) -> None:
        for dimension, spent, limit in self.budget.take_new_warnings():
            await self._journal.append(BudgetWarned(dimension=dimension, spent=spent, limit=limit))


def _max_cost(authorized: Authorized) -> Amount:
    """The most the call can spend, if its toolset can estimate it."""
    estimator = authorized.registered.estimator
    return _ONE_CALL if estimator is None else estimator.max_cost(authorized.call).plus(_ONE_CALL)


_ONE_CALL = Amount(calls=1)
