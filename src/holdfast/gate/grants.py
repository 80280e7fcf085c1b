"""Grants: a person's standing yes. It covers what was shown and nothing more, and it never lifts a deny."""

from holdfast.core import Call, Clock, Escalation, Grant, GrantId, Principal, Response, Target, new_token
from holdfast.core.events import AnyEvent, CallIntended, GrantGiven, GrantRevoked, Recorded
from holdfast.core.fold import Fold
from holdfast.policy import Request
from holdfast.store import Journal


class Grants(Fold):
    """The grants that stand now, folded from the journal."""

    def __init__(self, journal: Journal, *, clock: Clock) -> None:
        self._clock = clock
        super().__init__(journal)

    def reset(self) -> None:
        self._grants: dict[GrantId, Grant] = {}
        self._uses: dict[GrantId, int] = {}

    def apply(self, event: AnyEvent, entry: Recorded) -> None:
        match event:
            case GrantGiven():
                self._grants[event.grant.id] = event.grant
            case GrantRevoked():
                self._grants.pop(event.grant, None)
            case CallIntended(grant=str() as id):
                self._uses[GrantId(id)] = self._uses.get(GrantId(id), 0) + 1
            case _:
                pass

    def standing(self, turn: int) -> tuple[Grant, ...]:
        """Every grant that could still cover a call of this turn."""
        now_ms = self._clock.now_ms()
        return tuple(
            grant
            for grant in self._grants.values()
            if (grant.expires_ms is None or now_ms < grant.expires_ms)
            and (grant.uses_left is None or self._uses.get(grant.id, 0) < grant.uses_left)
            and (grant.turn is None or grant.turn == turn)
        )

    def covering(self, request: Request) -> Grant | None:
        """A grant that covers this request, if one does."""
        call = request.call
        return next(
            (grant for grant in self.standing(call.turn) if _covers(grant, call, request.targets)), None
        )


def grant_for(
    escalation: Escalation, response: Response, *, principal: Principal, now_ms: int
) -> Grant | None:
    """The grant that an answer asks for; None for a plain yes or no."""
    if response.verdict != "approve" or response.scope == "once" or response.arguments is not None:
        return None
    minutes = response.amount if response.scope == "minutes" else None
    return Grant(
        id=GrantId(new_token()),
        operation=escalation.call.operation,
        rule=escalation.decision.rule,
        targets=escalation.targets,
        arguments_digest=None if escalation.targets else escalation.digest,
        scope=response.scope,
        given_by=principal,
        given_ms=now_ms,
        turn=escalation.call.turn if response.scope == "turn" else None,
        uses_left=response.amount if response.scope == "times" else None,
        expires_ms=now_ms + minutes * 60_000 if minutes is not None else None,
    )


def _covers(grant: Grant, call: Call, targets: tuple[Target, ...]) -> bool:
    if grant.operation != call.operation:
        return False
    if grant.arguments_digest is not None:
        return grant.arguments_digest == call.digest
    return bool(targets) and all(target in grant.targets for target in targets)
