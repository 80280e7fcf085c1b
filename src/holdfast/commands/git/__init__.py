"""Git for commands: a cleaned configuration inside the sandbox, and commits that leave it as objects and one ref."""

from holdfast.commands.git.accept import (
    AcceptedCommits,
    CommitProposal,
    accept_commits,
    propose_commits,
    session_ref,
)
from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.git.host_git import HostGit
from holdfast.commands.git.person_config import (
    passed_variables,
)
from holdfast.commands.git.push import (
    PushedBranch,
    check_address,
    find_commit,
    push_branch,
)
from holdfast.commands.git.quarantine import OfferedCommit, OfferedCommits, OfferedFile
from holdfast.commands.git.repository import (
    GitRepository,
    find_repository,
)

__all__ = [
    "AcceptedCommits",
    "CommitProposal",
    "GitRepository",
    "HostGit",
    "OfferedCommit",
    "OfferedCommits",
    "OfferedFile",
    "PushedBranch",
    "accept_commits",
    "check_address",
    "clean_git_config",
    "find_commit",
    "find_repository",
    "passed_variables",
    "propose_commits",
    "push_branch",
    "session_ref",
]
