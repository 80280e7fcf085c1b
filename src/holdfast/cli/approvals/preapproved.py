"""Yeses that were given beforehand, with --yes-to: said rule by rule, whether or not somebody could be asked."""

from collections.abc import Collection

from holdfast.core import Escalation, Response
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
            await self._say_yes(escalation)
            return None

        return asked

    async def answer_pending(self) -> bool:
        """Approve every open escalation that the rules cover; False if there is none."""
        covered = [each for each in self._session.escalations() if self._covers(each)]
        for escalation in covered:
            await self._say_yes(escalation)
        return bool(covered)

    def _covers(self, escalation: Escalation) -> bool:
        return escalation.decision.rule in self._rules

    async def _say_yes(self, escalation: Escalation) -> None:
        reason = f"given beforehand with --yes-to {escalation.decision.rule}"
        response = Response(verdict="approve", reason=reason)
        await self._session.resolve(escalation.id, response, transport="--yes-to")
