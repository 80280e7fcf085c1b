"""Policy evaluation: `RulePolicy` judges a request by the rules of a document. A pure function, in five steps:

1. Structural refusals that no rule can override: protected and invalid paths, unknown tools, malformed arguments.
2. The operation lists refuse.
3. The call is split into claims: one for each target, one for each role whose argument is omitted, or one for a call without
   either.
4. The first rule that matches a claim decides it; without a match the claim is denied. A rule that matches only some of the
   other values of the call, or only part of a folder, does not decide, but the verdict is at least as strict as its own.
5. The strictest claim decides the call.

The parser puts deny rules first, so that deny beats allow in whatever order they are written.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.core import (
    STRICTNESS,
    Decision,
    Location,
    PathTarget,
    Role,
    Target,
    Tool,
    UrlTarget,
    Verdict,
    digest,
    restricts,
    shortest_wait,
    strictest,
)
from holdfast.policy.contract import Request
from holdfast.policy.document import LabelRules, PolicyDocument, Rule, matches_operation
from holdfast.policy.rule_index import RuleIndex
from holdfast.policy.rule_tests.levels import LevelProblem
from holdfast.policy.rule_tests.prepared_rule import PreparedRule
from holdfast.policy.rule_tests.targets import PathMatcher
from holdfast.policy.structural import BUILT_IN, refuse, structural_refusal, unsafe_target
from holdfast.policy.targets import OPAQUE_ROLES, roles_of
from holdfast.policy.urls import match_host


class Claim(NamedTuple):
    """One part of a call that needs a decision: a target, an omitted argument of a role, or the bare call."""

    role: Role | None
    target: Target | None


class ClaimDecision(NamedTuple):
    """A claim and its own decision."""

    claim: Claim
    decision: Decision


class RulePolicy:
    """Judges by the rules of a document."""

    def __init__(self, document: PolicyDocument) -> None:
        self.document = document
        self._digest = digest(document)
        rules = [PreparedRule(rule) for rule in document.rules]
        self._index = RuleIndex(rules)
        # Bounded by the tools there are: an unknown operation is refused before the lists are read.
        self._list_refusals: dict[str, Decision | None] = {}

    @property
    def name(self) -> str:
        return self.document.name

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def sandboxes(self) -> tuple[str, ...] | None:
        return self.document.sandboxes

    @property
    def labels(self) -> tuple[LabelRules, ...]:
        return () if self.document.labels is None else (self.document.labels,)

    def judge(self, request: Request) -> Decision:
        decision = self._decide_without_rules(request)
        return decision if decision is not None else _strictest(self._decide_claims(request))

    def judge_paths(self, request: Request, targets: Sequence[PathTarget]) -> list[Verdict]:
        """The verdicts on calls that differ from a request with one path only in that path, such as reading each file of a list.

        What is the same for all of them is checked once. A path that is not plain, and every path under rules that look at more
        than the path, is judged on its own.
        """
        plain = next((target for target in targets if _is_plain(target.location)), None)
        shared = request if plain is None else _with_path(request, plain)
        refused = self._decide_without_rules(shared)
        kind = (plain.role, plain.argument) if plain and self._judges_paths_alone(shared) else None
        is_by_name = kind is None or self._looks_at_names(request.call.operation, kind[0])
        by_place: dict[bool, Verdict] = {}
        verdicts: list[Verdict] = []
        for target in targets:
            if kind != (target.role, target.argument) or not _is_plain(target.location):
                verdicts.append(self.judge(_with_path(request, target)).verdict)
            elif refused is not None:
                verdicts.append(refused.verdict)
            else:
                is_inside = target.location.inside is not None
                if is_by_name or is_inside not in by_place:
                    by_place[is_inside] = self._decide(Claim(target.role, target), shared).verdict
                verdicts.append(by_place[is_inside])
        return verdicts

    def _judges_paths_alone(self, request: Request) -> bool:
        """Whether the rules for a call with one plain path look at nothing else of it."""
        match request.targets, claims_of(request) if request.tool is not None else []:
            case [PathTarget() as target], [Claim(role=role)] if role == target.role:
                rules = self._index.for_operation(request.call.operation)
            case _:
                return False
        return _is_plain(target.location) and all(
            not rule.call_tests
            and (not rule.scope or role in rule.scope)
            and all(role in test.roles for test in rule.target_tests)
            for rule in rules
            if rule.applies_to_role(role)
        )

    def _looks_at_names(self, operation: str, role: Role) -> bool:
        """Whether a rule about paths of this role asks for more than whether they are inside the workspace."""
        return any(
            not isinstance(test, PathMatcher) or test.looks_at_names
            for rule in self._index.for_operation(operation)
            if rule.applies_to_role(role)
            for test in rule.target_tests
        )

    def decide_claims(self, request: Request) -> list[ClaimDecision]:
        """Each claim of a request with its own decision; empty if the call is decided without rules."""
        return [] if self._decide_without_rules(request) is not None else self._decide_claims(request)

    def skipped_rules(self, decided: ClaimDecision, request: Request) -> tuple[tuple[Rule, str], ...]:
        """The rules for the operation that come before the deciding one, and why each does not decide the claim."""
        claim, decision = decided
        found: list[tuple[Rule, str]] = []
        for rule in self._index.for_operation(request.call.operation):
            reason = rule.mismatch_reason(claim.role, claim.target, request)
            if reason is None:
                if rule.decision is decision or rule.decides(claim.role, claim.target, request):
                    break
                reason = "it matches only part of what the call names"
            found.append((rule.rule, reason))
        return tuple(found)

    def could_allow(self, tool: Tool) -> bool:
        if tool.group in self.document.trusted_groups:
            return True
        if tool.roles is None or self._list_refusal(tool.name) is not None:
            return False
        for rule in self._index.for_operation(tool.name):
            if rule.verdict != "deny":
                return True
            if rule.is_unconditional:
                return False
        return any(tool.group == group for group in self.document.host_gates)

    def most_permissive_verdict(self, tool: Tool) -> Verdict:
        """The least strict verdict that a call of a tool can get: every argument has to pass, with the most permissive of the
        roles it may have."""
        if tool.group in self.document.trusted_groups:
            return "allow"
        required: list[Verdict] = []
        optional: list[Verdict] = [self._most_permissive_for_role(tool, None)]
        for roles in (tool.roles or {}).values():
            variants = [
                set(each) - OPAQUE_ROLES for each in (roles.default, *(one.roles for one in roles.when))
            ]
            best = [
                _pick(max, [self._most_permissive_for_role(tool, role) for role in variant])
                for variant in variants
                if variant
            ]
            if all(variants):
                required.append(_pick(min, best))
            else:
                optional += best
        return _pick(max, required) if required else _pick(min, optional)

    def _most_permissive_for_role(self, tool: Tool, role: Role | None) -> Verdict:
        found: list[Verdict] = ["deny" if tool.group not in self.document.host_gates else "escalate"]
        for rule in self._index.for_operation(tool.name):
            if rule.applies_to_role(role):
                found.append(rule.verdict)
            if rule.is_unconditional:
                break
        return _pick(min, found)

    def _decide_without_rules(self, request: Request) -> Decision | None:
        """The decision on a call that the rules do not judge, or None."""
        operation = request.call.operation
        if operation.partition(".")[0] in self.document.trusted_groups:
            return unsafe_target(request) or Decision(
                verdict="allow",
                rule="trusted-server",
                reason=f"{operation} is part of the host",
                source=self.document.source or BUILT_IN,
            )
        return structural_refusal(request) or self._list_refusal(operation)

    def _list_refusal(self, operation: str) -> Decision | None:
        if operation not in self._list_refusals:
            self._list_refusals[operation] = self._check_lists(operation)
        return self._list_refusals[operation]

    def _check_lists(self, operation: str) -> Decision | None:
        document = self.document
        if any(matches_operation(pattern, operation) for pattern in document.denied_operations):
            return refuse("operation-denied", f"Operation explicitly denied: {operation}")
        allowed = document.allowed_operations
        if allowed is not None and not any(matches_operation(pattern, operation) for pattern in allowed):
            return refuse("operation-not-allowed", f"Operation not allowed: {operation}")
        return None

    def _decide_claims(self, request: Request) -> list[ClaimDecision]:
        return [ClaimDecision(claim, self._decide(claim, request)) for claim in claims_of(request)]

    def _decide(self, claim: Claim, request: Request) -> Decision:
        gate = self.document.host_gates.get(request.call.operation.partition(".")[0])
        unlisted_host = _unlisted_host(claim.target, ("*",) if gate is None else gate, request)
        least: Decision | None = None
        problem = ""
        candidates = iter(self._index.candidates(request, claim.role, claim.target))
        for rule in candidates:
            mismatch = rule.mismatch_reason(claim.role, claim.target, request)
            if isinstance(mismatch, LevelProblem):
                problem = problem or f"{rule.rule.name!r} does not apply: {mismatch}"
            if mismatch is not None:
                continue
            names_host = gate is None and claim.role in rule.host_roles
            if unlisted_host is None or names_host or rule.verdict == "deny":
                decision = rule.decision
            else:
                decision = _ask_about_host(unlisted_host)
            least = decision if least is None else strictest([least, decision])
            if rule.decides(claim.role, claim.target, request):
                if problem and restricts(least.verdict):
                    least = msgspec.structs.replace(least, reason=f"{least.reason} ({problem})")
                if least.verdict == "escalate" and _would_stage(candidates, claim, request):
                    return msgspec.structs.replace(least, is_staged=True)
                return least
        last = (
            self._default(request)
            if unlisted_host is None or gate is None
            else _ask_about_host(unlisted_host)
        )
        return last if least is None else strictest([least, last])

    def _default(self, request: Request) -> Decision:
        return Decision(
            verdict="deny",
            rule="default-deny",
            reason=f"no rule of {self.document.name!r} matches this call of {request.call.operation}",
            source=BUILT_IN,
        )


def claims_of(request: Request) -> list[Claim]:
    """One claim for each judged target, one for each role whose argument is omitted, or one for the bare call."""
    assert request.tool is not None, "the structural checks refuse an unknown tool"
    claims = [Claim(target.role, target) for target in request.targets if target.role not in OPAQUE_ROLES]
    seen = {claim.role for claim in claims}
    for roles in roles_of(request.tool, request.call.arguments).values():
        for role in roles:
            if role not in seen and role not in OPAQUE_ROLES:
                seen.add(role)
                claims.append(Claim(role, None))
    return claims or [Claim(None, None)]


def _is_plain(location: Location) -> bool:
    """Whether the structural checks find nothing in a path that they would not find in any other."""
    is_open = location.problem is None and location.protected is None and location.read_only is None
    return is_open and location.given.isascii()


def _with_path(request: Request, target: PathTarget) -> Request:
    call = msgspec.structs.replace(
        request.call, arguments={**request.call.arguments, target.argument: target.location.given}
    )
    return msgspec.structs.replace(request, call=call, targets=(target,))


def _strictest(decided: list[ClaimDecision]) -> Decision:
    decision = strictest([one.decision for one in decided]) if len(decided) > 1 else decided[0].decision
    if decision.verdict != "escalate":
        return decision
    escalated = [one.claim.role for one in decided if one.decision.verdict == "escalate"]
    return msgspec.structs.replace(
        decision,
        escalated_roles=tuple(dict.fromkeys(role for role in escalated if role is not None)),
        wait_seconds=shortest_wait(one.decision.wait_seconds for one in decided),
        is_staged=any(one.decision.verdict == "stage" or one.decision.is_staged for one in decided),
    )


def _would_stage(later: Iterable[PreparedRule], claim: Claim, request: Request) -> bool:
    """Whether the rules after an escalation would stage the claim: an approval lifts the escalation and nothing else."""
    for rule in later:
        is_match = rule.mismatch_reason(claim.role, claim.target, request) is None
        if is_match and rule.decides(claim.role, claim.target, request):
            return rule.verdict == "stage"
    return False


def _pick(choose: Callable[..., Verdict], verdicts: Iterable[Verdict]) -> Verdict:
    """The strictest (`max`) or most permissive (`min`) verdict."""
    return choose(verdicts, key=STRICTNESS.__getitem__)


def _unlisted_host(target: Target | None, hosts: tuple[str, ...], request: Request) -> UrlTarget | None:
    """The target, if it is a URL that none of the host patterns matches."""
    if not isinstance(target, UrlTarget):
        return None
    groups = request.facts.host_groups.get(target.host, ())
    return None if any(match_host(pattern, target, groups=groups) for pattern in hosts) else target


def _ask_about_host(url: UrlTarget) -> Decision:
    problem = url.problem or f"leads to {url.host}, which no rule lists as a host that needs no approval"
    return Decision(
        verdict="escalate",
        rule="structural-domain-escalate",
        reason=f"{url.argument} {problem}",
        source=BUILT_IN,
    )
