"""Judging a call: is it well formed, what do its arguments refer to, what does the policy decide. Nothing is executed here."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from holdfast.core import (
    MAX_DEPTH,
    QUESTION_RULE,
    ApprovedPaths,
    BlobRef,
    Call,
    CallFacts,
    CallLevels,
    CallOrigins,
    CostEstimator,
    Decision,
    FileEffect,
    JsonObject,
    Label,
    LargeArguments,
    Location,
    ObstacleFinder,
    Paths,
    PathTarget,
    Reviewable,
    Target,
    Tool,
    Toolset,
    is_too_deep,
    restricts,
    text_bytes,
)
from holdfast.core import digest as content_digest
from holdfast.gate.call_index import CallIndex
from holdfast.gate.labels.argument_levels import ArgumentLevels
from holdfast.gate.refusals import deny
from holdfast.policy import (
    NO_FACTS,
    OwnEndpoints,
    Policy,
    Request,
    Resolver,
    SessionFacts,
    annotate,
    validate_arguments,
    with_own_server,
)

RECENT_CALLS = 1000
"""Recorded calls that an offer is measured against."""


class RegisteredTool(NamedTuple):
    """A tool, the toolset that executes it, the digest of its definition, and what else the toolset can do."""

    tool: Tool
    toolset: Toolset
    digest: str
    estimator: CostEstimator | None
    """Knows an upper bound on what a call costs."""
    obstacles: ObstacleFinder | None = None
    """Knows which calls cannot work."""
    approved_paths: ApprovedPaths | None = None
    """Opens paths outside the workspace for an approved call."""


class ToolRegistry:
    """The tools on offer. A toolset returns the same tuple until something changes, so a lookup is one comparison.

    A tool without roles gets the roles from the policy's annotations.
    """

    def __init__(self, toolsets: Sequence[Toolset], *, policy: Policy) -> None:
        self._toolsets = tuple(toolsets)
        self._policy = policy
        self._seen: list[tuple[Tool, ...]] = []
        self._tools: dict[str, RegisteredTool] = {}
        self._offered: tuple[Tool, ...] | None = None

    def use_policy(self, policy: Policy) -> None:
        """Use the annotations of another policy."""
        self._policy, self._seen = policy, []

    def get(self, operation: str) -> RegisteredTool | None:
        """The registered tool of an operation; None if no toolset offers it."""
        return self._current().get(operation)

    def tools(self) -> tuple[Tool, ...]:
        """Every tool on offer; the same tuple until something changes."""
        current = self._current()
        if self._offered is None:
            self._offered = tuple(registered.tool for registered in current.values())
        return self._offered

    def has_unread_description(self, could_allow: Callable[[Tool], bool]) -> bool:
        """Whether the model is or was shown a description that nobody has read."""
        return any(
            could_allow(annotate(tool, self._policy))
            for toolset in self._toolsets
            if isinstance(toolset, Reviewable)
            for tool in toolset.unread_tools
        )

    def _current(self) -> dict[str, RegisteredTool]:
        groups = [toolset.tools() for toolset in self._toolsets]
        if groups != self._seen:
            self._seen = groups
            self._offered = None
            self._tools = {}
            for toolset, tools in zip(self._toolsets, groups, strict=True):
                estimator = toolset if isinstance(toolset, CostEstimator) else None
                obstacles = toolset if isinstance(toolset, ObstacleFinder) else None
                opener = toolset if isinstance(toolset, ApprovedPaths) else None
                for offered in tools:
                    tool = annotate(offered, self._policy)
                    # The first toolset to register a name keeps it: a later one cannot replace it.
                    registered = RegisteredTool(tool, toolset, tool.digest, estimator, obstacles, opener)
                    self._tools.setdefault(tool.name, registered)
        return self._tools


class Judgement(NamedTuple):
    """A call, its targets and the decision; `registered` is None if the operation is unknown."""

    request: Request
    decision: Decision
    registered: RegisteredTool | None
    digest: str
    """Digest of the call as it was judged."""


class Judge:
    """Checks the structure first (known tool, valid arguments, no repetition), then asks the policy."""

    def __init__(
        self,
        *,
        policy: Policy,
        registry: ToolRegistry,
        paths: Paths,
        calls: CallIndex,
        max_repeats: int,
        facts: Callable[[], SessionFacts] = SessionFacts,
        own_endpoints: OwnEndpoints = tuple,
        levels: ArgumentLevels | None = None,
    ) -> None:
        self.policy = policy
        self._registry = registry
        self._paths = paths
        self._calls = calls
        self._max_repeats = max_repeats
        self._facts = facts
        self._own_endpoints = own_endpoints
        self._levels = levels
        self._resolver = Resolver()

    async def judge(
        self,
        call: Call,
        digest: str,
        *,
        origins: CallOrigins | None = None,
        recorded_levels: CallLevels | None = None,
    ) -> Judgement:
        """Judge a call without executing it. The caller computed `digest` earlier, so that a change in between is detected.

        `origins` say what the arguments are made of. A call that was asked about before has levels on record.
        """
        registered = self._registry.get(call.operation)
        if registered is None:
            # The policy still names the rule; we deny an operation that no toolset offers even if the policy allows its group.
            request = Request(call=call, tool=None)
            decision = self.policy.judge(request)
            if decision.verdict != "deny":
                decision = deny("unknown-tool", f"no toolset offers {call.operation[:200]!r}")
            return Judgement(request, decision, None, digest)
        problem = validate_arguments(registered.tool, call.arguments)
        if problem is not None:
            refused = deny("invalid-arguments", problem)
            return Judgement(Request(call=call, tool=registered.tool), refused, registered, digest)
        targets = await self._resolver.targets(registered.tool, call.arguments, self._paths)
        facts = self._facts_of(registered.tool, targets)
        levels = self._levels_of(call, registered.tool, origins, recorded=recorded_levels)
        if levels is not None:
            facts = msgspec.structs.replace(facts, levels=levels)
        request = Request(call=call, tool=registered.tool, targets=targets, facts=facts)
        if self._calls.count_same_before(call, digest) >= self._max_repeats:
            reason = f"this turn made the same call {self._max_repeats} times and nothing changed; do something else"
            return Judgement(request, deny("circuit-breaker", reason), registered, digest)
        decision = self.policy.judge(request)
        if (
            levels is not None
            and levels.arguments
            and recorded_levels is None
            and restricts(decision.verdict)
        ):
            # A person is asked, or the agent is told: only then is it worth a search where the arguments came from.
            levels = self._levels_of(call, registered.tool, origins, with_sources=True)
            facts = msgspec.structs.replace(facts, levels=levels)
            request = msgspec.structs.replace(request, facts=facts)
            decision = self.policy.judge(request)
        if facts != NO_FACTS:
            decision = msgspec.structs.replace(decision, facts=facts)
        if registered.tool.asks_person and decision.verdict != "deny":
            decision = Decision(verdict="escalate", rule=QUESTION_RULE, reason="it asks you", source="gate")
        elif registered.tool.requires_approval and not restricts(decision.verdict):
            reason = f"{call.operation} needs a person's approval, whatever the policy allows"
            decision = Decision(verdict="escalate", rule="requires-approval", reason=reason, source="gate")
        return Judgement(request, decision, registered, digest)

    def _facts_of(self, tool: Tool, targets: Sequence[Target]) -> CallFacts:
        return with_own_server(self._facts().for_call(tool, targets), targets, self._own_endpoints)

    def _levels_of(
        self,
        call: Call,
        tool: Tool,
        origins: CallOrigins | None,
        *,
        recorded: CallLevels | None = None,
        with_sources: bool = False,
    ) -> CallLevels | None:
        """The levels of a call; None if the policy does not ask."""
        rules = self._levels.rules(self.policy) if self._levels is not None else None
        if rules is None or self._levels is None:
            return None
        return recorded or self._levels.of_call(
            call.arguments, tool, origins, rules, with_sources=with_sources
        )

    async def judge_effect(self, call: Call, effect: FileEffect) -> Judgement:
        """Judge what a program did to a file as the call that would have done it. The content is known by its digest."""
        operation = "world.delete" if effect.kind == "deleted" else "world.write"
        arguments: JsonObject = {"path": effect.path}
        large = None
        if effect.kind != "deleted":
            arguments["content"] = f"[{effect.size:,} bytes]"
            large = LargeArguments(
                blobs={"content": BlobRef(digest=effect.digest, size=effect.size)},
                digest=content_digest([operation, effect.path, effect.digest, effect.mode]),
            )
        origin = Label(source=f"{call.operation} {call.id}")
        made = Call(
            id=call.id,
            operation=operation,
            arguments=arguments,
            principal=call.principal,
            labels=(*call.labels, origin),
            large=large,
        )
        registered = self._registry.get(operation)
        if registered is None:
            denied = deny("unknown-tool", "this session has no workspace that can be changed")
            return Judgement(Request(call=made, tool=None), denied, None, made.digest)
        targets = await self._resolver.targets(registered.tool, arguments, _Names(self._paths))
        request = Request(call=made, tool=registered.tool, targets=targets)
        return Judgement(request, self.policy.judge(request), registered, made.digest)

    async def judge_host(self, tool: Tool, call: Call) -> Judgement:
        """Judge a connection of a program, which is a call that no toolset offers."""
        targets = await self._resolver.targets(tool, call.arguments, self._paths)
        facts = self._facts_of(tool, targets)
        request = Request(call=call, tool=tool, targets=targets, facts=facts)
        return Judgement(request, self.policy.judge(request), None, call.digest)

    async def resolve(self, tool: Tool, arguments: JsonObject) -> tuple[Target, ...]:
        """What the arguments of a call refer to now."""
        return await self._resolver.targets(tool, arguments, self._paths)

    def recent_count(self) -> int:
        """How many calls `recent_requests` looks at."""
        return len(self._calls.recent(RECENT_CALLS))

    async def recent_requests(self, group: str) -> list[tuple[Call, Tool, tuple[Target, ...]]]:
        """The session's last calls to one group of tools, resolved as they would be now."""
        found: list[tuple[Call, Tool, tuple[Target, ...]]] = []
        for call in self._calls.recent(RECENT_CALLS):
            if call.operation.partition(".")[0] != group:
                continue
            registered = self._registry.get(call.operation)
            if registered is not None:
                targets = await self._resolver.targets(registered.tool, call.arguments, self._paths)
                found.append((call, registered.tool, targets))
        return found

    def changed_since_judged(
        self,
        operation: str,
        current_digest: str,
        registered: RegisteredTool,
        digest: str,
        targets: Sequence[Target],
        *,
        policy_digest: str,
    ) -> str:
        """What changed since the call was judged: arguments, policy, tool or path. Empty if nothing changed."""
        if current_digest != digest:
            return "the arguments changed after the call was judged"
        if self.policy.digest != policy_digest:
            return "the policy changed after the call was judged"
        current = self._registry.get(operation)
        if current is None or current.digest != registered.digest:
            return "the tool changed after the call was judged"
        for target in targets:
            if (
                isinstance(target, PathTarget)
                and self._paths.locate(target.location.given) != target.location
            ):
                return "a path resolves to a different file than when the call was judged"
        return ""


class _Names:
    """Paths of effects. A program changed the name itself: what a symlink of that name leads to is another file."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def locate(self, given: str) -> Location:
        return self._paths.locate_name(given)

    def locate_name(self, given: str) -> Location:
        return self._paths.locate_name(given)

    def closed_below(self, location: Location) -> str | None:
        return self._paths.closed_below(location)

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        return [self.locate(each) for each in given]


def sanitize_call(call: Call, *, max_bytes: int) -> tuple[Call, str, str]:
    """The call in a form a journal can store, its digest, and what was wrong with its arguments.

    Arguments that are not JSON, contain half a surrogate pair, are nested too deeply or are too large are dropped.
    """
    try:
        if is_too_deep(call.arguments):
            problem = f"its arguments are nested more than {MAX_DEPTH} levels deep"
        elif text_bytes(call.arguments) > max_bytes:
            problem = f"its arguments have more than {max_bytes:,} bytes (code.value_bytes in config.toml)"
        else:
            return call, call.digest, ""
    except (ValueError, TypeError):
        problem = "its arguments contain a value that is not JSON"
    operation = call.operation.encode(errors="replace").decode()
    stripped = Call(id=call.id, operation=operation, arguments={}, principal=call.principal)
    return stripped, stripped.digest, problem
