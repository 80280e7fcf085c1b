"""Judging a call: is it well formed, what do its arguments refer to, what does the policy say. Nothing happens here."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core import (
    MAX_DEPTH,
    Call,
    CostEstimator,
    Decision,
    Paths,
    PathTarget,
    Target,
    Tool,
    Toolset,
    is_too_deep,
)
from holdfast.gate.call_index import CallIndex
from holdfast.gate.refusals import deny
from holdfast.policy import Policy, Request, Resolver, annotate, validate_arguments


class RegisteredTool(NamedTuple):
    """A tool, who carries it out, the digest of its definition, and who can say beforehand what a call costs at most."""

    tool: Tool
    toolset: Toolset
    digest: str
    estimator: CostEstimator | None


class ToolRegistry:
    """Who offers what now. Toolsets hand out what they handed out before until something changes, so this is a look and no more.

    A tool without roles gets those that the policy's own annotations give it.
    """

    def __init__(self, toolsets: Sequence[Toolset], *, policy: Policy) -> None:
        self._toolsets = tuple(toolsets)
        self._policy = policy
        self._seen: list[tuple[Tool, ...]] = []
        self._tools: dict[str, RegisteredTool] = {}

    def use_policy(self, policy: Policy) -> None:
        """Take the annotations of another policy."""
        self._policy, self._seen = policy, []

    def get(self, operation: str) -> RegisteredTool | None:
        """The offer of an operation, None where nobody has it."""
        return self._current().get(operation)

    def tools(self) -> tuple[Tool, ...]:
        """Every tool on offer."""
        return tuple(registered.tool for registered in self._current().values())

    def _current(self) -> dict[str, RegisteredTool]:
        groups = [toolset.tools() for toolset in self._toolsets]
        if groups != self._seen:
            self._seen = groups
            self._tools = {}
            for toolset, tools in zip(self._toolsets, groups, strict=True):
                estimator = toolset if isinstance(toolset, CostEstimator) else None
                for offered in tools:
                    tool = annotate(offered, self._policy)
                    # The first to offer a name keeps it: a later toolset cannot put itself in its place.
                    self._tools.setdefault(tool.name, RegisteredTool(tool, toolset, tool.digest, estimator))
        return self._tools


class Judgement(NamedTuple):
    """A call with what it refers to and what was decided; `offer` is None where the operation is unknown."""

    request: Request
    decision: Decision
    registered: RegisteredTool | None
    digest: str
    """Of the call that was judged."""


class Judge:
    """Structure first (known, well formed, not a loop), then the policy."""

    def __init__(
        self, *, policy: Policy, registry: ToolRegistry, paths: Paths, calls: CallIndex, max_repeats: int
    ) -> None:
        self.policy = policy
        self._registry = registry
        self._paths = paths
        self._calls = calls
        self._max_repeats = max_repeats
        self._resolver = Resolver()

    async def judge(self, call: Call, digest: str) -> Judgement:
        """Everything that can be said of a call without making it. `digest` was taken before, so that a change meanwhile is found."""
        registered = self._registry.get(call.operation)
        if registered is None:
            # The policy still names the rule: an unknown operation is denied by it, or by us where it trusts the whole group.
            request = Request(call=call, tool=None)
            decision = self.policy.judge(request)
            if decision.verdict != "deny":
                decision = deny("unknown-tool", f"nobody offers {call.operation[:200]!r}")
            return Judgement(request, decision, None, digest)
        problem = validate_arguments(registered.tool, call.arguments)
        if problem is not None:
            refused = deny("invalid-arguments", problem)
            return Judgement(Request(call=call, tool=registered.tool), refused, registered, digest)
        targets = await self._resolver.targets(registered.tool, call.arguments, self._paths)
        request = Request(call=call, tool=registered.tool, targets=targets)
        if self._calls.count_same_before(call, digest) >= self._max_repeats:
            reason = f"the same call was made {self._max_repeats} times in this turn; do something else"
            return Judgement(request, deny("circuit-breaker", reason), registered, digest)
        decision = self.policy.judge(request)
        if registered.tool.asks_person and decision.verdict != "deny":
            decision = Decision(verdict="escalate", rule="ask-person", reason="it asks you", source="gate")
        return Judgement(request, decision, registered, digest)

    def changed_since_judged(
        self,
        call: Call,
        registered: RegisteredTool,
        digest: str,
        targets: Sequence[Target],
        *,
        policy_digest: str,
    ) -> str:
        """What has become another since the call was judged: arguments, policy, tool or a place; empty where nothing has."""
        if call.digest != digest:
            return "its arguments were changed after it was judged"
        if self.policy.digest != policy_digest:
            return "the policy was changed after the call was judged"
        current = self._registry.get(call.operation)
        if current is None or current.digest != registered.digest:
            return "the tool was changed after the call was judged"
        for target in targets:
            if (
                isinstance(target, PathTarget)
                and self._paths.locate(target.location.given) != target.location
            ):
                return "a path leads elsewhere than when it was judged"
        return ""


def sanitize_call(call: Call) -> tuple[Call, str, str]:
    """The call as a journal can hold it, its digest, and what was wrong where none could: half a surrogate pair, no JSON, nested
    without end. Such arguments are left out.
    """
    try:
        if not is_too_deep(call.arguments):
            return call, call.digest, ""
        problem = f"its arguments are nested more than {MAX_DEPTH} levels deep"
    except (ValueError, TypeError):
        problem = "its arguments hold something that is no JSON"
    operation = call.operation.encode(errors="replace").decode()
    stripped = Call(id=call.id, operation=operation, arguments={}, principal=call.principal)
    return stripped, stripped.digest, problem
