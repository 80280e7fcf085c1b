"""Policy tiers: several policies combined, such as a user's and a project's. Each tier can only narrow the others."""

from holdfast.core import STRICTNESS, Decision, Tool, digest, shortest_wait
from holdfast.policy.contract import Policy, Request
from holdfast.policy.document import LabelRules


class TieredPolicy:
    """Every policy judges and the strictest verdict wins, so no tier can widen another."""

    def __init__(self, policies: tuple[Policy, ...]) -> None:
        self._policies = policies
        self._name = "+".join(policy.name for policy in policies)
        self._digest = digest([policy.digest for policy in policies])

    @property
    def name(self) -> str:
        return self._name

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def sandboxes(self) -> tuple[str, ...] | None:
        """The engines that every tier allows, in the order of the highest tier."""
        lists = [policy.sandboxes for policy in self._policies if policy.sandboxes is not None]
        if not lists:
            return None
        return tuple(sandbox for sandbox in lists[0] if all(sandbox in each for each in lists))

    @property
    def labels(self) -> tuple[LabelRules, ...]:
        """What each tier says; a value has the lowest of their levels."""
        return tuple(rules for policy in self._policies for rules in policy.labels)

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The tiers, highest first."""
        return self._policies

    def judge(self, request: Request) -> Decision:
        decisions = [policy.judge(request) for policy in self._policies]
        decision = max(decisions, key=lambda one: STRICTNESS[one.verdict])
        if decision.verdict != "escalate":
            return decision
        roles = dict.fromkeys(role for one in decisions for role in one.escalated_roles)
        return Decision(
            verdict="escalate",
            rule=decision.rule,
            reason=decision.reason,
            source=decision.source,
            escalated_roles=tuple(roles),
            wait_seconds=shortest_wait(one.wait_seconds for one in decisions),
            is_staged=any(one.verdict == "stage" or one.is_staged for one in decisions),
        )

    def could_allow(self, tool: Tool) -> bool:
        return all(policy.could_allow(tool) for policy in self._policies)


def combine(*policies: Policy) -> Policy:
    """The policies as one, highest tier first. At least one is required."""
    if not policies:
        raise ValueError("at least one policy is needed")
    return policies[0] if len(policies) == 1 else TieredPolicy(policies)
