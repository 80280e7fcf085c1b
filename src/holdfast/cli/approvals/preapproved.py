"""Approvals given in advance with --yes-to RULE, with or without a terminal."""

from collections.abc import Collection

from holdfast.core import Escalation, Response
from holdfast.session import Approver, Session


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
