"""Grants for always: kept in one file of the home, shown before they are kept, revoked by their id."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.core import Grant, GrantId
from holdfast.core.errors import InvalidConfig
from holdfast.store import replace_private


class GrantBook:
    """The file of standing grants. Other processes may write it; each change is made under a lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def grants(self) -> tuple[Grant, ...]:
        """Every grant kept. A file that cannot be read grants nothing, and says so."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return ()
        try:
            return msgspec.json.decode(content, type=tuple[Grant, ...])
        except msgspec.DecodeError as error:
            raise InvalidConfig(
                f"{self._path}: {error}", hint="move the file away; its grants are gone then"
            ) from error

    def standing(self) -> tuple[Grant, ...]:
        """Every grant kept, for a session at work: a file that was damaged meanwhile grants nothing."""
        try:
            return self.grants()
        except (InvalidConfig, OSError):
            return ()

    def keep(self, grant: Grant) -> None:
        """Keep a grant for every session to come."""
        self._change(lambda grants: (*grants, grant))

    def revoke(self, id: GrantId) -> bool:
        """Drop a grant; False where there was none of this id."""
        before = len(self.grants())
        self._change(lambda grants: tuple(grant for grant in grants if grant.id != id))
        return len(self.grants()) < before

    def _change(self, change: Callable[[tuple[Grant, ...]], tuple[Grant, ...]]) -> None:
        with self._locked():
            content = msgspec.json.format(msgspec.json.encode(change(self.grants())), indent=2)
            replace_private(self._path, content)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._path.with_name(f".{self._path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
