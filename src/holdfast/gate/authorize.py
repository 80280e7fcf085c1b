"""Authorizing a call: judge it and, where the policy requires it, ask a person for approval.

An approval covers only what the person saw. The call is judged again afterwards and refused if the call, the tool, the
policy or the file behind a path has changed.
"""

from collections.abc import Sequence
from typing import NamedTuple, assert_never

import msgspec

from holdfast.core import (
    Call,
    CallLevels,
    CallOrigins,
    Clock,
    Decision,
    Escalation,
    EscalationId,
    GrantId,
    JsonObject,
    Offer,
    Parked,
    PathTarget,
    Target,
    Tool,
    is_covered,
    is_person,
    new_token,
    off_loop,
    outside_paths,
    shortest_wait,
)
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.gate.grants import Grants, find_offers
from holdfast.gate.judge import Judge, Judgement, RegisteredTool
from holdfast.gate.large_values import LargeValues
from holdfast.gate.provenance import Provenance
from holdfast.policy import contents_of


class Authorized(NamedTuple):
    """A call that may be executed: allowed by the policy, by a grant or by a person."""

    call: Call
    decision: Decision
    registered: RegisteredTool
    targets: tuple[Target, ...]
    digest: str
    policy_digest: str
    escalation: EscalationId | None = None
    grant: GrantId | None = None


