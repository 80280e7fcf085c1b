"""What of a list or a search a guest may be shown: only what it would not be denied to read."""

from collections.abc import Iterable

from holdfast.core import Call, Paths, PathTarget, call_id
from holdfast.policy.catalogue import KNOWN_TOOLS
from holdfast.policy.contract import Policy, Request

_READ = KNOWN_TOOLS["world.read"]


def visible(policy: Policy, found: Iterable[str], paths: Paths) -> tuple[str, ...]:
    """The paths among `found` whose reading is not denied."""
    return tuple(path for path in found if not _is_hidden(policy, path, paths))


def _is_hidden(policy: Policy, path: str, paths: Paths) -> bool:
    call = Call(id=call_id(1, 1), operation=_READ.name, arguments={"path": path})
    target = PathTarget(role="read-path", argument="path", location=paths.locate(path))
    return policy.judge(Request(call=call, tool=_READ, targets=(target,))).verdict == "deny"
