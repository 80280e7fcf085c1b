"""Clearing a call: judged, and where the policy asks for it, put before a person.

A person's answer counts only for what they saw. The call is judged again after it, and refused if the call, the tool, the
policy or the place a path leads to is another by then.
"""

from typing import NamedTuple

import msgspec

from holdfast.core import (
    Call,
    Clock,
    Decision,
    Escalation,
    EscalationId,
    GrantId,
    JsonObject,
    Parked,
    Target,
    new_token,
)
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.grants import Grants
from holdfast.gate.judge import Judge, Judgement, RegisteredTool
from holdfast.gate.provenance import Provenance
from holdfast.policy import contents_of


class Authorized(NamedTuple):
    """A call that may be made: by policy, by a grant or by a person."""

    call: Call
    decision: Decision
    offer: RegisteredTool
    targets: tuple[Target, ...]
    digest: str
    policy_digest: str
    escalation: EscalationId | None = None
    grant: GrantId | None = None


class Authorizer:
    """Judge, ask, judge again."""

    def __init__(
        self,
        *,
        judge: Judge,
        escalations: Escalations,
        origins: Provenance,
        grants: Grants,
        clock: Clock,
        escalation_seconds: float,
        can_ask: bool,
    ) -> None:
        self._judge = judge
        self._escalations = escalations
        self._origins = origins
        self._grants = grants
        self._clock = clock
        self._escalation_seconds = escalation_seconds
        self._can_ask = can_ask

    async def clear(self, call: Call, digest: str) -> Authorized | Decision | Parked:
        """May this be made now? A decision is a no, parked is a wait."""
        judged = await self._judge.judge(call, digest)
        decision, offer = judged.decision, judged.offer
        if decision.verdict == "deny" or offer is None:
            return decision
        if decision.verdict != "escalate":
            return self._cleared(judged, offer)
        asked = self._escalations.of(call)
        if isinstance(asked, Ruling):
            return await self._follow(asked, judged, offer)
        if isinstance(asked, Escalation):
            return Parked(escalation=asked.id)
        if not offer.tool.asks_person and (grant := self._grants.covering(judged.request)):
            return self._cleared(judged, offer, grant=grant.id)
        if not self._can_ask:
            return _no(decision, "no-handler", "it needs a person's yes and nobody can be asked here")
        return await self._ask(judged, offer)

    async def _ask(self, judged: Judgement, offer: RegisteredTool) -> Parked:
        call = judged.request.call
        origins, now_ms = await self._origins.of(call), self._clock.now_ms()
        escalation = Escalation(
            id=EscalationId(new_token()),
            call=msgspec.structs.replace(call, labels=(*call.labels, *origins)),
            decision=judged.decision,
            digest=judged.digest,
            tool_digest=offer.digest,
            policy_digest=self._judge.policy.digest,
            opened_ms=now_ms,
            expires_ms=now_ms + int(self._escalation_seconds * 1000),
            targets=judged.request.targets,
            contents=contents_of(offer.tool, call.arguments),
        )
        await self._escalations.open(escalation)
        return Parked(escalation=escalation.id)

    async def _follow(
        self, ruling: Ruling, judged: Judgement, offer: RegisteredTool
    ) -> Authorized | Decision:
        """Act on a person's answer, if what they saw is still what would happen."""
        asked, call, decision = ruling.escalation, judged.request.call, judged.decision
        if ruling.verdict != "approve":
            said = "said no" if ruling.verdict == "deny" else "did not answer"
            return _no(decision, "person", ": ".join(filter(None, (f"the person {said}", ruling.reason))))
        shown = (asked.digest, asked.tool_digest, asked.policy_digest)
        if shown != (judged.digest, offer.digest, self._judge.policy.digest):
            reason = "what was approved is no longer what would happen"
            return _no(decision, "changed-after-approval", reason)
        if asked.targets != judged.request.targets:
            return _no(decision, "moved-after-approval", "a path or host now leads elsewhere than approved")
        if ruling.response is not None and ruling.response.arguments is not None:
            return await self._edited(call, ruling.response.arguments, asked.id)
        return self._cleared(judged, offer, escalation=asked.id)

    async def _edited(
        self, call: Call, arguments: JsonObject, escalation: EscalationId
    ) -> Authorized | Decision:
        """A person changed the arguments: judged again, and only a deny stands against their word."""
        edited = Call(
            id=call.id,
            operation=call.operation,
            arguments=arguments,
            principal=call.principal,
            labels=call.labels,
        )
        judged = await self._judge.judge(edited, edited.digest)
        if judged.decision.verdict == "deny" or judged.offer is None:
            return judged.decision
        return self._cleared(judged, judged.offer, escalation=escalation)

    def _cleared(
        self,
        judged: Judgement,
        offer: RegisteredTool,
        *,
        escalation: EscalationId | None = None,
        grant: GrantId | None = None,
    ) -> Authorized:
        return Authorized(
            judged.request.call,
            judged.decision,
            offer,
            judged.request.targets,
            judged.digest,
            self._judge.policy.digest,
            escalation,
            grant,
        )


def _no(decision: Decision, kind: str, reason: str) -> Decision:
    """A refusal that keeps the name of the rule that asked."""
    return Decision(
        verdict="deny",
        rule=decision.rule,
        reason=reason,
        source=f"{decision.source} ({kind})" if decision.source else kind,
        escalated_roles=decision.escalated_roles,
    )
