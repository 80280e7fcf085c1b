"""Signs the snapshots of guests, so that only snapshots of this installation are ever loaded.

Loading an engine's snapshot is as dangerous as running code, and engines do not authenticate theirs. The signature is an
HMAC-SHA256 over the engine's tag (name and version) and the data. It proves the origin of a snapshot; it does not encrypt it.
"""

import hashlib
import hmac

from holdfast.core.errors import InvalidInput, SnapshotRefused

_MAGIC = b"HFS1"
_MAC_BYTES = 32
_MIN_KEY_BYTES = 16


class SnapshotSigner:
    """Signs data under an engine's tag, and verifies data that was signed with the same key and tag."""

    def __init__(self, key: bytes) -> None:
        if len(key) < _MIN_KEY_BYTES:
            raise InvalidInput(
                f"a signing key needs at least {_MIN_KEY_BYTES} bytes, this one has {len(key)}",
                hint="Use 32 random bytes that are kept with the store.",
            )
        self._key = key

    def sign(self, engine: str, data: bytes) -> bytes:
        """The data with its signature for an engine."""
        head = _head(engine)
        return head + self._mac(head, data) + data

    def verify(self, engine: str, signed: bytes) -> bytes:
        """The data, if it is unchanged and was signed here for this engine. Raises SnapshotRefused."""
        tag, mac, data = _split(signed)
        if not hmac.compare_digest(mac, self._mac(_head(tag), data)):
            raise SnapshotRefused(
                "this snapshot was not made here, or was changed since",
                hint="Start the turn again; a snapshot is valid only in the data directory where it was made.",
            )
        if tag != engine:
            raise SnapshotRefused(
                f"this snapshot belongs to {tag!r}, not to {engine!r}",
                hint="Use the engine and version that made it, or start the turn again.",
            )
        return data

    def _mac(self, head: bytes, data: bytes) -> bytes:
        mac = hmac.new(self._key, head, hashlib.sha256)
        mac.update(data)
        return mac.digest()


def _head(engine: str) -> bytes:
    tag = engine.encode()
    return _MAGIC + len(tag).to_bytes(2, "big") + tag


def _split(signed: bytes) -> tuple[str, bytes, bytes]:
    """Tag, MAC and data, not yet verified."""
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(signed[len(_MAGIC) : start], "big")
    if not signed.startswith(_MAGIC) or len(signed) < end + _MAC_BYTES:
        raise SnapshotRefused("this is not a snapshot, or only a part of one", hint="Start the turn again.")
    try:
        tag = signed[start:end].decode()
    except UnicodeDecodeError:
        raise SnapshotRefused("this is not a snapshot", hint="Start the turn again.") from None
    return tag, signed[end : end + _MAC_BYTES], signed[end + _MAC_BYTES :]
