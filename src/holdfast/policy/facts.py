"""Facts of a session that rules may ask for: the tier of the command sandbox, and the hosts of named groups.

Judging is pure, so the gate hands the facts of each call in with the request and records them with the decision.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from holdfast.core import CallFacts, SandboxTier, Target, Tool, UrlTarget, Value
from holdfast.policy.urls import leads_to, match_host

NO_FACTS = CallFacts()
HOST_GROUPS = ("package-registries",)
"""The groups of hosts that a session can know."""


HostGroups = Callable[[], Mapping[str, tuple[str, ...]]]
"""Finds the groups of hosts that a session knows: by name, the hosts as patterns in canonical form."""


def no_host_groups() -> Mapping[str, tuple[str, ...]]:
    """No group."""
    return {}


class SessionFacts(Value):
    """What holds for a session at the moment."""

    tier: SandboxTier | None = None
    """The tier of its command sandbox; None if it has none."""
    host_groups: HostGroups = no_host_groups
    """Asked only for a call that leads to a host: most sessions never reach one, and to find the groups takes milliseconds."""

    def for_call(self, tool: Tool, targets: Sequence[Target]) -> CallFacts:
        """The facts that concern one call."""
        tier = self.tier if has_tier(tool) else None
        groups: dict[str, tuple[str, ...]] = {}
        urls = [target for target in targets if isinstance(target, UrlTarget)]
        known = self.host_groups() if urls else {}
        for target in urls if known else ():
            if target.host not in groups:
                found = tuple(
                    name
                    for name, hosts in known.items()
                    if any(match_host(pattern, target) for pattern in hosts)
                )
                if found:
                    groups[target.host] = found
        return CallFacts(tier=tier, host_groups=groups) if tier is not None or groups else NO_FACTS


OwnEndpoints = Callable[[], Iterable[tuple[str, int]]]
"""Finds the hosts and ports of our own web servers that run now."""


def with_own_server(facts: CallFacts, targets: Sequence[Target], own_endpoints: OwnEndpoints) -> CallFacts:
    """The facts of a call, with the web server of our own that it leads to. Looked for only if it leads to a host."""
    urls = [each for each in targets if isinstance(each, UrlTarget) and each.problem is None]
    endpoints = tuple(own_endpoints()) if urls else ()
    for each in urls if endpoints else ():
        if leads_to(each, endpoints):
            return msgspec.structs.replace(
                facts, own_server=f"{each.host}:{each.port}" if each.port else each.host
            )
    return facts


def has_tier(tool: Tool) -> bool:
    """Whether calls of a tool come from the command sandbox, or run in it."""
    return tool.group == "shell" or tool.name == "net.connect"
