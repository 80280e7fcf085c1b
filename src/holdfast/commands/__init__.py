"""Commands: real programs in an operating-system sandbox over the staged workspace.

`contract` says what a sandbox does, and `scripted` is its public fake. `toolset` offers the `shell.*` tools. What a program changed
is collected and returned as values; this package judges nothing and writes nothing to the workspace.
"""

from holdfast.commands.apparmor import apparmor_profile, apparmor_steps
from holdfast.commands.connected_process import ConnectedProcess
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
from holdfast.commands.factory import CommandSandboxes, NoSandboxes, ScriptedSandboxes, SystemSandboxes
from holdfast.commands.git import (
    AcceptedCommits,
    CommitProposal,
    GitRepository,
    HostGit,
    OfferedCommit,
    OfferedCommits,
    OfferedFile,
    PushedBranch,
    accept_commits,
    check_address,
    clean_git_config,
    find_commit,
    find_repository,
    passed_variables,
    propose_commits,
    push_branch,
    session_ref,
)
from holdfast.commands.layers.scratch import is_ignored
from holdfast.commands.network import (
    PACKAGE_REGISTRIES,
    CommandProxy,
    HostDecision,
    HostTraffic,
    PackageRegistries,
    ProxyLimits,
    find_registries,
    listen_on_host,
    proxy_environment,
    serve_host_port,
    serve_preview,
)
from holdfast.commands.open import open_sandbox
from holdfast.commands.probe import probe_sandbox
from holdfast.commands.scripted import Program, ScriptedFile, ScriptedProcess, ScriptedSandbox, folder_files
from holdfast.commands.session_sandbox import OpenSandbox, SessionSandbox
from holdfast.commands.settings import SandboxSettings
from holdfast.commands.shell_settings import ShellSettings
from holdfast.commands.tools import MAX_TIMEOUT_SECONDS, PYTHON_TOOL, SHELL_TOOLS
from holdfast.commands.toolset import CommandNetwork, CommandToolset, HostLog, JudgedHost, OnCommandOutput

__all__ = [
    "MAX_TIMEOUT_SECONDS",
    "PACKAGE_REGISTRIES",
    "PYTHON_TOOL",
    "SHELL_TOOLS",
    "AcceptedCommits",
    "CollectedChanges",
    "CommandNetwork",
    "CommandOutcome",
    "CommandProxy",
    "CommandRequest",
    "CommandSandbox",
    "CommandSandboxes",
    "CommandToolset",
    "CommitProposal",
    "ConnectedProcess",
    "GitRepository",
    "HostDecision",
    "HostGit",
    "HostLog",
    "HostTraffic",
    "HostVerdict",
    "JudgeHost",
    "JudgedHost",
    "NoSandboxes",
    "NotCollected",
    "OfferedCommit",
    "OfferedCommits",
    "OfferedFile",
    "OnCommandOutput",
    "OnOutput",
    "OpenSandbox",
    "PackageRegistries",
    "ProcessStatus",
    "Program",
    "ProxyLimits",
    "PushedBranch",
    "SandboxSettings",
    "SandboxStatus",
    "SandboxTier",
    "ScriptedFile",
    "ScriptedProcess",
    "ScriptedSandbox",
    "ScriptedSandboxes",
    "SessionSandbox",
    "ShellSettings",
    "StagedFile",
    "SystemSandboxes",
    "accept_commits",
    "apparmor_profile",
    "apparmor_steps",
    "check_address",
    "clean_git_config",
    "find_commit",
    "find_registries",
    "find_repository",
    "folder_files",
    "is_ignored",
    "listen_on_host",
    "open_sandbox",
    "passed_variables",
    "probe_sandbox",
    "propose_commits",
    "proxy_environment",
    "push_branch",
    "serve_host_port",
    "serve_preview",
    "session_ref",
]
