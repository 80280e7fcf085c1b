"""Explains a decision: claim by claim, with the rules that were skipped."""

from holdfast.core import (
    Call,
    CallFacts,
    CommandTarget,
    Decision,
    NameTarget,
    PathTarget,
    Role,
    Target,
    UrlTarget,
    Value,
)
from holdfast.policy.contract import Policy, Request
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.facts import NO_FACTS
from holdfast.policy.tiers import TieredPolicy


class SkippedRule(Value):
    """A rule for the operation that does not decide the claim."""

    rule: str
    source: str
    because: str


class ClaimExplanation(Value, rename={"skipped_rules": "passed_over"}):
    """The decision on one claim of the call."""

    role: Role | None
    argument: str = ""
    given: str = ""
    leads_to: str = ""
    decision: Decision
    skipped_rules: tuple[SkippedRule, ...] = ()


class DecisionExplanation(Value):
    """A decision with its reasons; `tiers` if several policies judged."""

    policy: str
    call: Call
    decision: Decision
    claims: tuple[ClaimExplanation, ...] = ()
    facts: CallFacts = NO_FACTS
    tiers: tuple["DecisionExplanation", ...] = ()

    def lines(self) -> list[str]:
        """The explanation as text."""
        decision = self.decision
        out = [
            f"{decision.verdict}  {self.call.operation}  by {decision.rule} ({decision.source or self.policy})"
        ]
        out.append(f"  because {decision.reason}")
        if decision.wait_seconds is not None:
            out.append(f"  waits for an answer: {decision.wait_seconds:g} seconds, then it is denied")
        if self.facts.tier is not None:
            out.append(f"  sandbox: {self.facts.tier}")
        out += [f"  host {host}: in {', '.join(groups)}" for host, groups in self.facts.host_groups.items()]
        out += _origin_lines(self.facts)
        for claim in self.claims:
            subject = (
                f"{claim.role} {claim.argument}={claim.given!r}"
                if claim.argument
                else claim.role or "the call"
            )
            arrow = f" -> {claim.leads_to}" if claim.leads_to and claim.leads_to != claim.given else ""
            out.append(f"  {claim.decision.verdict:<9}{subject}{arrow}  by {claim.decision.rule}")
            out += [
                f"             not {one.rule} ({one.source}): {one.because}" for one in claim.skipped_rules
            ]
        for tier in self.tiers:
            out += [f"  {line}" for line in tier.lines()]
        return out


def _origin_lines(facts: CallFacts) -> list[str]:
    levels = facts.levels
    if levels is None:
        return []
    lines = [f"  author: {levels.author}"] if levels.author != "own" else []
    lines += [f"  {name}: {levels.source_of(name)} ({levels.standing_of(name)})" for name in levels.arguments]
    return [*lines, "  carries something secret"] if levels.carries_secret else lines


def explain(policy: Policy, request: Request) -> DecisionExplanation:
    """Judge a request and explain the decision."""
    decision = policy.judge(request)
    if isinstance(policy, TieredPolicy):
        tiers = tuple(explain(tier, request) for tier in policy.policies)
        return DecisionExplanation(policy=policy.name, call=request.call, decision=decision, tiers=tiers)
    if not isinstance(policy, RulePolicy):
        return DecisionExplanation(
            policy=policy.name, call=request.call, decision=decision, facts=request.facts
        )
    claims = tuple(
        ClaimExplanation(
            role=decided.claim.role,
            argument=decided.claim.target.argument if decided.claim.target is not None else "",
            given=_given(decided.claim.target),
            leads_to=_leads_to(decided.claim.target),
            decision=decided.decision,
            skipped_rules=tuple(
                SkippedRule(rule=rule.name, source=rule.source, because=because)
                for rule, because in policy.skipped_rules(decided, request)
            ),
        )
        for decided in policy.decide_claims(request)
    )
    return DecisionExplanation(
        policy=policy.name, call=request.call, decision=decision, claims=claims, facts=request.facts
    )


def _given(target: Target | None) -> str:
    match target:
        case PathTarget():
            return target.location.given
        case UrlTarget():
            return target.given
        case NameTarget():
            return target.value
        case CommandTarget():
            return target.text
        case None:
            return ""


def _leads_to(target: Target | None) -> str:
    if isinstance(target, PathTarget):
        return target.location.inside or target.location.real
    return f"{target.host}{target.path}" if isinstance(target, UrlTarget) else ""
