"""The network of commands: a judging proxy, the hosts of package registries, and ports between sandbox and host."""

from holdfast.commands.network.environment import proxy_environment
from holdfast.commands.network.proxy import CommandProxy, HostDecision, HostTraffic, ProxyLimits

__all__ = [
    "CommandProxy",
    "HostDecision",
    "HostTraffic",
    "ProxyLimits",
    "proxy_environment",
]
