"""The sandbox of a server: the settings in its entry, and the command that runs the server under them.

The format is IronCurtain's. A setting that the kernel cannot enforce is refused at the start and never ignored: a server
with a sandbox does not run unconfined.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from holdfast.core import Value
from holdfast.core.errors import InvalidConfig
from holdfast.process.bare_python import stub_packages

_CONFINE = (
    f"{stub_packages()}from holdfast.process.confine_server_main import main\nsys.exit(main(sys.argv[1:]))\n"
)


class Filesystem(Value, rename="camel", forbid_unknown_fields=True):
    """The files a server may access. Relative paths start at the workspace, `~` at the home folder."""

    allow_write: tuple[str, ...] = (".",)
    deny_write: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    """Exceptions within `deny_read`."""
    deny_read: tuple[str, ...] = ()


class Domains(Value, rename="camel", forbid_unknown_fields=True):
    """The hosts a server may access."""

    allowed_domains: tuple[str, ...] = ()
    denied_domains: tuple[str, ...] = ()


class Sandbox(Value, forbid_unknown_fields=True):
    """What a confined server may access. By default it reads everywhere, writes in the workspace, and has no network."""

    filesystem: Filesystem = Filesystem()
    network: Domains | bool = False

    @property
    def has_network(self) -> bool:
        """Whether the server may open sockets."""
        return self.network is True or (isinstance(self.network, Domains) and _is_open(self.network))

    def may_write(self, path: str, workspace: Path, environ: Mapping[str, str]) -> bool:
        """Whether a confined server may write at a real path."""
        allowed = (_resolve(each, workspace, environ) for each in self.filesystem.allow_write)
        return any(path == each or path.startswith(f"{each.rstrip('/')}/") for each in allowed)


def parse_sandbox(given: object) -> Sandbox | None:
    """Parse the `sandbox` of an entry; None if there is none. Raises msgspec.ValidationError."""
    if given in (None, False):
        return None
    return Sandbox() if given is True else msgspec.convert(given, Sandbox)


def confined_command(
    sandbox: Sandbox,
    command: list[str],
    *,
    workspace: Path,
    hidden: tuple[Path, ...],
    environ: Mapping[str, str],
) -> list[str]:
    """The command that starts the server in the sandbox. Raises InvalidConfig for what cannot be enforced."""
    if (
        isinstance(sandbox.network, Domains)
        and not _is_open(sandbox.network)
        and sandbox.network != Domains()
    ):
        raise InvalidConfig(
            "the sandbox names domains, but Holdfast cannot restrict a program to domains",
            hint="set 'network' to false, or to true and let the policy judge the URLs in its arguments",
        )

    def resolve(given: str) -> str:
        return _resolve(given, workspace, environ)

    files = sandbox.filesystem
    writable = [resolve(each) for each in files.allow_write]
    for denied in map(resolve, files.deny_write):
        if any(_overlap(denied, allowed) for allowed in writable):
            raise InvalidConfig(
                f"the sandbox both allows and denies writing to {denied!r}; a part of an allowed folder cannot be excluded",
                hint="list only writable folders in 'allowWrite'",
            )
    rules = {
        "write": writable,
        "hide": [*map(resolve, files.deny_read), *map(os.path.realpath, hidden)],
        "show": [*map(resolve, files.allow_read), str(workspace)],
        "network": sandbox.has_network,
    }
    return [sys.executable, "-I", "-S", "-c", _CONFINE, json.dumps(rules), *command]


def _resolve(given: str, workspace: Path, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "/")
    expanded = home + given[1:] if given == "~" or given.startswith("~/") else given
    return os.path.realpath(workspace / expanded)


def _is_open(domains: Domains) -> bool:
    return "*" in domains.allowed_domains and not domains.denied_domains


def _overlap(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
