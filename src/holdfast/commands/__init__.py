"""Commands: real programs in an operating-system sandbox over the staged workspace.

`contract` says what a sandbox does. What a program changed is collected and returned as values; this package judges nothing.
"""

from holdfast.commands.contract import (
    CollectedChanges,
    CommandOutcome,
    CommandRequest,
    CommandSandbox,
    HostVerdict,
    JudgeHost,
    NotCollected,
    OnOutput,
    ProcessStatus,
    SandboxStatus,
    SandboxTier,
    StagedFile,
)
from holdfast.commands.git import clean_git_config
from holdfast.commands.network import (
    CommandProxy,
    HostDecision,
    HostTraffic,
    ProxyLimits,
    proxy_environment,
)
from holdfast.commands.open import open_sandbox
from holdfast.commands.probe import probe_sandbox
from holdfast.commands.settings import SandboxSettings

__all__ = [
    "CollectedChanges",
    "CommandOutcome",
    "CommandProxy",
    "CommandRequest",
    "CommandSandbox",
    "HostDecision",
    "HostTraffic",
    "HostVerdict",
    "JudgeHost",
    "NotCollected",
    "OnOutput",
    "ProcessStatus",
    "ProxyLimits",
    "SandboxSettings",
    "SandboxStatus",
    "SandboxTier",
    "StagedFile",
    "clean_git_config",
    "open_sandbox",
    "probe_sandbox",
    "proxy_environment",
]
