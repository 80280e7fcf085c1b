"""Signs the snapshots of guests, so that only snapshots of this installation are ever loaded.

Loading an engine's snapshot is as dangerous as running code, and engines do not authenticate theirs. The signature is an
HMAC-SHA256 over the engine's tag (name and version) and the data. It proves the origin of a snapshot; it does not encrypt it.
A snapshot names its key by an id, so machines that share sessions can change keys while old snapshots are still waiting.
"""

import hashlib
import hmac

from holdfast.core.errors import InvalidInput, SnapshotRefused

_MAGIC, _MAGIC_WITHOUT_ID = b"HFS2", b"HFS1"
_MAC_BYTES = 32
_ID_BYTES = 8
_MIN_KEY_BYTES = 16
KEY_BYTES = 32


class SnapshotSigner:
    """Signs data under an engine's tag, and verifies data that was signed with one of the same keys and the same tag.

    It takes one key, or several of 32 bytes one after the other: the first one signs, all of them verify.
    """

    def __init__(self, key: bytes) -> None:
        if len(key) < _MIN_KEY_BYTES:
            raise InvalidInput(
                f"a signing key needs at least {_MIN_KEY_BYTES} bytes, this one has {len(key)}",
                hint="Use 32 random bytes that are kept with the store.",
            )
        is_several = len(key) > KEY_BYTES and len(key) % KEY_BYTES == 0
        keys = [key[at : at + KEY_BYTES] for at in range(0, len(key), KEY_BYTES)] if is_several else [key]
        self._keys = {_key_id(each): each for each in keys}
        self._id = _key_id(keys[0])

    def sign(self, engine: str, data: bytes) -> bytes:
        """The data with its signature for an engine."""
        head = _MAGIC + self._id + _tagged(engine)
        return head + _mac(self._keys[self._id], head, data) + data

    def verify(self, engine: str, signed: bytes) -> bytes:
        """The data, if it is unchanged and was signed with a key of ours for this engine. Raises SnapshotRefused."""
        id, head, tag, mac, data = _split(signed)
        if id is not None and id not in self._keys:
            raise SnapshotRefused(
                f"this snapshot was not made here: it was signed with the key {id.hex()}",
                hint="Add that key to the file of keys ($HOLDFAST_KEY_FILE), or start the turn again.",
            )
        keys = list(self._keys.values()) if id is None else [self._keys[id]]
        if not any(hmac.compare_digest(mac, _mac(key, head, data)) for key in keys):
            raise SnapshotRefused(
                "this snapshot was not made here, or was changed since",
                hint="Start the turn again; a snapshot is valid only where the key that signed it is.",
            )
        if tag != engine:
            raise SnapshotRefused(
                f"this snapshot belongs to {tag!r}, not to {engine!r}",
                hint="Use the engine and version that made it, or start the turn again.",
            )
        return data


def signing_key_id(key: bytes) -> str:
    """What names the key that signs, of one key or of several of 32 bytes: it says nothing about the key itself."""
    is_several = len(key) > KEY_BYTES and len(key) % KEY_BYTES == 0
    return _key_id(key[:KEY_BYTES] if is_several else key).hex()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"holdfast key id" + key).digest()[:_ID_BYTES]


def _mac(key: bytes, head: bytes, data: bytes) -> bytes:
    mac = hmac.new(key, head, hashlib.sha256)
    mac.update(data)
    return mac.digest()


def _tagged(engine: str) -> bytes:
    tag = engine.encode()
    return len(tag).to_bytes(2, "big") + tag


def _split(signed: bytes) -> tuple[bytes | None, bytes, str, bytes, bytes]:
    """The id of the key (None in older snapshots), the signed head, tag, MAC and data, not yet verified."""
    has_id = signed.startswith(_MAGIC)
    ids = len(_MAGIC) + (_ID_BYTES if has_id else 0)
    start = ids + 2
    end = start + int.from_bytes(signed[ids:start], "big")
    if not signed.startswith((_MAGIC, _MAGIC_WITHOUT_ID)) or len(signed) < end + _MAC_BYTES:
        raise SnapshotRefused("this is not a snapshot, or only a part of one", hint="Start the turn again.")
    try:
        tag = signed[start:end].decode()
    except UnicodeDecodeError:
        raise SnapshotRefused("this is not a snapshot", hint="Start the turn again.") from None
    id = signed[len(_MAGIC) : ids] if has_id else None
    return id, signed[:end], tag, signed[end : end + _MAC_BYTES], signed[end + _MAC_BYTES :]
