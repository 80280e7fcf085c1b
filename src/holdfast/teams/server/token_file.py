"""The tokens of the HTTP server's clients. They are kept in a private file and stay valid until they are revoked.

The server reads the file for every request, so a revocation takes effect at once.
"""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from holdfast.core import digest_bytes
from holdfast.core.errors import InvalidConfig
from holdfast.store import locked, private_folder, read_plain, replace_private

MAX_BYTES = 1 << 20


class TokenFile:
    """One token for each name: a team, `external` or `operator`."""

    def __init__(self, path: Path, names: Sequence[str]) -> None:
        self._path = path
        self._names = tuple(names)

    def tokens(self) -> dict[str, str]:
        """The token of every name; missing ones are created. Raises InvalidConfig."""
        with self._locked():
            kept = self._read()
            missing = {name: secrets.token_urlsafe(32) for name in self._names if name not in kept}
            if missing:
                replace_private(self._path, msgspec.json.encode(kept | missing))
        return {name: (kept | missing)[name] for name in self._names}

    def revoke(self, *names: str) -> None:
        """Make the tokens of these names invalid. Raises InvalidConfig."""
        with self._locked():
            kept = {name: token for name, token in self._read().items() if name not in names}
            replace_private(self._path, msgspec.json.encode(kept))

    def name_of(self, token: str) -> str | None:
        """The name that a token belongs to; None if it is not valid. Raises InvalidConfig."""
        # Digests are compared, so the time of the comparison reveals nothing about a token.
        wanted = digest_bytes(token.encode())
        valid = {digest_bytes(kept.encode()): name for name, kept in self._read().items()}
        name = valid.get(wanted)
        return name if name in self._names else None

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(read_plain(self._path, max_bytes=MAX_BYTES), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            raise InvalidConfig(
                f"{self._path}: cannot be read: {error}",
                hint="remove the file to replace every token with a new one",
            ) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        private_folder(self._path.parent)
        with locked(self._path):
            yield
