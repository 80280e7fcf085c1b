"""The settings of a repository that decide where git goes for a remote, read as git reads them.

Git remotes: the canonical form of where one leads, and who is asked where that is.

A push does not go where `git remote get-url` says: `pushurl`, `pushInsteadOf` and `insteadOf` each send it elsewhere.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from holdfast.core import UrlTarget
from holdfast.policy.urls import canonical_host, canonical_path, canonical_url

MOST_REMOTES = 100
"""Of one call. The repository may be the guest's own work, and each remote takes time."""
_CHOOSES = frozenset({"remote", "pushremote", "pushdefault"})
"""Last words of the settings by which git takes a remote where none is named; a URL may stand there as well."""


class GitSettings:
    """All settings that hold in one repository, in the order git lists them."""

    def __init__(self, entries: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        self._rewrites: dict[str, list[tuple[str, str]]] = {"insteadof": [], "pushinsteadof": []}
        for key, value in entries:
            values = self._values.setdefault(key, [])
            if value:
                values.append(value)
            else:
                values.clear()  # as git has it
            middle, _, last = key.rpartition(".")
            if middle.startswith("url.") and last in self._rewrites:
                self._rewrites[last].append((value, middle.removeprefix("url.")))

    @classmethod
    def parse(cls, listing: str) -> "GitSettings":
        """Reads what `git config --list -z` prints: key, newline, value, NUL."""
        pairs = (entry.partition("\n") for entry in listing.split("\0") if entry)
        return cls((_lower_ends(key), value) for key, _, value in pairs)

    def urls(self, remote: str) -> tuple[str, ...]:
        """Everywhere that a push or a fetch could go: to this remote, to all of a group, to any where none is named.

        Nowhere where the settings do not tell: a name may also have a file of its own in the repository.
        """
        names = self._named(remote) if remote else self._any()
        if len(names) > MOST_REMOTES or not all(self._is_set(name) or "/" in name for name in names):
            return ()
        return tuple(dict.fromkeys(url for name in names for url in self._both(name)))

    def fetch_urls(self, remote: str) -> tuple[str, ...]:
        """Where a fetch goes."""
        return self._through(remote, [self._rewrite(url, "insteadof") for url in self._urls(remote)])

    def push_urls(self, remote: str) -> tuple[str, ...]:
        """Where a push goes: to each `pushurl` if there is one, else to the URLs that `pushInsteadOf` rewrites, else
        where a fetch goes."""
        explicit = self._values.get(f"remote.{remote}.pushurl")
        if explicit:
            return self._through(remote, [self._rewrite(url, "insteadof") for url in explicit])
        rewritten = [(url, self._rewrite(url, "pushinsteadof")) for url in self._urls(remote)]
        moved = [after for before, after in rewritten if after != before]
        return self._through(remote, moved) or self.fetch_urls(remote)

    def _named(self, remote: str) -> tuple[str, ...]:
        group = " ".join(self._values.get(f"remotes.{remote}", ())).split()
        return (remote, *group) if self._is_set(remote) or not group else tuple(group)

    def _any(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for key, values in self._values.items():
            section, _, rest = key.partition(".")
            name, _, last = rest.rpartition(".")
            if section == "remote" and last in ("url", "pushurl"):
                found[name] = None
            elif section in ("branch", "remote") and last in _CHOOSES:
                found.update(
                    dict.fromkeys(value for value in values if value != ".")
                )  # `.` is this repository
        return tuple(found)

    def _both(self, remote: str) -> tuple[str, ...]:
        return self.push_urls(remote) + self.fetch_urls(remote)

    def _is_set(self, remote: str) -> bool:
        return bool(self._values.get(f"remote.{remote}.url") or self._values.get(f"remote.{remote}.pushurl"))

    def _urls(self, remote: str) -> list[str]:
        return self._values.get(f"remote.{remote}.url") or [remote]

    def _through(self, remote: str, urls: list[str]) -> tuple[str, ...]:
        """URLs as git hands them to the helper that a remote may name."""
        helper = self._values.get(f"remote.{remote}.vcs")
        return tuple(f"{helper[-1]}::{url}" for url in urls) if helper else tuple(urls)

    def _rewrite(self, url: str, how: str) -> str:
        best, base = "", ""
        for prefix, to in self._rewrites[how]:
            if len(prefix) > len(best) and url.startswith(
                prefix
            ):  # the longest prefix wins, the first of equals
                best, base = prefix, to
        return base + url[len(best) :] if best else url


def _lower_ends(key: str) -> str:
    """Section and last word of a setting know no case, what stands between them does."""
    section, _, rest = key.partition(".")
    middle, _, last = rest.rpartition(".")
    return ".".join(part for part in (section.lower(), middle, last.lower()) if part)


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
