"""What a policy says the arguments of tools mean, put on the tools that do not say so themselves."""

import msgspec

from holdfast.core import Tool
from holdfast.policy.contract import Policy
from holdfast.policy.rule_policy import RulePolicy
from holdfast.policy.tiers import TieredPolicy


def annotate(tool: Tool, policy: Policy) -> Tool:
    """The tool with its roles; of several tiers the highest one speaks that judges by roles, also by knowing none.

    A tool that has roles keeps them, and what is unknown above stays so: otherwise a project's policy could call the path of a
    write mere data.
    """
    if tool.roles is not None:
        return tool
    known = _known(tool.name, policy)
    return tool if known is None else msgspec.structs.replace(tool, roles=known.roles)


def _known(name: str, policy: Policy) -> Tool | None:
    if isinstance(policy, RulePolicy):
        return policy.document.tools.get(name)
    if isinstance(policy, TieredPolicy):
        judging = (tier for tier in policy.policies if isinstance(tier, RulePolicy | TieredPolicy))
        return _known(name, highest) if (highest := next(judging, None)) is not None else None
    return None
