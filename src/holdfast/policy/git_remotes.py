"""Git remotes: the canonical form of where one leads, and who is asked where that is.

A push does not go where `git remote get-url` says: `pushurl`, `pushInsteadOf` and `insteadOf` each send it elsewhere.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from holdfast.core import UrlTarget
from holdfast.policy.git_settings import GitSettings
from holdfast.policy.hosts import canonical_host, canonical_path, canonical_url

_SCP = re.compile(
    r"(?:[^@/\\:\s\[\]]+@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/\\:\s@\[\]]+):(?!//)(?P<path>.*)", re.DOTALL
)
_HELPER = re.compile(r"[A-Za-z0-9.+-]+::")
_NETWORK_SCHEMES = ("https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps")


class Remotes(Protocol):
    """Who knows the remotes of a repository."""

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        """Every URL that a fetch or a push to `remote` would reach, to any remote where it is empty; none where it cannot
        be told."""
        ...


class ReadRemotes:
    """Remotes by settings that were read before; a folder whose settings nobody could read has none."""

    def __init__(self, settings: Mapping[str, GitSettings | None]) -> None:
        self._settings = settings

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        settings = self._settings.get(folder)
        return settings.urls(remote) if settings is not None else ()


def canonical_remote(text: str, *, argument: str = "remote") -> UrlTarget:
    """The canonical form of a remote's URL, `git@host:path` included; a name or a local path has a `problem`."""

    def broken(problem: str) -> UrlTarget:
        return UrlTarget(role="git-remote-url", argument=argument, given=text, problem=problem)

    if not text:
        return broken("names no remote, so that git chooses one")
    if text.startswith("-"):
        return broken("begins with a dash, which git takes for an option")
    if _HELPER.match(text):
        return broken("names a remote helper, which runs a program")
    if "://" in text:
        target = canonical_url(text, role="git-remote-url", argument=argument)
        if target.problem is not None:
            return target
        if target.scheme not in _NETWORK_SCHEMES:
            return broken(f"is no remote over a network ({target.scheme})")
        return UrlTarget(
            role="git-remote-url", argument=argument, given=text, scheme=target.scheme,
            host=target.host, port=target.port, path=target.path.removesuffix(".git"),
        )  # fmt: skip
    match = _SCP.fullmatch(text)
    if match is None:
        return broken("is a remote's name or a local path, and nobody could resolve it")
    host = canonical_host(match["host"].strip("[]"))
    if host is None or re.search(r"[\x00-\x20\\]", text):
        return broken("has a host that cannot be read")
    path = match["path"].replace("%", "%25")  # this form knows no escapes
    return UrlTarget(
        role="git-remote-url", argument=argument, given=text, scheme="ssh",
        host=host, path=canonical_path(path).removesuffix(".git"),
    )  # fmt: skip
