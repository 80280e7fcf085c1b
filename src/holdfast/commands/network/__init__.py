"""The network of commands: a judging proxy, the hosts of package registries, and ports between sandbox and host."""

from holdfast.commands.network.environment import proxy_environment
from holdfast.commands.network.forward import (
    listen_on_host,
    serve_host_port,
    serve_preview,
)
from holdfast.commands.network.proxy import CommandProxy, HostDecision, HostTraffic, ProxyLimits
from holdfast.commands.network.registries import (
    PACKAGE_REGISTRIES,
    PackageRegistries,
    find_registries,
)

__all__ = [
    "PACKAGE_REGISTRIES",
    "CommandProxy",
    "HostDecision",
    "HostTraffic",
    "PackageRegistries",
    "ProxyLimits",
    "find_registries",
    "listen_on_host",
    "proxy_environment",
    "serve_host_port",
    "serve_preview",
]
