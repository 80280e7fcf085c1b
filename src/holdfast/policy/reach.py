"""How far a tool can get under a policy, whatever its arguments: what a guest may be told before it tries."""

from holdfast.core import STRICTNESS, Call, Tool, Verdict, call_id
from holdfast.policy.contract import Policy, Request
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.tiers import TieredPolicy


def loosest(policy: Policy, tool: Tool) -> Verdict:
    """The mildest verdict that some call of the tool may get; `deny` where none can pass."""
    if isinstance(policy, TieredPolicy):
        return max((loosest(tier, tool) for tier in policy.policies), key=STRICTNESS.__getitem__)
    if not policy.could_allow(tool):
        return "deny"
    if isinstance(policy, RulePolicy):
        return policy.loosest(tool)
    call = Call(id=call_id(0, 0), operation=tool.name, arguments={})
    return policy.judge(Request(call=call, tool=tool)).verdict
