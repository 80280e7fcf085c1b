"""The gate: the one road from a call to an effect.

Below lie the policy that judges, the journal that records and the toolsets that act; above lies whoever has a guest. What
must always happen stands in `submit` and nowhere else: no effect before its intent is on disk, no call without a record.
"""

import asyncio
from collections.abc import Sequence
from decimal import Decimal

from holdfast.core import (
    Amount,
    Answer,
    Call,
    Clock,
    Decision,
    Escalation,
    EscalationId,
    Failed,
    GrantId,
    JsonObject,
    Limits,
    Parked,
    Paths,
    Performed,
    Principal,
    Refused,
    Response,
    Tool,
    Toolset,
    Usage,
    Value,
    new_token,
)
from holdfast.core.errors import BudgetExceeded, HoldfastError, ModelError, ToolTimeout
from holdfast.core.events import (
    BudgetWarned,
    CallIntended,
    CallRefused,
    CallSettled,
    GrantGiven,
    GrantRevoked,
    ModelAsked,
    ModelFailed,
    ModelReplied,
)
from holdfast.gate.budget import Budget
from holdfast.gate.calls import Calls, answer_of
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.grants import Grants, grant_for
from holdfast.gate.results import Results
from holdfast.models import Model, OnText, Prompt, Reply
from holdfast.policy import Policy, Request, targets_of, validate_arguments
from holdfast.store import Journal


class GateSettings(Value):
    """Numbers of the gate."""

    call_seconds: float = 60.0
    escalation_seconds: float = 300.0
    repeats: int = 20
    """How often one turn may make the very same call before the circuit breaks."""
    can_ask: bool = True
    """Whether anybody could answer; where not, an escalation is a no at once."""


class _Cleared(Value):
    """A call that may be made: by policy, by a grant or by a person."""

    call: Call
    decision: Decision
    tool: Tool
    escalation: EscalationId | None = None
    grant: GrantId | None = None


