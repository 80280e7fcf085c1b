"""The layout of a sandbox: which files of the host programs can read, and the small files that replace the host's own."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from holdfast.core import Value

HOME = "/home/agent"

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32", "/nix/store", "/gnu/store")
_CONFIGURATION = (
    "alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl/certs", "ssl/openssl.cnf", "ssl/cert.pem",
    "ca-certificates", "pki/tls/certs", "pki/ca-trust/extracted", "crypto-policies", "localtime", "timezone",
    "mime.types", "services", "protocols", "terminfo", "inputrc", "bash.bashrc", "fonts", "os-release",
    "debian_version", "redhat-release", "python3", "python3.11", "python3.12", "python3.13", "perl", "java-17-openjdk",
    "java-21-openjdk", "R", "magic", "lsb-release",
)  # fmt: skip
_MAY_HOLD_CREDENTIALS = ("pip.conf", "npmrc", "gitconfig")
_MAX_COPIED = 256 << 10
_CREDENTIALS = re.compile(rb"://[^/\s]*@|_auth|_password|token|extraheader", re.IGNORECASE)


class Layout(Value):
    """The read-only part of a sandbox's root: binds, links and files, each by its path inside."""

    read_only: tuple[tuple[str, str], ...] = ()
    copied: tuple[str, ...] = ()
    """Small files: a separate mount for each would make every command slower."""
    links: tuple[tuple[str, str], ...] = ()
    """(target, path)"""
    files: dict[str, str]


def layout_of(toolchains: Iterable[Path], *, workspace: Path) -> Layout:
    """Choose what a sandbox shows of this machine."""
    binds: list[tuple[str, str]] = []
    links: list[tuple[str, str]] = []
    copied: list[str] = []
    wanted = [*_SYSTEM, *(f"/etc/{name}" for name in _CONFIGURATION), *_harmless(_MAY_HOLD_CREDENTIALS)]
    for path in wanted:
        if os.path.islink(path):
            links.append((os.readlink(path), path))
        elif os.path.isfile(path) and os.path.getsize(path) <= _MAX_COPIED and os.access(path, os.R_OK):
            copied.append(path)
        elif os.path.exists(path):
            binds.append((path, path))
    for folder in toolchains:
        real = str(folder)
        is_shown = any(real == top or real.startswith(f"{top}/") for _, top in binds)
        if not is_shown and not folder.is_relative_to(workspace) and folder.is_dir():
            binds.append((real, real))
    return Layout(read_only=tuple(binds), copied=tuple(copied), links=tuple(links), files=_own_files())


def _harmless(names: Iterable[str]) -> list[str]:
    """The configuration files without credentials."""
    found = []
    for name in names:
        try:
            content = Path("/etc", name).read_bytes()
        except OSError:
            continue
        if not _CREDENTIALS.search(content):
            found.append(f"/etc/{name}")
    return found


def _own_files() -> dict[str, str]:
    user, group = os.geteuid(), os.getegid()
    users = {0: "root:x:0:0::/root:/bin/sh", 65534: "nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin"}
    groups = {0: "root:x:0:", 65534: "nogroup:x:65534:"}
    users[user] = f"{'root' if user == 0 else 'agent'}:x:{user}:{group}:agent:{HOME}:/bin/sh"
    groups.setdefault(group, f"agent:x:{group}:")
    return {
        "/etc/passwd": "\n".join(users.values()) + "\n",
        "/etc/group": "\n".join(groups.values()) + "\n",
        "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
        "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n",
        "/etc/hostname": "sandbox\n",
    }
