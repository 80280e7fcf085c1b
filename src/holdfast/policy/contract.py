"""The contract of a policy: a pure function from a request to a decision. No I/O, no clock, no await; the default is deny."""

from typing import Protocol

from holdfast.core import Call, CallFacts, Decision, Target, Tool, Value
from holdfast.policy.document import LabelRules
from holdfast.policy.facts import NO_FACTS


class Request(Value):
    """A call with everything needed to judge it. `tool` is None if no toolset offers the operation."""

    call: Call
    tool: Tool | None
    targets: tuple[Target, ...] = ()
    facts: CallFacts = NO_FACTS


class Policy(Protocol):
    """Judges calls."""

    @property
    def name(self) -> str:
        """The name shown to people."""
        ...

    @property
    def digest(self) -> str:
        """Identifies this exact policy; recorded with every escalation."""
        ...

    @property
    def sandboxes(self) -> tuple[str, ...] | None:
        """The engines that may run code, in order of preference; None means any."""
        ...

    @property
    def labels(self) -> tuple[LabelRules, ...]:
        """What it says about the origin of values, one for each tier that asks; empty if none does."""
        ...

    def judge(self, request: Request) -> Decision:
        """Allow, deny, escalate or stage, with rule and reason."""
        ...

    def could_allow(self, tool: Tool) -> bool:
        """Whether some call of this tool might not be denied. The model does not see tools for which this is False."""
        ...
