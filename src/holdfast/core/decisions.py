"""Decisions of the policy about a call, of a person about an escalation, and the grants that outlast one call."""

from collections.abc import Iterable
from typing import Literal, assert_never, get_args

import msgspec

from holdfast.core.calls import Call
from holdfast.core.coverage import Coverage, Offer
from holdfast.core.ids import EscalationId, GrantId, Principal
from holdfast.core.labels import CallLevels
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


SandboxTier = Literal["full", "copy", "none"]
"""How strong the command sandbox is: `full` has namespaces, an overlay, Landlock and seccomp; `copy` works on a copy with
Landlock and seccomp alone; with `none` the tools do not exist.
"""


class CallFacts(Value):
    """What rules may ask for beside the call itself. Recorded with the decision, so that it can be explained and replayed."""

    tier: SandboxTier | None = None
    """The tier of the sandbox that a command runs in; None if the call runs in no sandbox."""
    host_groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By host of the call: the named groups that it belongs to, such as `package-registries`."""
    levels: CallLevels | None = None
    """Where the arguments came from; None if the policy does not ask."""
    own_server: str = ""
    """The web server of Holdfast itself that the call leads to, as host and port; empty if it leads to none."""


class Decision(Value):
    """A verdict with the rule that gave it, the location of that rule, and the reason."""

    verdict: Verdict
    rule: str
    reason: str
    source: str = ""
    """Where the rule is defined: `file:line`, `built-in`, or the named policy."""
    escalated_roles: tuple[Role, ...] = ()
    is_staged: bool = False
    """For an escalation: if approved, the call is only staged as a proposal, because another role or tier requires it."""
    is_by_person: bool = False
    """For a denial: a person denied the call, and the reason is theirs."""
    wait_seconds: float | None = None
    """For an escalation: how long the call waits for an answer, if a rule limits it."""
    facts: CallFacts | None = None
    """The facts beside the call that held when it was judged."""

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


def shortest_wait(seconds: Iterable[float | None]) -> float | None:
    """The shortest of several limits on waiting; None if none of them is a limit."""
    return min((each for each in seconds if each is not None), default=None)


def strictest(decisions: list[Decision]) -> Decision:
    """Return the strictest decision: deny, then escalate, stage, allow; of equals, the first."""
    return max(decisions, key=lambda decision: STRICTNESS[decision.verdict])


Scope = Literal["once", "turn", "times", "minutes", "session", "always"]
"""How long an approval is valid."""
GrantReach = Literal["exact", "folder", "host"]
"""How far a grant reaches: exactly the same targets, everything in the same folder, or everything on the same host."""


class Response(Value):
    """A person's answer to an escalation. `amount` belongs to the scopes `times` and `minutes`."""

    verdict: Literal["approve", "deny"]
    scope: Scope = "once"
    reach: GrantReach = "exact"
    amount: int | None = None
    reason: str | None = None
    offer: int | None = None
    """Which of the escalation's offers a saved approval covers, counted from 1; None covers exactly this call."""
    arguments: JsonObject | None = None
    """Edited arguments; the policy judges them again before the call is made."""


class Escalation(Value):
    """A call that waits for a person, with everything the person needs to decide."""

    id: EscalationId
    call: Call
    decision: Decision
    digest: str
    """The digest of the call: what is shown is what is performed."""
    tool_digest: str
    policy_digest: str
    opened_ms: int
    expires_ms: int | None = None
    """When silence becomes a denial; None if the call waits until it is answered."""
    targets: tuple[Target, ...] = ()
    contents: tuple[str, ...] = ()
    """The arguments that are content."""
    offers: tuple[Offer, ...] = ()
    """What a saved approval could cover, narrowest first."""


QUESTION_RULE = "ask-person"
"""The rule of an escalation that is a question of the agent."""


def is_question(escalation: Escalation) -> bool:
    """Whether the agent asks a question, which is answered with text, instead of requesting a call."""
    return escalation.decision.rule == QUESTION_RULE and escalation.decision.source == "gate"


class FixedArgument(Value):
    """An argument that a grant fixes to one value: the digest of the value, and as much of it as can be shown."""

    argument: str
    digest: str
    shown: str


class Grant(Value):
    """A saved approval: which calls it covers, and until when. It never overrides a deny or a protection."""

    id: GrantId
    operation: str
    rule: str
    targets: tuple[Target, ...]
    """Every target of a later call must be covered by one of these, as far as `reach` allows."""
    reach: GrantReach = "exact"
    fixed: tuple[FixedArgument, ...] = ()
    """The arguments that refer to no target: a later call must have the same ones, with the same values."""
    contents: tuple[str, ...] = ()
    """The arguments that can have any value; empty if the call has no target that limits it."""
    scope: Scope
    given_by: Principal
    given_ms: int
    coverage: Coverage | None = None
    """The calls that are covered. Without it, the fields above say so."""
    turn: int | None = None
    uses_left: int | None = None
    expires_ms: int | None = None
