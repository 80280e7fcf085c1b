"""How the person authenticates, from their own git configuration.

Only the scopes `system` and `global` count for what can start a program. A repository's own configuration may come with a
download, so none of its programs, helpers or rewritten addresses are used.
"""

import os
from collections.abc import Iterable, Mapping

from holdfast.commands.git.config_text import ConfigEntry
from holdfast.commands.git.host_git import HostGit
from holdfast.commands.git.repository import GitRepository
from holdfast.core.errors import CommandError

_PASSED_VARIABLES = (
    "HOME", "PATH", "USER", "LOGNAME", "LANG", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND",
    "GIT_SSH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "GNUPGHOME", "DBUS_SESSION_BUS_ADDRESS",
)  # fmt: skip
"""What git needs of the person's environment to authenticate."""
_HONOURED_SECTIONS = frozenset(("credential", "http", "protocol"))
_HONOURED_NAMES = frozenset((("core", "sshcommand"), ("core", "askpass"), ("ssh", "variant")))
"""The settings of the person that a push honours. Not among them: `url.*`, hooks, aliases, filters, signing."""
_MAX_CONFIG_BYTES = 1 << 20


async def read_honoured_settings(
    git: HostGit, repository: GitRepository, environment: Mapping[str, str]
) -> list[ConfigEntry]:
    """What a push uses of the person's configuration, in git's order, with conditional includes resolved for the repository."""
    entries = await _entries(git, repository, environment, scopes=("system", "global"))
    return [entry for entry in entries if _is_honoured(entry)]


def _is_honoured(entry: ConfigEntry) -> bool:
    if entry.section in _HONOURED_SECTIONS:
        return True
    return (entry.section, entry.name) in _HONOURED_NAMES


def passed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of the person's environment that git may see."""
    return {name: environment[name] for name in _PASSED_VARIABLES if environment.get(name)}


async def _entries(
    git: HostGit, repository: GitRepository, environment: Mapping[str, str], *, scopes: Iterable[str]
) -> list[ConfigEntry]:
    """The settings of these scopes. Reading a configuration starts no program."""
    ended = await git.run_with(
        ["--git-dir", repository.common_dir, "config", "--list", "--includes", "--show-scope", "-z"],
        environment={
            **passed_variables(environment),
            "LC_ALL": "C",
            "PATH": environment.get("PATH", os.defpath),
        },
        max_output=_MAX_CONFIG_BYTES,
    )
    if ended.code != 0 or len(ended.output) > _MAX_CONFIG_BYTES:
        raise CommandError("your git configuration cannot be read", hint="git config --list")
    fields = ended.output.decode("utf-8", "surrogateescape").split("\0")[:-1]
    wanted = frozenset(scopes)
    return [_entry(text) for scope, text in zip(fields[::2], fields[1::2], strict=True) if scope in wanted]


def _entry(text: str) -> ConfigEntry:
    key, newline, value = text.partition("\n")
    section, _, rest = key.partition(".")
    subsection, dot, name = rest.rpartition(".")
    return ConfigEntry(
        section=section.lower(),
        subsection=subsection if dot else None,
        name=name.lower(),
        value=value if newline else None,
    )