class Gate:
    """Judges, asks, records, charges, performs, records."""

    def __init__(
        self,
        *,
        journal: Journal,
        policy: Policy,
        toolsets: Sequence[Toolset],
        paths: Paths,
        clock: Clock,
        turn_limits: Limits | None = None,
        settings: GateSettings | None = None,
        results: Results | None = None,
    ) -> None:
        self._journal = journal
        self.policy = policy
        self._toolsets = tuple(toolsets)
        self._paths = paths
        self._clock = clock
        self._settings = settings or GateSettings()
        self._results = results or Results()
        self.budget = Budget(journal, turn_limits=turn_limits or Limits())
        self.calls = Calls(journal)
        self.escalations = Escalations(journal, clock=clock)
        self.grants = Grants(journal, clock=clock)

    def tools(self) -> tuple[Tool, ...]:
        """The tools whose calls are not all denied: what a model is shown."""
        return tuple(tool for tool, _ in self._offers().values() if self.policy.could_allow(tool))

    async def submit(self, call: Call) -> Answer:
        """Turn a wish into an answer. Asked again under the same id, a call gets the answer it got before."""
        recorded = self.calls.answer(call)
        if recorded is not None:
            return recorded
        cut_off = self.calls.cut_off(call)
        if cut_off is not None and not cut_off.is_idempotent:
            return await self._leave_unknown(call)
        cleared = await self._clear(call)
        if isinstance(cleared, Parked):
            return cleared
        if isinstance(cleared, Decision):
            return await self._refuse(call, cleared)
        try:
            reservation = self.budget.reserve(Amount(calls=1))
        except BudgetExceeded as error:
            return await self._refuse(call, _budget_decision(error))
        try:
            await self._journal.append(
                CallIntended(
                    call=cleared.call,
                    decision=cleared.decision,
                    digest=cleared.call.digest,
                    tool_digest=cleared.tool.digest,
                    asked=call.digest if cleared.call is not call else "",
                    is_idempotent=cleared.tool.is_idempotent,
                    escalation=cleared.escalation,
                    grant=cleared.grant,
                    reserved=reservation.amount,
                )
            )
            settled = await self._perform(cleared)
            await self._journal.append(settled)
        finally:
            self.budget.release(reservation)
        await self._warn()
        return answer_of(settled)

    async def consult(self, *, turn: int, step: int, model: Model, prompt: Prompt, on_text: OnText) -> Reply:
        """Ask the model, recorded and charged like any effect. Raises BudgetExceeded or ModelError."""
        room = self.budget.remaining("tokens")
        wanted = _estimate_tokens(prompt)
        allowed = prompt.max_tokens
        if room is not None:
            allowed = min(allowed or int(room), max(0, int(room) - wanted))
        reservation = self.budget.reserve(Amount(steps=1, tokens=wanted + (1 if room is not None else 0)))
        try:
            await self._journal.append(
                ModelAsked(turn=turn, step=step, model=model.name, reserved=reservation.amount)
            )
            try:
                reply = await model.ask(
                    Prompt(
                        system=prompt.system, messages=prompt.messages, tools=prompt.tools, max_tokens=allowed
                    ),
                    on_text,
                )
            except ModelError as error:
                await self._journal.append(
                    ModelFailed(
                        turn=turn,
                        step=step,
                        code=error.code,
                        reason=str(error),
                        usage=error.usage or NOTHING_PAID,
                    )
                )
                raise
            await self._journal.append(
                ModelReplied(
                    turn=turn,
                    step=step,
                    model=model.name,
                    message=reply.message,
                    usage=reply.usage,
                    finish=reply.finish,
                )
            )
        finally:
            self.budget.release(reservation)
        await self._warn()
        return reply

    async def resolve(
        self, id: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> Ruling:
        """Take a person's answer, and the grant it asks for. Raises EscalationUnknown when it comes late."""
        ruling = await self.escalations.answer(id, response, principal=principal, transport=transport)
        grant = grant_for(ruling.escalation, response, principal=principal, now_ms=self._clock.now_ms())
        if grant is not None:
            await self._journal.append(GrantGiven(grant=grant))
        return ruling

    async def wait(self, id: EscalationId) -> Ruling:
        """Wait for a person's answer; when the time is up that is a no."""
        return await self.escalations.wait(id)

    async def revoke(self, id: GrantId) -> None:
        """Take a standing yes back."""
        await self._journal.append(GrantRevoked(grant=id))

    async def _clear(self, call: Call) -> _Cleared | Decision | Parked:
        judged = self._judge(call)
        tool = judged.request.tool
        if judged.decision.verdict == "deny" or tool is None:
            return judged.decision
        if judged.decision.verdict != "escalate":
            return _Cleared(call=call, decision=judged.decision, tool=tool)
        asked = self.escalations.of(call)
        if isinstance(asked, Ruling):
            return self._follow_ruling(asked, judged, tool)
        if isinstance(asked, Escalation):
            return Parked(escalation=asked.id)
        if grant := self.grants.covering(judged.request):
            return _Cleared(call=call, decision=judged.decision, tool=tool, grant=grant.id)
        if not self._settings.can_ask:
            return _no(judged.decision, "no-handler", "it needs a person's yes and nobody can be asked here")
        now_ms = self._clock.now_ms()
        escalation = Escalation(
            id=EscalationId(new_token()),
            call=call,
            decision=judged.decision,
            digest=call.digest,
            tool_digest=tool.digest,
            policy_digest=self.policy.digest,
            opened_ms=now_ms,
            expires_ms=now_ms + int(self._settings.escalation_seconds * 1000),
            targets=judged.request.targets,
        )
        await self.escalations.open(escalation)
        return Parked(escalation=escalation.id)

    def _follow_ruling(self, ruling: Ruling, judged: "_Judged", tool: Tool) -> _Cleared | Decision:
        """Act on a person's answer, if what they saw is still what would happen."""
        asked, call = ruling.escalation, judged.request.call
        if ruling.verdict != "approve":
            said = "said no" if ruling.verdict == "deny" else "did not answer"
            return _no(
                judged.decision, "person", f"the person {said}{': ' if ruling.reason else ''}{ruling.reason}"
            )
        shown = (asked.digest, asked.tool_digest, asked.policy_digest)
        if shown != (call.digest, tool.digest, self.policy.digest):
            return _no(
                judged.decision, "changed-after-approval", "what was approved is no longer what would happen"
            )
        if asked.targets != judged.request.targets:
            return _no(
                judged.decision, "moved-after-approval", "a path or host now leads elsewhere than approved"
            )
        if ruling.response is not None and ruling.response.arguments is not None:
            return self._edited(call, ruling.response.arguments, asked.id)
        return _Cleared(call=call, decision=judged.decision, tool=tool, escalation=asked.id)

    def _edited(self, call: Call, arguments: JsonObject, escalation: EscalationId) -> _Cleared | Decision:
        """A person changed the arguments: judged again, and only a deny stands against their word."""
        edited = Call(
            id=call.id,
            operation=call.operation,
            arguments=arguments,
            principal=call.principal,
            labels=call.labels,
        )
        judged = self._judge(edited)
        if judged.decision.verdict == "deny" or judged.request.tool is None:
            return judged.decision
        return _Cleared(
            call=edited, decision=judged.decision, tool=judged.request.tool, escalation=escalation
        )

    def _judge(self, call: Call) -> "_Judged":
        offer = self._offers().get(call.operation)
        tool = offer[0] if offer else None
        if tool is None:
            # The policy still names the rule: an unknown operation is denied by it, not by us.
            request = Request(call=call, tool=None)
            return _Judged(request=request, decision=self.policy.judge(request))
        problem = validate_arguments(tool, call.arguments)
        if problem is not None:
            request = Request(call=call, tool=tool)
            return _Judged(request=request, decision=_deny("invalid-arguments", problem))
        request = Request(call=call, tool=tool, targets=targets_of(tool, call.arguments, self._paths))
        if self.calls.repeats(call) >= self._settings.repeats:
            reason = f"the same call was made {self._settings.repeats} times in this turn"
            return _Judged(request=request, decision=_deny("circuit-breaker", reason))
        return _Judged(request=request, decision=self.policy.judge(request))

    async def _perform(self, cleared: _Cleared) -> CallSettled:
        """Carry it out; whatever happens becomes an event."""
        call = cleared.call
        toolset = self._offers()[call.operation][1]
        begun = self._clock.monotonic()
        status, performed, error = "ok", Performed(), ""
        try:
            async with asyncio.timeout(self._settings.call_seconds):
                performed = await toolset.perform(call, is_staged=cleared.decision.verdict == "stage")
        except (TimeoutError, ToolTimeout):
            status, error = "timeout", f"no answer within {self._settings.call_seconds:g} seconds"
        except asyncio.CancelledError:
            settled = CallSettled(call=call.id, status="cancelled", error="the turn was cancelled")
            await asyncio.shield(self._journal.append(settled))
            raise
        except (HoldfastError, OSError, ValueError) as problem:
            status, error = "error", f"{_public_name(problem)}: {problem}"
        except Exception as problem:
            # A toolset that breaks is the toolset's failure; its text may hold anything, so only its kind is told.
            status, error = "error", f"ToolFailed: the tool broke ({type(problem).__name__})"
        return CallSettled(
            call=call.id,
            status=status,  # type: ignore[arg-type]
            result=self._results.clean(performed.result),
            error=self._results.redact(error),
            amount=performed.amount,
            changes=performed.changes,
            duration_ms=round((self._clock.monotonic() - begun) * 1000, 3),
        )

    async def _refuse(self, call: Call, decision: Decision) -> Refused:
        await self._journal.append(CallRefused(call=call, decision=decision))
        return Refused(reason=decision.reason, rule=decision.rule)

    async def _leave_unknown(self, call: Call) -> Failed:
        reason = "the process died during this call; whether it happened is not known, and it is not repeated"
        settled = CallSettled(call=call.id, status="unknown", error=reason)
        await self._journal.append(settled)
        return Failed(error="unknown", reason=reason)

    async def _warn(self) -> None:
        for dimension, spent, limit in self.budget.nearly_spent():
            await self._journal.append(BudgetWarned(dimension=dimension, spent=spent, limit=limit))

    def _offers(self) -> dict[str, tuple[Tool, Toolset]]:
        return {tool.name: (tool, toolset) for toolset in self._toolsets for tool in toolset.tools()}


class _Judged(Value):
    request: Request
    decision: Decision


NOTHING_PAID = Usage(cost_usd=Decimal(0))


def _deny(rule: str, reason: str) -> Decision:
    return Decision(verdict="deny", rule=rule, reason=reason, source="gate")


def _no(decision: Decision, rule: str, reason: str) -> Decision:
    """A refusal that keeps the name of the rule that asked."""
    return Decision(
        verdict="deny",
        rule=decision.rule,
        reason=reason,
        source=f"{decision.source} ({rule})" if decision.source else rule,
        escalated_roles=decision.escalated_roles,
    )


def _budget_decision(error: BudgetExceeded) -> Decision:
    return _deny(f"budget-{error.dimension}", str(error))


def _estimate_tokens(prompt: Prompt) -> int:
    """A lower bound for what the request will be charged: four characters a token is generous for every tokenizer."""
    characters = len(prompt.system) + sum(len(repr(message)) for message in prompt.messages[-1:])
    return characters // 8


def _public_name(problem: Exception) -> str:
    return type(problem).__name__
