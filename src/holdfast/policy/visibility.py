"""What a guest may see under a policy: paths whose reading is not denied, and the best verdict that a tool can get."""

from collections.abc import Iterable

from holdfast.core import STRICTNESS, Call, Json, Paths, PathTarget, Tool, Verdict, call_id
from holdfast.policy.contract import Policy, Request
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.tiers import TieredPolicy
from holdfast.policy.tool_roles import KNOWN_TOOLS

_READ = KNOWN_TOOLS["world.read"]
_LISTS = frozenset({"world.list", "world.entries", "world.search"})


def readable_paths(policy: Policy, found: Iterable[str], paths: Paths) -> tuple[str, ...]:
    """The paths among `found` whose reading is not denied."""
    return tuple(path for path in found if not _is_hidden(policy, path, paths))


def most_permissive_verdict(policy: Policy, tool: Tool) -> Verdict:
    """The least strict verdict that a call of the tool may get; `deny` if no call can pass."""
    if isinstance(policy, TieredPolicy):
        return max(
            (most_permissive_verdict(tier, tool) for tier in policy.policies), key=STRICTNESS.__getitem__
        )
    if not policy.could_allow(tool):
        return "deny"
    if isinstance(policy, RulePolicy):
        return policy.most_permissive_verdict(tool)
    call = Call(id=call_id(0, 0), operation=tool.name, arguments={})
    return policy.judge(Request(call=call, tool=tool)).verdict


def hide_unreadable_paths(operation: str, result: Json, policy: Policy, paths: Paths) -> Json:
    """The result without the paths whose reading the policy denies."""
    if operation not in _LISTS or not isinstance(result, list):
        return result
    named = {path for each in result if (path := _path(each)) is not None}
    seen = set(readable_paths(policy, sorted(named), paths))
    return [each for each in result if (path := _path(each)) is None or path in seen]


def _is_hidden(policy: Policy, path: str, paths: Paths) -> bool:
    call = Call(id=call_id(1, 1), operation=_READ.name, arguments={"path": path})
    target = PathTarget(role="read-path", argument="path", location=paths.locate(path))
    return policy.judge(Request(call=call, tool=_READ, targets=(target,))).verdict == "deny"


def _path(each: Json) -> str | None:
    if isinstance(each, dict):
        each = each.get("path")
    return each if isinstance(each, str) else None
