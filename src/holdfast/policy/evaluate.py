"""The policy made of rules. Judging is a pure function of document and request; how it goes, top to bottom:

1. What no rule may save is refused: protected and broken paths, unknown tools, malformed arguments.
2. The lists of operations refuse.
3. The call falls into claims, one for each target (or for a role whose argument is left out, or for the bare call).
4. Each claim gets the verdict of the first rule that holds for it; none holds: deny. A rule that holds for only some of the
   values beside a claim, or of what lies in its folder, does not decide it, but the verdict is at least as strict as that rule's.
5. The strictest claim decides.

Our own documents put deny rules first, so that deny beats allow whatever the order of writing.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from holdfast.core import STRICTNESS, Decision, Role, Target, Tool, UrlTarget, Verdict, digest, strictest
from holdfast.policy.contract import Request
from holdfast.policy.document import PolicyDocument, Rule, matches_operation
from holdfast.policy.matching import PreparedRule
from holdfast.policy.rule_index import RuleIndex
from holdfast.policy.structural import BUILT_IN, refuse, structural_refusal, unsafe_target
from holdfast.policy.targets import OPAQUE_ROLES, roles_of
from holdfast.policy.urls import match_host


class Claim(NamedTuple):
    """What one target, or the lack of one, asks of the policy."""

    role: Role | None
    target: Target | None


class ClaimDecision(NamedTuple):
    """A claim with the decision it gets by itself."""

    claim: Claim
    decision: Decision


class RulePolicy:
    """Judges by a document."""

    def __init__(self, document: PolicyDocument) -> None:
        self.document = document
        self._digest = digest(document)
        rules = [PreparedRule(rule) for rule in document.rules]
        self._index = RuleIndex(rules)
        # What the lists say of operations that somebody offers; an unknown one never gets this far.
        self._lists: dict[str, Decision | None] = {}

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def sandboxes(self) -> tuple[str, ...] | None:
        return self.document.sandboxes

    def judge(self, request: Request) -> Decision:
        settled = self._settle(request)
        return settled if settled is not None else _strictest(self._weigh(request))

    def decide_claims(self, request: Request) -> list[ClaimDecision]:
        """Each claim of a request with the decision it gets by itself; nothing where no rule is asked."""
        return [] if self._settle(request) is not None else self._weigh(request)

    def skipped_rules(self, weighed: ClaimDecision, request: Request) -> tuple[tuple[Rule, str], ...]:
        """The rules for the operation that do not decide a claim, up to the one that does, and why."""
        claim, decision = weighed
        found: list[tuple[Rule, str]] = []
        for rule in self._index.for_operation(request.call.operation):
            obstacle = rule.mismatch_reason(claim.role, claim.target, request)
            if obstacle is None:
                if rule.decision is decision or rule.decides(claim.role, claim.target, request):
                    break
                obstacle = "it fits only part of what the call names"
            found.append((rule.rule, obstacle))
        return tuple(found)

    def could_allow(self, tool: Tool) -> bool:
        if tool.group in self.document.trusted_groups:
            return True
        if tool.roles is None or self._listed(tool.name) is not None:
            return False
        for rule in self._index.for_operation(tool.name):
            if rule.verdict != "deny":
                return True
            if rule.is_unconditional:
                return False
        return any(tool.group == group for group in self.document.host_gates)

    def loosest(self, tool: Tool) -> Verdict:
        """The mildest verdict that the rules leave open for a tool: each role has to get that far that an argument has, in
        the mildest of the ways it may be meant."""
        if tool.group in self.document.trusted_groups:
            return "allow"
        judged: list[Verdict] = []
        others: list[Verdict] = [self._loosest_for(tool, None)]
        for roles in (tool.roles or {}).values():
            ways = [set(each) - OPAQUE_ROLES for each in (roles.default, *(one.roles for one in roles.when))]
            best = [_of(max, [self._loosest_for(tool, role) for role in way]) for way in ways if way]
            if all(ways):
                judged.append(_of(min, best))
            else:
                others += best
        return _of(max, judged) if judged else _of(min, others)

    def _loosest_for(self, tool: Tool, role: Role | None) -> Verdict:
        found: list[Verdict] = ["deny" if tool.group not in self.document.host_gates else "escalate"]
        for rule in self._index.for_operation(tool.name):
            if rule.speaks_of(role):
                found.append(rule.verdict)
            if rule.is_unconditional:
                break
        return _of(min, found)

    def _settle(self, request: Request) -> Decision | None:
        """The decision where it does not depend on rules."""
        operation = request.call.operation
        if operation.partition(".")[0] in self.document.trusted_groups:
            return unsafe_target(request) or Decision(
                verdict="allow",
                rule="trusted-server",
                reason=f"{operation} belongs to the host",
                source=self.document.source or BUILT_IN,
            )
        return structural_refusal(request) or self._listed(operation)

    def _listed(self, operation: str) -> Decision | None:
        if operation not in self._lists:
            self._lists[operation] = self._look_up(operation)
        return self._lists[operation]

    def _look_up(self, operation: str) -> Decision | None:
        document = self.document
        if any(matches_operation(pattern, operation) for pattern in document.denied_operations):
            return refuse("operation-denied", f"Operation explicitly denied: {operation}")
        allowed = document.allowed_operations
        if allowed is not None and not any(matches_operation(pattern, operation) for pattern in allowed):
            return refuse("operation-not-allowed", f"Operation not allowed: {operation}")
        return None

    def _weigh(self, request: Request) -> list[ClaimDecision]:
        return [ClaimDecision(claim, self._decide(claim, request)) for claim in claims_of(request)]

    def _decide(self, claim: Claim, request: Request) -> Decision:
        gate = self.document.host_gates.get(request.call.operation.partition(".")[0])
        stranger = _stranger(claim.target, ("*",) if gate is None else gate)
        least: Decision | None = None
        for rule in self._index.candidates(request, claim.role, claim.target):
            if rule.mismatch_reason(claim.role, claim.target, request) is not None:
                continue
            names_host = gate is None and claim.role in rule.host_roles
            if stranger is None or names_host or rule.verdict == "deny":
                decision = rule.decision
            else:
                decision = _ask_about_host(stranger)
            least = decision if least is None else strictest([least, decision])
            if rule.decides(claim.role, claim.target, request):
                return least
        last = self._default(request) if stranger is None or gate is None else _ask_about_host(stranger)
        return last if least is None else strictest([least, last])

    def _default(self, request: Request) -> Decision:
        return Decision(
            verdict="deny",
            rule="default-deny",
            reason=f"no rule of {self.document.name!r} covers this call of {request.call.operation}",
            source=BUILT_IN,
        )


def claims_of(request: Request) -> list[Claim]:
    """One claim for each judged target, one for each role whose argument is left out, or the bare call."""
    assert request.tool is not None, "an unknown tool is refused before"
    claims = [Claim(target.role, target) for target in request.targets if target.role not in OPAQUE_ROLES]
    met = {claim.role for claim in claims}
    for roles in roles_of(request.tool, request.call.arguments).values():
        for role in roles:
            if role not in met and role not in OPAQUE_ROLES:
                met.add(role)
                claims.append(Claim(role, None))
    return claims or [Claim(None, None)]


def _strictest(weighed: list[ClaimDecision]) -> Decision:
    decision = strictest([one.decision for one in weighed]) if len(weighed) > 1 else weighed[0].decision
    if decision.verdict != "escalate":
        return decision
    escalated = [one.claim.role for one in weighed if one.decision.verdict == "escalate"]
    return msgspec.structs.replace(
        decision,
        escalated_roles=tuple(dict.fromkeys(role for role in escalated if role is not None)),
        is_staged=any(one.decision.verdict == "stage" for one in weighed),
    )


def _of(choose: Callable[..., Verdict], verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest (`max`) or mildest (`min`) of some verdicts."""
    return choose(verdicts, key=STRICTNESS.__getitem__)


def _stranger(target: Target | None, hosts: tuple[str, ...]) -> UrlTarget | None:
    """The target where it is a URL and none of the hosts names it."""
    if not isinstance(target, UrlTarget) or any(match_host(pattern, target) for pattern in hosts):
        return None
    return target


def _ask_about_host(url: UrlTarget) -> Decision:
    problem = url.problem or f"leads to {url.host}, which no rule names as a host that needs no asking"
    return Decision(
        verdict="escalate",
        rule="structural-domain-escalate",
        reason=f"{url.argument} {problem}",
        source=BUILT_IN,
    )
