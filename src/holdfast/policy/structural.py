"""Structural checks that run before any rule: unknown tools, malformed arguments, protected hosts, protected and invalid paths."""

from holdfast.core import Decision, PathTarget, Role, Tool
from holdfast.policy.contract import Request
from holdfast.policy.json_schema import validate_arguments
from holdfast.policy.targets import DATA_ROLES, includes_subtree, roles_of
from holdfast.policy.unannotated import unannotated_argument

BUILT_IN = "built-in"
_CHANGING: tuple[Role, ...] = ("write-path", "delete-path")
"""Roles of paths whose files a tool changes itself. The history roles are for tools that run git."""
_MAX_SHOWN = 200


def structural_refusal(request: Request) -> Decision | None:
    """A refusal that no rule can override, or None."""
    return unsafe_target(request) or unknown_tool(request) or _unjudgeable(request)


def unsafe_target(request: Request) -> Decision | None:
    """Refuse protected paths, paths that cannot be resolved, and our own web server: there a person answers."""
    if request.facts.own_server:
        return refuse(
            "structural-protected-host",
            f"{request.facts.own_server} is the web server of Holdfast, which only a person's browser may use",
        )
    invalid = None
    for target in request.targets:
        if not isinstance(target, PathTarget):
            continue
        location = target.location
        if location.protected is not None:
            return refuse(
                "structural-protected-path",
                f"{target.argument} leads to {location.given[:200]!r}, which is protected ({location.protected})",
            )
        if location.read_only is not None and (
            target.role in _CHANGING or includes_subtree(target, request.targets)
        ):
            return refuse(
                "structural-protected-path",
                f"{target.argument} leads to {location.given[:200]!r}, which is part of a git repository, or contains "
                f"one or a protected file ({location.read_only[:200]}); change the repository by running git",
            )
        if location.problem is not None and invalid is None:
            invalid = refuse("invalid-arguments", f"{target.argument}: {location.problem[:200]}")
    return invalid


def unknown_tool(request: Request) -> Decision | None:
    """Refuse an operation that no toolset offers."""
    if request.tool is None or request.tool.name != request.call.operation:
        return refuse("structural-unknown-tool", f"no toolset offers {request.call.operation[:200]!r}")
    return None


def refuse(rule: str, reason: str) -> Decision:
    """A built-in deny."""
    return Decision(verdict="deny", rule=rule, reason=reason, source=BUILT_IN)


def _unjudgeable(request: Request) -> Decision | None:
    tool = request.tool
    assert tool is not None
    if tool.roles is None:
        return refuse(
            "missing-annotation",
            f"the arguments of {tool.name!r} have no roles; "
            f"assign them with `holdfast mcp annotate {tool.group}`, or under `tools:` in the policy",
        )
    problem = validate_arguments(tool, request.call.arguments)
    if problem is not None:
        return refuse("invalid-arguments", problem)
    return _unannotated(request, tool) or _unresolved(request, tool)


def _unannotated(request: Request, tool: Tool) -> Decision | None:
    """Refuse what no role covers, because no rule would ever see it, whatever the schema of the tool accepts."""
    found = unannotated_argument(tool, request.call.arguments)
    if found is None:
        return None
    argument = found[:_MAX_SHOWN]
    name = found.partition(".")[0].partition("[")[0][:_MAX_SHOWN]
    problem = (
        f"the argument {argument!r} of {tool.name!r} has no role"
        if name == argument
        else f"{argument!r} is not in the schema of {tool.name!r}, and the role `none` covers only what the schema names"
    )
    role = "ROLE" if name == argument else "content"
    return refuse(
        "missing-annotation",
        f"{problem}; assign one with `holdfast mcp annotate {tool.group} --role {tool.verb}.{name}={role}`, "
        "or under `tools:` in the policy",
    )


def _unresolved(request: Request, tool: Tool) -> Decision | None:
    """Refuse an argument with a judged role that the caller did not resolve, because no rule would ever see it."""
    resolved = {(target.argument, target.role) for target in request.targets}
    for name, roles in roles_of(tool, request.call.arguments).items():
        if isinstance(request.call.arguments.get(name), str):
            for role in roles:
                if role not in DATA_ROLES and (name, role) not in resolved:
                    return refuse("invalid-arguments", f"{name} was not resolved before it was judged")
    return None
