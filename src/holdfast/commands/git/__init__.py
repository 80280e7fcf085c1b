"""Git for commands: a cleaned configuration inside the sandbox, and commits that leave it as objects and one ref."""

from holdfast.commands.git.clean_config import clean_git_config

__all__ = ["clean_git_config"]