class Authorizer:
    """Judges, asks for approval, judges again."""

    def __init__(
        self,
        *,
        judge: Judge,
        escalations: Escalations,
        provenance: Provenance,
        grants: Grants,
        large_values: LargeValues,
        clock: Clock,
        escalation_seconds: float | None,
        can_ask: bool,
        travels: bool = False,
    ) -> None:
        self._judge = judge
        self._travels = travels
        """Whether the workspace has another place on each machine, and the same files."""
        self._escalations = escalations
        self._provenance = provenance
        self._grants = grants
        self._large_values = large_values
        self._clock = clock
        self._escalation_seconds = escalation_seconds
        self._can_ask = can_ask

    async def authorize(
        self, call: Call, digest: str, *, origins: CallOrigins | None = None
    ) -> Authorized | Decision | Parked:
        """Decide whether the call may be executed now. A Decision is a refusal; Parked means that it waits for approval."""
        recorded = self._escalations.recorded_levels(call) if origins is None else None
        judgement = await self._judge.judge(call, digest, origins=origins, recorded_levels=recorded)
        decision, registered = judgement.decision, judgement.registered
        if registered is None:
            return decision  # an operation that no toolset offers is denied
        match decision.verdict:
            case "deny":
                return decision
            case "allow" | "stage":
                return self._authorized(
                    judgement, registered, grant=await self._grant_outside(judgement, registered)
                )
            case "escalate":
                return await self._seek_approval(judgement, registered)
            case _:
                assert_never(decision.verdict)

    async def _grant_outside(self, judgement: Judgement, registered: RegisteredTool) -> GrantId | None:
        """The grant that opens the paths outside the workspace, if the call has any: a rule alone does not."""
        if registered.approved_paths is None or not outside_paths(judgement.request.targets):
            return None
        grant = await self._grants.find_covering(judgement.request)
        return grant.id if grant is not None else None

    async def _seek_approval(
        self, judgement: Judgement, registered: RegisteredTool
    ) -> Authorized | Decision | Parked:
        """Use the answer there is, or a grant, or escalate."""
        call, decision = judgement.request.call, judgement.decision
        asked = self._escalations.find(call)
        if isinstance(asked, Ruling):
            return await self._apply_ruling(asked, judgement, registered)
        if isinstance(asked, Escalation):
            return Parked(escalation=asked.id)
        if obstacle := await _obstacle(judgement, registered):
            return _refusal(decision, "impossible", obstacle)
        if not registered.tool.asks_person and (
            grant := await self._grants.find_covering(judgement.request, rule=decision.rule)
        ):
            return self._authorized(judgement, registered, grant=grant.id)
        if not self._can_ask:
            return _refusal(decision, "no-handler", "it needs approval and no one can be asked here")
        return await self._escalate(judgement, registered)

    async def _escalate(self, judgement: Judgement, registered: RegisteredTool) -> Parked:
        call = judgement.request.call
        labels, now_ms = await self._provenance.labels_for(call), self._clock.now_ms()
        recorded = await off_loop(
            call.arguments, lambda: self._large_values.record_call(call, judgement.digest)
        )
        contents = contents_of(registered.tool, call.arguments)
        escalation = Escalation(
            id=EscalationId(new_token()),
            call=msgspec.structs.replace(recorded.value, labels=(*call.labels, *labels)),
            decision=judgement.decision,
            digest=judgement.digest,
            tool_digest=registered.digest,
            policy_digest=self._judge.policy.digest,
            opened_ms=now_ms,
            expires_ms=expiry_ms(now_ms, self._escalation_seconds, judgement.decision),
            targets=judgement.request.targets,
            contents=contents,
            offers=await self._offers(judgement, registered.tool, contents),
        )
        await self._escalations.open(escalation, blobs=recorded.blobs)
        return Parked(escalation=escalation.id)

    async def _offers(self, judgement: Judgement, tool: Tool, contents: tuple[str, ...]) -> tuple[Offer, ...]:
        if tool.asks_person:
            return ()
        call, targets = judgement.request.call, judgement.request.targets
        is_weaker = judgement.request.facts.tier not in (None, "full")
        rule = judgement.decision.rule if is_weaker else ""
        coverages = await off_loop(
            call.arguments, lambda: find_offers(call, tool, targets, contents, weaker_rule=rule)
        )
        recent = await self._judge.recent_requests(tool.group)
        counted = self._judge.recent_count()
        return tuple(
            Offer(
                coverage=each,
                covered_calls=sum(is_covered(each, past, their, found) for past, their, found in recent),
                counted_calls=counted,
            )
            for each in coverages
        )

    async def _apply_ruling(
        self, ruling: Ruling, judgement: Judgement, registered: RegisteredTool
    ) -> Authorized | Decision:
        """Apply a person's answer, provided that what they saw is still what would happen."""
        asked, call, decision = ruling.escalation, judgement.request.call, judgement.decision
        if ruling.verdict != "approve":
            is_denied = ruling.verdict == "deny"
            said = "the person denied it" if is_denied else "the person did not answer"
            refusal = _refusal(decision, "person", ": ".join(filter(None, (said, ruling.reason))))
            is_by_person = is_denied and ruling.principal is not None and is_person(ruling.principal)
            return msgspec.structs.replace(refusal, is_by_person=is_by_person)
        shown = (asked.digest, asked.tool_digest, asked.policy_digest)
        if shown != (judgement.digest, registered.digest, self._judge.policy.digest):
            reason = "what was approved is not what would happen now"
            return _refusal(decision, "changed-after-approval", reason)
        if self._comparable(asked.targets) != self._comparable(judgement.request.targets):
            return _refusal(
                decision, "moved-after-approval", "a path or host now leads elsewhere than approved"
            )
        if ruling.response is not None and ruling.response.arguments is not None:
            return await self._authorize_edited(call, ruling.response.arguments, asked.id)
        return self._authorized(judgement, registered, escalation=asked.id)

    def _comparable(self, targets: Sequence[Target]) -> list[Target]:
        """The targets without what differs between machines: where the workspace of a session that travels lies there."""
        return [
            msgspec.structs.replace(target, location=msgspec.structs.replace(target.location, real=""))
            if self._travels and isinstance(target, PathTarget) and target.location.inside is not None
            else target
            for target in targets
        ]

    async def _authorize_edited(
        self, call: Call, arguments: JsonObject, escalation: EscalationId
    ) -> Authorized | Decision:
        """Judge the arguments as a person edited them. Only a deny overrides the person."""
        edited = Call(
            id=call.id,
            operation=call.operation,
            arguments=arguments,
            principal=call.principal,
            labels=call.labels,
        )
        # What a person typed is the person's own.
        judgement = await self._judge.judge(edited, edited.digest, recorded_levels=CallLevels())
        if judgement.decision.verdict == "deny" or judgement.registered is None:
            return judgement.decision
        return self._authorized(judgement, judgement.registered, escalation=escalation)

    def _authorized(
        self,
        judgement: Judgement,
        registered: RegisteredTool,
        *,
        escalation: EscalationId | None = None,
        grant: GrantId | None = None,
    ) -> Authorized:
        return Authorized(
            judgement.request.call,
            judgement.decision,
            registered,
            judgement.request.targets,
            judgement.digest,
            self._judge.policy.digest,
            escalation,
            grant,
        )


def expiry_ms(now_ms: int, seconds: float | None, decision: Decision) -> int | None:
    """When silence becomes a denial: by the limit of the session or of the rule, whichever is shorter."""
    limit = shortest_wait((seconds, decision.wait_seconds))
    return None if limit is None else now_ms + int(limit * 1000)


async def _obstacle(judgement: Judgement, registered: RegisteredTool) -> str:
    """Why an approval could not make this call work: no one is asked about what can never be done."""
    if registered.obstacles is None:
        return ""
    return await registered.obstacles.obstacle(
        judgement.request.call, judgement.request.targets, is_staged=judgement.decision.requires_staging
    )


def _refusal(decision: Decision, kind: str, reason: str) -> Decision:
    """A refusal under the name of the rule that required approval."""
    return Decision(
        verdict="deny",
        rule=decision.rule,
        reason=reason,
        source=f"{decision.source} ({kind})" if decision.source else kind,
        escalated_roles=decision.escalated_roles,
    )
