"""A seal on what a guest leaves behind: only snapshots that this installation made are ever loaded.

An engine's snapshot is as good as code, and engines do not authenticate theirs. The seal is an HMAC-SHA256 over the
engine's tag (name and version) and the data; it proves where a snapshot comes from, it does not hide what is in it.
"""

import hashlib
import hmac

from holdfast.core.errors import InvalidInput, SnapshotRefused

_MAGIC = b"HFS1"
_MAC_BYTES = 32
_MIN_KEY_BYTES = 16


class SnapshotSigner:
    """Closes data under an engine's tag, and opens only what it closed under the same tag."""

    def __init__(self, key: bytes) -> None:
        if len(key) < _MIN_KEY_BYTES:
            raise InvalidInput(
                f"a seal needs a key of at least {_MIN_KEY_BYTES} bytes, this one has {len(key)}",
                hint="Use 32 random bytes that are kept with the store.",
            )
        self._key = key

    def close(self, engine: str, data: bytes) -> bytes:
        """Seal data for an engine."""
        head = _head(engine)
        return head + self._mac(head, data) + data

    def open(self, engine: str, sealed: bytes) -> bytes:
        """The data of a seal that is ours, whole and for this engine. Raises SnapshotRefused."""
        tag, mac, data = _parts(sealed)
        if not hmac.compare_digest(mac, self._mac(_head(tag), data)):
            raise SnapshotRefused(
                "this snapshot was not made here, or was changed since",
                hint="Start the turn again; a snapshot is valid only in the home that made it.",
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


def _parts(sealed: bytes) -> tuple[str, bytes, bytes]:
    """Tag, MAC and data, not yet proven."""
    start = len(_MAGIC) + 2
    end = start + int.from_bytes(sealed[len(_MAGIC) : start], "big")
    if not sealed.startswith(_MAGIC) or len(sealed) < end + _MAC_BYTES:
        raise SnapshotRefused("this is no snapshot, or only a part of one", hint="Start the turn again.")
    try:
        tag = sealed[start:end].decode()
    except UnicodeDecodeError:
        raise SnapshotRefused("this is no snapshot", hint="Start the turn again.") from None
    return tag, sealed[end : end + _MAC_BYTES], sealed[end + _MAC_BYTES :]
