"""A policy with a fixed verdict for each operation: the fake for tests, and for hosts that decide elsewhere."""

from collections.abc import Mapping

from holdfast.core import Decision, Tool, Verdict, digest
from holdfast.policy.contract import Request
from holdfast.policy.document import LabelRules
from holdfast.policy.structural import unknown_tool, unsafe_target


class FixedPolicy:
    """A verdict for each operation. Unknown tools and protected or invalid paths are always denied."""

    def __init__(
        self, name: str = "fixed", default: Verdict = "deny", verdicts: Mapping[str, Verdict] | None = None
    ) -> None:
        self._name = name
        self._default: Verdict = default
        self._verdicts = dict(verdicts or {})
        self._digest = digest([name, default, self._verdicts])

    @property
    def name(self) -> str:
        return self._name

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def sandboxes(self) -> None:
        return None

    @property
    def labels(self) -> tuple[LabelRules, ...]:
        return ()

    def judge(self, request: Request) -> Decision:
        refusal = unsafe_target(request) or unknown_tool(request)
        if refusal is not None:
            return refusal
        operation = request.call.operation
        verdict = self._verdicts.get(operation, self._default)
        rule = operation if operation in self._verdicts else "default"
        roles = (
            tuple(dict.fromkeys(target.role for target in request.targets)) if verdict == "escalate" else ()
        )
        return Decision(
            verdict=verdict,
            rule=rule,
            reason=f"{operation} is fixed to {verdict}",
            source=self._name,
            escalated_roles=roles,
        )

    def could_allow(self, tool: Tool) -> bool:
        return self._verdicts.get(tool.name, self._default) != "deny"
