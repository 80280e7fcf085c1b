"""Approvals given in advance with --yes-to RULE, with or without a terminal."""

from collections.abc import Collection

from holdfast.core import Escalation, Response
from holdfast.core.errors import InvalidInput
from holdfast.policy import Policy, asking_rules
from holdfast.session import Approver, Session


def check_rule_names(names: Collection[str], policy: Policy) -> None:
    """Raise InvalidInput if --yes-to names a rule that never asks."""
    asking = asking_rules(policy)
    for name in names:
        if asking is not None and name not in asking:
            raise InvalidInput(
                f"--yes-to {name}: no rule of that name asks under the policy {policy.name!r}",
                hint=f"the rules that ask are: {', '.join(sorted(asking))}",
            )


class PreApproved:
    """Approves what the named rules ask about, and nothing else."""

    def __init__(self, session: Session, rules: Collection[str]) -> None:
        self._session = session
        self._rules = rules

    def before(self, approver: Approver) -> Approver:
        """Wrap an approver, which is then asked only about the rest."""

        async def approve(escalation: Escalation) -> Response | None:
            if not self._covers(escalation):
                return await approver(escalation)
            await self._approve(escalation)
            return None

        return approve

    async def answer_pending(self) -> bool:
        """Approve every open escalation that the rules cover; False if there is none."""
        covered = [each for each in self._session.escalations() if self._covers(each)]
        for escalation in covered:
            await self._approve(escalation)
        return bool(covered)

    def _covers(self, escalation: Escalation) -> bool:
        return escalation.decision.rule in self._rules

    async def _approve(self, escalation: Escalation) -> None:
        reason = f"approved in advance with --yes-to {escalation.decision.rule}"
        response = Response(verdict="approve", reason=reason)
        await self._session.resolve(escalation.id, response, transport="--yes-to")
