"""Yeses that were given beforehand, with --yes-to: said rule by rule, whether or not somebody could be asked."""

from collections.abc import Collection

from holdfast.core import Escalation, Needs, Outcome, Response
from holdfast.session import Approver, Session


class PreApproved:
    """Answers what the named rules ask about, and nothing else."""

    def __init__(self, session: Session, rules: Collection[str]) -> None:
        self._session = session
        self._rules = rules

    def before(self, approver: Approver) -> Approver:
        """An approver that is asked only about the rest."""

        async def asked(escalation: Escalation) -> Response | None:
            if not self._covers(escalation):
                return await approver(escalation)
            await self._approve(escalation)
            return None

        return asked

    async def go_on(self, outcome: Outcome | None) -> Outcome | None:
        """Go on with a turn that waits, until something else waits or it is over."""
        while isinstance(outcome, Needs):
            covered = [each for each in self._session.escalations() if self._covers(each)]
            if not covered:
                break
            for escalation in covered:
                await self._approve(escalation)
            outcome = await self._session.advance()
        return outcome

    def _covers(self, escalation: Escalation) -> bool:
        return escalation.decision.rule in self._rules

    async def _approve(self, escalation: Escalation) -> None:
        reason = f"given beforehand with --yes-to {escalation.decision.rule}"
        response = Response(verdict="approve", reason=reason)
        await self._session.resolve(escalation.id, response, transport="--yes-to")
