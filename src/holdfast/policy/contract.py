"""What every policy promises: a pure judgement of a request. No I/O, no clock, no await; what is missing means no."""

from typing import Protocol

from holdfast.core import Call, Decision, Target, Tool, Value


class Request(Value):
    """A call with everything needed to judge it. `tool` is None where nobody offers the operation."""

    call: Call
    tool: Tool | None
    targets: tuple[Target, ...] = ()


class Policy(Protocol):
    """Data that judges a call."""

    @property
    def name(self) -> str:
        """What a person calls it."""
        ...

    @property
    def digest(self) -> str:
        """Names this exact policy; recorded with every escalation."""
        ...

    @property
    def sandboxes(self) -> tuple[str, ...] | None:
        """Where code may run, the first by preference; None is anywhere."""
        ...

    def judge(self, request: Request) -> Decision:
        """Allow, deny, escalate or stage, with rule and reason."""
        ...

    def could_allow(self, tool: Tool) -> bool:
        """Whether some call of this tool might not be denied; a tool that never passes is not shown to the model."""
        ...
