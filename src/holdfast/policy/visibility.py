"""What a guest may see under a policy: paths whose reading is not denied, and the best verdict that a tool can get."""

from collections.abc import Sequence

from holdfast.core import STRICTNESS, Call, Json, Paths, PathTarget, Tool, Verdict, call_id
from holdfast.policy.contract import Policy, Request
from holdfast.policy.evaluate import RulePolicy
from holdfast.policy.tiers import TieredPolicy
from holdfast.policy.tool_roles import KNOWN_TOOLS

_READ = KNOWN_TOOLS["world.read"]
BUILT_IN_QUESTIONS = frozenset({"structural-domain-escalate", "requires-approval", "ask-person"})
"""Rules that ask in every policy: unlisted hosts, tools that require an approval, questions of the agent."""
_NAMES = frozenset({"world.list", "world.entries", "session.proposals"})
_CONTENTS = frozenset({"world.search", "world.proposals"})
"""Operations whose results show what is in the files, not only their names."""
_NO_CALL = call_id(1, 1)


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


def hide_unreadable_paths(
    operation: str, result: Json, policy: Policy, paths: Paths, *, is_approved: bool = False
) -> Json:
    """The result without the paths whose reading the policy denies.

    A result that shows contents also loses the files whose reading needs approval, unless a person approved this call.
    """
    if operation not in _NAMES | _CONTENTS or not isinstance(result, list):
        return result
    hides_asked = operation in _CONTENTS and not is_approved
    named = sorted({path for each in result if (path := _path(each)) is not None})
    hidden: tuple[Verdict, ...] = ("deny", "escalate") if hides_asked else ("deny",)
    seen = {
        path for path, verdict in _verdicts_on_reading(policy, named, paths).items() if verdict not in hidden
    }
    return [each for each in result if (path := _path(each)) is None or path in seen]


def _verdicts_on_reading(policy: Policy, found: Sequence[str], paths: Paths) -> dict[str, Verdict]:
    """The verdict on reading each of these paths."""
    targets = [
        PathTarget(role="read-path", argument="path", location=location)
        for location in paths.locate_all(found)
    ]
    return dict(zip(found, read_verdicts(policy, targets), strict=True))


def read_verdicts(policy: Policy, targets: Sequence[PathTarget]) -> list[Verdict]:
    """The verdict on reading each of these files, as `read_verdict` says."""
    if isinstance(policy, TieredPolicy):
        tiers = [read_verdicts(tier, targets) for tier in policy.policies]
        return [max(verdicts, key=STRICTNESS.__getitem__) for verdicts in zip(*tiers, strict=True)]
    if isinstance(policy, RulePolicy) and targets:
        return policy.judge_paths(_reading(targets[0]), targets)
    return [read_verdict(policy, target) for target in targets]


def read_verdict(policy: Policy, target: PathTarget) -> Verdict:
    """The verdict on reading a file that was located already."""
    return policy.judge(_reading(target)).verdict


def _reading(target: PathTarget) -> Request:
    call = Call(id=_NO_CALL, operation=_READ.name, arguments={"path": target.location.given})
    return Request(call=call, tool=_READ, targets=(target,))


def _path(each: Json) -> str | None:
    if isinstance(each, dict):
        each = each.get("path")
    return each if isinstance(each, str) else None


def asking_rules(policy: Policy) -> frozenset[str] | None:
    """The names of the rules that can ask a person, built-in ones included; None if the policy is not made of rules."""
    if isinstance(policy, TieredPolicy):
        tiers = [asking_rules(tier) for tier in policy.policies]
        return None if None in tiers else frozenset(name for tier in tiers for name in tier or ())
    if not isinstance(policy, RulePolicy):
        return None
    named = {rule.name for rule in policy.document.rules if rule.verdict == "escalate"}
    return frozenset(named) | BUILT_IN_QUESTIONS
