"""Git for commands: a cleaned configuration inside the sandbox, and commits that leave it as objects and one ref."""

from holdfast.commands.git.accept import (
    AcceptedCommits,
    CommitProposal,
    accept_commits,
    propose_commits,
    sandbox_git_environment,
    session_ref,
)
from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.git.host_git import HostGit
from holdfast.commands.git.quarantine import OfferedCommit, OfferedCommits, OfferedFile

__all__ = [
    "AcceptedCommits",
    "CommitProposal",
    "HostGit",
    "OfferedCommit",
    "OfferedCommits",
    "OfferedFile",
    "accept_commits",
    "clean_git_config",
    "propose_commits",
    "sandbox_git_environment",
    "session_ref",
]
