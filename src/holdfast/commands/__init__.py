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

__all__ = [
    "CollectedChanges",
    "CommandOutcome",
    "CommandRequest",
    "CommandSandbox",
    "HostVerdict",
    "JudgeHost",
    "NotCollected",
    "OnOutput",
    "ProcessStatus",
    "SandboxStatus",
    "SandboxTier",
    "StagedFile",
]
