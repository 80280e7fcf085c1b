"""What a guest sees of a folder: a list, a search or a walk shows nothing that it would be denied to read."""

from holdfast.core import Json, Paths
from holdfast.policy import Policy, visible

_LISTS = frozenset({"world.list", "world.entries", "world.search"})


def in_sight(operation: str, result: Json, policy: Policy, paths: Paths) -> Json:
    """The result without the paths whose reading the policy denies."""
    if operation not in _LISTS or not isinstance(result, list):
        return result
    named = {path for each in result if (path := _path(each)) is not None}
    seen = set(visible(policy, sorted(named), paths))
    return [each for each in result if (path := _path(each)) is None or path in seen]


def _path(each: Json) -> str | None:
    if isinstance(each, dict):
        each = each.get("path")
    return each if isinstance(each, str) else None
