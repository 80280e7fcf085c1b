"""Signatures of archives: which home exported one, and that nothing in it was changed since.

Every home has an Ed25519 key. Its public half names the home, and a person can list the public keys of their other homes in
`trusted-export-keys`, one a line. A signature is evidence about words and results; it permits nothing.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.core import SessionId
from holdfast.core.errors import InvalidConfig, StoreUnavailable
from holdfast.core.events import Signer
from holdfast.store.archive.format import is_whole
from holdfast.store.contract import ArchiveSignature, ExportedSession, Store
from holdfast.store.files.private_files import read_settings
from holdfast.store.home import Home

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

# `cryptography` takes 30 ms to load, so it is imported on use: most commands neither export nor import.

KEY_PREFIX = "holdfast-export-key"


class HomeSignatures:
    """Signs archives with the key of a home, and says who signed one."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def sign(self, statement: bytes) -> ArchiveSignature:
        """Sign a statement. The first signature creates the key. Raises StoreUnavailable."""
        key = self._private_key()
        return ArchiveSignature(key=_public_hex(key), value=key.sign(statement).hex())

    def public_key(self) -> str:
        """The line by which another home can trust this one. Raises StoreUnavailable."""
        return f"{KEY_PREFIX} {_public_hex(self._private_key())}"

    def signer(self, statement: bytes, signature: ArchiveSignature) -> Signer:
        """Who signed a statement; empty if it is nobody that the person trusts, or the signature is of something else.

        Raises InvalidConfig if the trusted keys cannot be read.
        """
        if not _is_valid(statement, signature):
            return ""
        if self._is_own(signature.key):
            return "this-home"
        return "trusted-home" if signature.key in self._trusted_keys() else ""

    def _private_key(self) -> "Ed25519PrivateKey":
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        return Ed25519PrivateKey.from_private_bytes(self._home.export_key())

    def _is_own(self, key: str) -> bool:
        if not self._home.export_key_file.exists():
            return False  # what was not signed here needs no key
        try:
            return key == _public_hex(self._private_key())
        except StoreUnavailable:
            return False

    def _trusted_keys(self) -> frozenset[str]:
        path = self._home.trusted_export_keys
        try:
            text = read_settings(path).decode("utf-8", "replace")
        except FileNotFoundError:
            return frozenset()
        except OSError as problem:
            raise InvalidConfig(
                f"{str(path)!r} cannot be read: {problem.strerror or problem}",
                hint="correct or remove it; without it, only your own exports keep their labels",
            ) from problem
        lines = (line.split() for line in text.splitlines())
        return frozenset(words[1] for words in lines if len(words) > 1 and words[0] == KEY_PREFIX)


async def export_signed(
    store: Store, home: Home, session: SessionId, path: Path, *, now_ms: int
) -> ExportedSession:
    """Export a session and sign it. If the home has no key and none can be written, or the key is damaged, it is not signed.

    Raises InvalidInput, SessionNotFound.
    """
    signatures, unsigned_because = HomeSignatures(home), ""
    try:
        signatures.public_key()
    except StoreUnavailable as problem:
        unsigned_because = str(problem)
    manifest = await store.export_session(
        session, path, now_ms=now_ms, sign=None if unsigned_because else signatures.sign
    )
    if not is_whole(manifest):
        unsigned_because = "it is damaged"
    return ExportedSession(manifest=manifest, unsigned_because=unsigned_because)


def _is_valid(statement: bytes, signature: ArchiveSignature) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.key))
        public.verify(bytes.fromhex(signature.value), statement)
    except (InvalidSignature, ValueError):
        return False
    return True


def _public_hex(key: "Ed25519PrivateKey") -> str:
    return key.public_key().public_bytes_raw().hex()
