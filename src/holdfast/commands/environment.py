"""The environment of programs in a sandbox: built from nothing, never inherited."""

import os
import subprocess
from pathlib import Path

from holdfast.commands.layout import HOME
from holdfast.commands.toolchains import Toolchains

_GIT_SETTINGS = (
    ("safe.directory", "*"),  # files can belong to a user that has no name inside
    ("credential.helper", ""),
    ("commit.gpgsign", "false"),
    ("tag.gpgsign", "false"),
)


def build_environment(toolchains: Toolchains, *, added: dict[str, str]) -> dict[str, str]:
    """Build the variables that every program gets; `added` wins."""
    git = {"GIT_CONFIG_COUNT": str(len(_GIT_SETTINGS)), "GIT_TERMINAL_PROMPT": "0"}
    for number, (key, value) in enumerate(_GIT_SETTINGS):
        git |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return {
        "PATH": os.pathsep.join(toolchains.path),
        "HOME": HOME,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "TMPDIR": "/tmp",  # noqa: S108 - the sandbox's own
        **toolchains.variables,
        **git,
        **_git_identity(),
        **added,
    }


def _git_identity() -> dict[str, str]:
    """The person's name and address for commits, from the person's own configuration and what it includes."""
    try:
        # --global never reads the project's configuration, which could name programs to run.
        result = subprocess.run(
            ["git", "config", "--global", "--includes", "-z", "--get-regexp", r"^user\.(name|email)$"],  # noqa: S607 - the person's own git
            capture_output=True,
            check=False,
            cwd=Path.home(),
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    found: dict[str, str] = {}
    for entry in result.stdout.decode(errors="replace").split("\0"):
        key, _, value = entry.partition("\n")
        if value.strip():
            word = key.removeprefix("user.").upper()
            found |= {f"GIT_AUTHOR_{word}": value.strip(), f"GIT_COMMITTER_{word}": value.strip()}
    return found
