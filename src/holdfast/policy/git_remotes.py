"""Git remotes: where a push or a fetch really goes. Names and rewrites are resolved as git resolves them.

A push does not go where `git remote get-url` says: `pushurl`, `pushInsteadOf` and `insteadOf` each send it elsewhere.
"""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from holdfast.core import UrlTarget, Value
from holdfast.policy.hosts import canonical_host, canonical_path, canonical_url

_SCP = re.compile(
    r"(?:(?P<user>[^@/\\:\s]+)@)?(?P<host>\[[^\]]+\]|[^/\\:\s@]+):(?!//)(?P<path>.*)", re.DOTALL
)
_HELPER = re.compile(r"[A-Za-z0-9.+-]+::")
_NETWORK_SCHEMES = ("https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps")


class Remotes(Protocol):
    """Who knows the remotes of a repository."""

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        """Every URL that a fetch or a push to `remote` would reach, to any remote where it is empty; none where it cannot
        be told."""
        ...


class GitConfig(Value):
    """The settings of one repository that decide where a remote leads, in the order git lists them."""

    entries: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, listing: str) -> "GitConfig":
        """Reads what `git config --list -z` prints: key, newline, value, NUL."""
        pairs = (entry.partition("\n") for entry in listing.split("\0") if entry)
        return cls(entries=tuple((_lower_ends(key), value) for key, _, value in pairs))

    def fetch_urls(self, remote: str) -> tuple[str, ...]:
        """Where a fetch goes."""
        return tuple(self._rewrite(url, "insteadof") for url in self._urls(remote))

    def push_urls(self, remote: str) -> tuple[str, ...]:
        """Where a push goes: to each `pushurl` if there is one, else to the URLs that `pushInsteadOf` rewrites, else
        where a fetch goes."""
        explicit = self._values(f"remote.{remote}.pushurl")
        if explicit:
            return tuple(self._rewrite(url, "insteadof") for url in explicit)
        rewritten = [(url, self._rewrite(url, "pushinsteadof")) for url in self._urls(remote)]
        moved = tuple(after for before, after in rewritten if after != before)
        return moved or self.fetch_urls(remote)

    def remotes(self) -> tuple[str, ...]:
        """The names of all remotes."""
        keys = (name for name, _ in self.entries if name.startswith("remote."))
        return tuple(dict.fromkeys(key[7:].rpartition(".")[0] for key in keys if key.endswith("url")))

    def _urls(self, remote: str) -> tuple[str, ...]:
        return self._values(f"remote.{remote}.url") or (remote,)

    def _values(self, key: str) -> tuple[str, ...]:
        found: list[str] = []
        for name, value in self.entries:
            if name == key:
                found = [*found, value] if value else []  # an empty value clears the list, as git has it
        return tuple(found)

    def _rewrite(self, url: str, how: str) -> str:
        best, base = "", ""
        for name, prefix in self.entries:
            is_rewrite = name.startswith("url.") and name.endswith(f".{how}") and url.startswith(prefix)
            if is_rewrite and len(prefix) > len(best):  # the longest prefix wins, the first of equals
                best, base = prefix, name[4 : -len(how) - 1]
        return base + url[len(best) :] if best else url


class GitRemotes:
    """Asks the git program, with a time limit; the answer is good for one judgement."""

    def __init__(self, *, timeout_seconds: float = 5.0, git: str = "git") -> None:
        self._timeout_seconds = timeout_seconds
        self._git = git

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        if not Path(folder).is_dir():
            return ()
        try:
            listed = subprocess.run(  # noqa: S603 - a fixed command, no shell
                [self._git, "-C", folder, "config", "--includes", "--list", "-z"],
                capture_output=True,
                timeout=self._timeout_seconds,
                check=True,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.SubprocessError):
            return ()
        config = GitConfig.parse(listed.stdout.decode("utf-8", "surrogateescape"))
        names = (remote,) if remote else config.remotes()
        return tuple(
            dict.fromkeys(url for name in names for url in config.push_urls(name) + config.fetch_urls(name))
        )


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
    return UrlTarget(
        role="git-remote-url", argument=argument, given=text, scheme="ssh",
        host=host, path=canonical_path(match["path"]).removesuffix(".git"),
    )  # fmt: skip


def _lower_ends(key: str) -> str:
    """Section and last word of a setting know no case, what stands between them does."""
    section, _, rest = key.partition(".")
    middle, _, last = rest.rpartition(".")
    return ".".join(part for part in (section.lower(), middle, last.lower()) if part)
