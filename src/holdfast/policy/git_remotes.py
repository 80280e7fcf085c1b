"""Git remotes: the URLs that a fetch or a push really reaches, from the repository's configuration, in canonical form.

`git remote get-url` is not enough: `pushurl`, `pushInsteadOf` and `insteadOf` each send a push elsewhere.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from holdfast.core import UrlTarget, canonical_host
from holdfast.policy.urls import canonical_path, canonical_url

MAX_REMOTES = 100
"""Per call. The guest may have created the repository, and each remote costs time."""
_REMOTE_CHOICES = frozenset({"remote", "pushremote", "pushdefault"})
"""Last part of the keys by which git chooses a remote if none is named. The value may also be a URL."""


class GitSettings:
    """The effective configuration of one repository, in the order git lists it."""

    def __init__(self, entries: Iterable[tuple[str, str]] = ()) -> None:
        self._values: dict[str, list[str]] = {}
        self._rewrites: dict[str, list[tuple[str, str]]] = {"insteadof": [], "pushinsteadof": []}
        for key, value in entries:
            values = self._values.setdefault(key, [])
            if value:
                values.append(value)
            else:
                values.clear()  # an empty value resets the list in git
            middle, _, last = key.rpartition(".")
            if middle.startswith("url.") and last in self._rewrites:
                self._rewrites[last].append((value, middle.removeprefix("url.")))

    @classmethod
    def parse(cls, listing: str) -> "GitSettings":
        """Parse the output of `git config --list -z`: key, newline, value, NUL."""
        pairs = (entry.partition("\n") for entry in listing.split("\0") if entry)
        return cls((_lower_ends(key), value) for key, _, value in pairs)

    def urls(self, remote: str) -> tuple[str, ...]:
        """Every URL that a fetch or a push could reach: of this remote, of a remote group, or of any remote if none is named.

        Empty if the configuration does not say: a remote may also be defined in its own file in the repository.
        """
        names = self._remotes_named(remote) if remote else self._configured_remotes()
        if len(names) > MAX_REMOTES or not all(self._has_url(name) or "/" in name for name in names):
            return ()
        return tuple(dict.fromkeys(url for name in names for url in self._all_urls(name)))

    def fetch_urls(self, remote: str) -> tuple[str, ...]:
        """Where a fetch goes."""
        return self._with_helper(remote, [self._rewrite(url, "insteadof") for url in self._urls(remote)])

    def push_urls(self, remote: str) -> tuple[str, ...]:
        """Where a push goes: to each `pushurl`, else to the URLs that `pushInsteadOf` rewrites, else where a fetch goes."""
        explicit = self._values.get(f"remote.{remote}.pushurl")
        if explicit:
            return self._with_helper(remote, [self._rewrite(url, "insteadof") for url in explicit])
        rewritten = [(url, self._rewrite(url, "pushinsteadof")) for url in self._urls(remote)]
        moved = [after for before, after in rewritten if after != before]
        return self._with_helper(remote, moved) or self.fetch_urls(remote)

    def _remotes_named(self, remote: str) -> tuple[str, ...]:
        group = " ".join(self._values.get(f"remotes.{remote}", ())).split()
        return (remote, *group) if self._has_url(remote) or not group else tuple(group)

    def _configured_remotes(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        for key, values in self._values.items():
            section, _, rest = key.partition(".")
            name, _, last = rest.rpartition(".")
            if section == "remote" and last in ("url", "pushurl"):
                found[name] = None
            elif section in ("branch", "remote") and last in _REMOTE_CHOICES:
                # `.` is this repository.
                found.update(dict.fromkeys(value for value in values if value != "."))
        return tuple(found)

    def _all_urls(self, remote: str) -> tuple[str, ...]:
        return self.push_urls(remote) + self.fetch_urls(remote)

    def _has_url(self, remote: str) -> bool:
        return bool(self._values.get(f"remote.{remote}.url") or self._values.get(f"remote.{remote}.pushurl"))

    def _urls(self, remote: str) -> list[str]:
        return self._values.get(f"remote.{remote}.url") or [remote]

    def _with_helper(self, remote: str, urls: list[str]) -> tuple[str, ...]:
        """The URLs with the prefix of the remote helper, if the remote has one."""
        helper = self._values.get(f"remote.{remote}.vcs")
        return tuple(f"{helper[-1]}::{url}" for url in urls) if helper else tuple(urls)

    def _rewrite(self, url: str, how: str) -> str:
        best, base = "", ""
        # The longest prefix wins, and the first of equals.
        for prefix, to in self._rewrites[how]:
            if len(prefix) > len(best) and url.startswith(prefix):
                best, base = prefix, to
        return base + url[len(best) :] if best else url


def _lower_ends(key: str) -> str:
    """Section and last part of a key ignore case; the part between them does not."""
    section, _, rest = key.partition(".")
    middle, _, last = rest.rpartition(".")
    return ".".join(part for part in (section.lower(), middle, last.lower()) if part)


_SCP = re.compile(
    r"(?:[^@/\\:\s\[\]]+@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^/\\:\s@\[\]]+):(?!//)(?P<path>.*)", re.DOTALL
)
_HELPER = re.compile(r"[A-Za-z0-9.+-]+::")
_NETWORK_SCHEMES = ("https", "http", "ssh", "git", "git+ssh", "ssh+git", "ftp", "ftps")


class GitRemotes(Protocol):
    """Resolves the remotes of a repository."""

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        """Every URL that a fetch or a push to `remote` would reach, or to any remote if it is empty. Empty if unknown."""
        ...


class SettingsRemotes:
    """Remotes by configurations that were read earlier. A folder whose configuration could not be read has none."""

    def __init__(self, settings: Mapping[str, GitSettings | None]) -> None:
        self._settings = settings

    def urls(self, folder: str, remote: str) -> Sequence[str]:
        settings = self._settings.get(folder)
        return settings.urls(remote) if settings is not None else ()


def canonical_remote(text: str, *, argument: str = "remote") -> UrlTarget:
    """The canonical form of a remote's URL, `git@host:path` included; a name or a local path has a `problem`."""

    def invalid(problem: str) -> UrlTarget:
        return UrlTarget(role="git-remote-url", argument=argument, given=text, problem=problem)

    if not text:
        return invalid("names no remote, so git chooses one")
    if text.startswith("-"):
        return invalid("starts with a dash, which git reads as an option")
    if _HELPER.match(text):
        return invalid("names a remote helper, which runs a program")
    if "://" in text:
        target = canonical_url(text, role="git-remote-url", argument=argument)
        if target.problem is not None:
            return target
        if target.scheme not in _NETWORK_SCHEMES:
            return invalid(f"is not a network remote ({target.scheme})")
        return UrlTarget(
            role="git-remote-url", argument=argument, given=text, scheme=target.scheme,
            host=target.host, port=target.port, path=target.path.removesuffix(".git"),
        )  # fmt: skip
    match = _SCP.fullmatch(text)
    if match is None:
        return invalid("is a remote name or a local path that could not be resolved")
    host = canonical_host(match["host"].strip("[]"))
    if host is None or re.search(r"[\x00-\x20\\]", text):
        return invalid("has an invalid host")
    path = match["path"].replace("%", "%25")  # this form has no escapes
    return UrlTarget(
        role="git-remote-url", argument=argument, given=text, scheme="ssh",
        host=host, path=canonical_path(path).removesuffix(".git"),
    )  # fmt: skip
