"""Facts of a session that rules may ask for: the tier of the command sandbox, and the hosts of named groups.

Judging is pure, so the gate hands the facts of each call in with the request and records them with the decision.
"""

from collections.abc import Sequence

import msgspec

from holdfast.core import CallFacts, SandboxTier, Target, Tool, UrlTarget, Value
from holdfast.policy.urls import match_host

NO_FACTS = CallFacts()
HOST_GROUPS = ("package-registries",)
"""The groups of hosts that a session can know."""


class SessionFacts(Value):
    """What holds for a session at the moment."""

    tier: SandboxTier | None = None
    """The tier of its command sandbox; None if it has none."""
    host_groups: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """By name of a group: its hosts, as patterns in canonical form."""

    def for_call(self, tool: Tool, targets: Sequence[Target]) -> CallFacts:
        """The facts that concern one call."""
        tier = self.tier if has_tier(tool) else None
        groups: dict[str, tuple[str, ...]] = {}
        for target in targets if self.host_groups else ():
            if isinstance(target, UrlTarget) and target.host not in groups:
                found = tuple(
                    name
                    for name, hosts in self.host_groups.items()
                    if any(match_host(pattern, target) for pattern in hosts)
                )
                if found:
                    groups[target.host] = found
        return CallFacts(tier=tier, host_groups=groups) if tier is not None or groups else NO_FACTS


def has_tier(tool: Tool) -> bool:
    """Whether calls of a tool come from the command sandbox, or run in it."""
    return tool.group == "shell" or tool.name == "net.connect"
