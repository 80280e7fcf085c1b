"""The files of a workspace that programs must not see: what the policy does not let be read, and secrets."""

import asyncio
import re
import time
from collections.abc import Callable, Collection, Iterable

from holdfast.core import Location, PathTarget, Verdict
from holdfast.core.errors import HoldfastError
from holdfast.policy import Policy, read_verdict
from holdfast.world import World

_SECRET_NAME = re.compile(
    r"\.env(\..+)?|\.netrc|_netrc|\.git-credentials|id_[A-Za-z0-9_]+|\.htpasswd|credentials\.json|\.vault_pass.*"
)
_PUBLIC_NAME = re.compile(r"\.env\.(example|sample|template|dist|defaults?)")
_MAYBE_SECRET = re.compile(r".*\.(pem|key|p12|pfx|jks|keystore)|\.npmrc|\.pypirc|\.yarnrc(\.yml)?|pip\.conf")
_SECRET_CONTENT = re.compile(
    rb"PRIVATE KEY|_authToken\s*=|_password\s*=|_auth\s*=|npmAuthToken|^\s*password\s*[=:]|://[^/\s:@]+:[^/\s@]+@",
    re.M,
)
_KEY_STORES = (".p12", ".pfx", ".jks", ".keystore")
_SHARE = 20
"""A walk is repeated once this many times its own duration has passed, so that it costs a command at most a twentieth."""


class HiddenFiles:
    """Computes the hidden files of a workspace, at most about once a second."""

    def __init__(self, world: World, *, policy: Callable[[], Policy]) -> None:
        self._world = world
        self._policy = policy
        self._verdicts: dict[str, Verdict] = {}
        self._policy_digest = ""
        self._hidden: frozenset[str] = frozenset()
        self._fresh_until = 0.0

    async def __call__(self) -> Collection[str]:
        if time.monotonic() < self._fresh_until and self._policy().digest == self._policy_digest:
            return self._hidden
        started = time.monotonic()
        self._hidden = await asyncio.to_thread(self._compute)
        ended = time.monotonic()
        self._fresh_until = ended + (ended - started) * _SHARE
        return self._hidden

    def _compute(self) -> frozenset[str]:
        policy = self._policy()
        if policy.digest != self._policy_digest:
            self._verdicts, self._policy_digest = {}, policy.digest
        files = self._world.files()
        for path in files:
            if path not in self._verdicts:
                self._verdicts[path] = _verdict(policy, path)
        verdicts = {path: self._verdicts[path] for path in files}
        # Where every read is asked about, the person was asked about the command; then only a denial hides a file.
        asks_about_some = any(verdict in ("allow", "stage") for verdict in verdicts.values())
        unreadable = {
            path
            for path, verdict in verdicts.items()
            if verdict == "deny" or (verdict == "escalate" and asks_about_some)
        }
        return frozenset({*unreadable, *self._secrets(files)})

    def _secrets(self, files: Iterable[str]) -> Iterable[str]:
        for path in files:
            name = path.rpartition("/")[2].casefold()
            if (_SECRET_NAME.fullmatch(name) and not _PUBLIC_NAME.fullmatch(name)) or (
                _MAYBE_SECRET.fullmatch(name) and (name.endswith(_KEY_STORES) or self._holds_secret(path))
            ):
                yield path

    def _holds_secret(self, path: str) -> bool:
        try:
            return _SECRET_CONTENT.search(self._world.read(path)) is not None
        except (OSError, HoldfastError):
            return True


def _verdict(policy: Policy, path: str) -> Verdict:
    # A walk follows no symlink, so that the path leads where it says.
    location = Location(given=path, real=f"/workspace/{path}", inside=path)
    return read_verdict(policy, PathTarget(role="read-path", argument="path", location=location))
