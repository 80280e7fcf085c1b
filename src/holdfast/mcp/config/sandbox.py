"""The sandbox of a server: what its entry asks for, and the command that holds the server to it.

The form is IronCurtain's. What the kernel cannot hold a server to is refused when it is started, never left out: a
server that was to be confined does not run unconfined.
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
    """Which files. Relative paths are meant from the workspace, `~` from the home folder."""

    allow_write: tuple[str, ...] = (".",)
    deny_write: tuple[str, ...] = ()
    allow_read: tuple[str, ...] = ()
    """Within what is denied."""
    deny_read: tuple[str, ...] = ()


class Domains(Value, rename="camel", forbid_unknown_fields=True):
    """Which hosts."""

    allowed_domains: tuple[str, ...] = ()
    denied_domains: tuple[str, ...] = ()


class Sandbox(Value, forbid_unknown_fields=True):
    """What a confined server may touch: by default it reads, writes in the workspace, and has no network."""

    filesystem: Filesystem = Filesystem()
    network: Domains | bool = False

    @property
    def has_network(self) -> bool:
        """Whether it may open sockets at all."""
        return self.network is True or (isinstance(self.network, Domains) and _is_open(self.network))


def read_sandbox(given: object) -> Sandbox | None:
    """The sandbox in an entry's own words; None for none. Raises msgspec.ValidationError."""
    if given in (None, False):
        return None
    return Sandbox() if given is True else msgspec.convert(given, Sandbox)


def confined(
    sandbox: Sandbox,
    command: list[str],
    *,
    workspace: Path,
    hidden: tuple[Path, ...],
    environ: Mapping[str, str],
) -> list[str]:
    """The command that starts the server with these rights and no others. Raises InvalidConfig for what cannot be held."""
    if (
        isinstance(sandbox.network, Domains)
        and not _is_open(sandbox.network)
        and sandbox.network != Domains()
    ):
        raise InvalidConfig(
            "its sandbox names domains, and nothing here can hold a program to domains",
            hint="write 'network': false, or true and let the policy judge the addresses in its arguments",
        )

    def real(given: str) -> str:
        home = environ.get("HOME", "/")
        spelt = home + given[1:] if given == "~" or given.startswith("~/") else given
        return os.path.realpath(workspace / spelt)

    files = sandbox.filesystem
    writable = [real(each) for each in files.allow_write]
    for denied in map(real, files.deny_write):
        if any(_touch(denied, allowed) for allowed in writable):
            raise InvalidConfig(
                f"its sandbox allows and denies writing at {denied!r}, and a part of an allowed folder cannot be taken back",
                hint="name only the folders that may be written in 'allowWrite'",
            )
    rules = {
        "write": writable,
        "hide": [*map(real, files.deny_read), *map(os.path.realpath, hidden)],
        "show": [*map(real, files.allow_read), str(workspace)],
        "network": sandbox.has_network,
    }
    return [sys.executable, "-I", "-S", "-c", _CONFINE, json.dumps(rules), *command]


def _is_open(domains: Domains) -> bool:
    return "*" in domains.allowed_domains and not domains.denied_domains


def _touch(one: str, other: str) -> bool:
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
