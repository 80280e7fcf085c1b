"""Decisions: what the policy said of a call, what a person said of an escalation, and what stands until later."""

from typing import Literal, assert_never, get_args

from holdfast.core.calls import Call
from holdfast.core.ids import EscalationId, GrantId, Principal
from holdfast.core.targets import Target
from holdfast.core.tools import Role
from holdfast.core.values import JsonObject, Value

Verdict = Literal["allow", "deny", "escalate", "stage"]


def _strictness(verdict: Verdict) -> int:
    match verdict:
        case "allow":
            return 0
        case "stage":
            return 1
        case "escalate":
            return 2
        case "deny":
            return 3
        case _:
            assert_never(verdict)


STRICTNESS: dict[Verdict, int] = {verdict: _strictness(verdict) for verdict in get_args(Verdict)}
VERDICTS: tuple[Verdict, ...] = tuple(sorted(STRICTNESS, key=STRICTNESS.__getitem__, reverse=True))
"""Every verdict, strictest first."""


def restricts(verdict: Verdict) -> bool:
    """Whether a verdict keeps a call from being executed without a person."""
    match verdict:
        case "deny" | "escalate":
            return True
        case "allow" | "stage":
            return False
        case _:
            assert_never(verdict)


class Decision(Value):
    """A verdict with the rule that gave it, where that rule stands, and why."""

    verdict: Verdict
    rule: str
    reason: str
    source: str = ""
    """Where the rule stands: `file:line`, `built-in`, or the named policy."""
    escalated_roles: tuple[Role, ...] = ()
    is_staged: bool = False
    """Of an escalation: once approved it still only becomes a proposal, for another role or tier says stage."""

    @property
    def requires_staging(self) -> bool:
        """Whether the call, once it may be executed, only stages its changes."""
        match self.verdict:
            case "stage":
                return True
            case "allow" | "escalate" | "deny":
                return self.is_staged
            case _:
                assert_never(self.verdict)


def strictest(decisions: list[Decision]) -> Decision:
    """Deny beats escalate beats stage beats allow; the first of equals."""
    return max(decisions, key=lambda decision: STRICTNESS[decision.verdict])


Scope = Literal["once", "turn", "times", "minutes", "session", "always"]
"""How long a yes holds."""
GrantReach = Literal["exact", "folder", "host"]
"""How far a standing yes goes: the very same targets, all in the same folder, or all of the same host."""


class Response(Value):
    """A person's answer to an escalation. `amount` goes with the scopes `times` and `minutes`."""

    verdict: Literal["approve", "deny"]
    scope: Scope = "once"
    reach: GrantReach = "exact"
    amount: int | None = None
    reason: str | None = None
    arguments: JsonObject | None = None
    """Edited arguments: judged again before anything happens."""


class Escalation(Value):
    """A call that waits for a person, with everything the person has to see."""

    id: EscalationId
    call: Call
    decision: Decision
    digest: str
    """Of the call: what is shown is what is performed."""
    tool_digest: str
    policy_digest: str
    opened_ms: int
    expires_ms: int
    targets: tuple[Target, ...] = ()
    contents: tuple[str, ...] = ()
    """The arguments that are mere content."""


class FixedArgument(Value):
    """An argument that a standing yes holds to one value: its digest, and as much of it as there is room to show."""

    argument: str
    digest: str
    shown: str


class Grant(Value):
    """A standing yes: which calls it covers, and until when. It never lifts a deny or a protection."""

    id: GrantId
    operation: str
    rule: str
    targets: tuple[Target, ...]
    """Every target of a later call has to lie within one of these, as far as `reach` goes."""
    reach: GrantReach = "exact"
    fixed: tuple[FixedArgument, ...] = ()
    """The arguments that refer to nothing: a later call has these, with these values."""
    contents: tuple[str, ...] = ()
    """The arguments whose value is left open; none where there is no target to hold the call to."""
    scope: Scope
    given_by: Principal
    given_ms: int
    turn: int | None = None
    uses_left: int | None = None
    expires_ms: int | None = None
