"""API keys: what programs and people send to `holdfast serve` to prove who they are.

A key belongs to one principal of one tenant and has one right. The store keeps a hash of its secret part, which is random and
long, so a plain SHA-256 is enough.
"""

import hashlib
import hmac
import secrets
from typing import get_args

from holdfast.core.errors import InvalidInput
from holdfast.store.contract import ApiKey, Right, WorkStore

RIGHTS: tuple[Right, ...] = get_args(Right)
PREFIX = "hf_"
MAX_PRINCIPAL = 80


async def create_api_key(store: WorkStore, principal: str, right: Right) -> tuple[ApiKey, str]:
    """Create a key and return it with its whole text, which nobody can read again. Raises InvalidInput."""
    name = principal.strip()
    if not name or len(name) > MAX_PRINCIPAL or not name.isprintable():
        raise InvalidInput(
            f"{principal!r} cannot be the name of who uses a key", hint="for example: alice, or build-server"
        )
    key, secret = ApiKey(id=secrets.token_hex(5), principal=name, right=right), secrets.token_urlsafe(32)
    await store.keep_api_key(key, _hash(secret))
    return key, f"{PREFIX}{key.id}_{secret}"


async def check_api_key(store: WorkStore, text: str) -> ApiKey | None:
    """The key with this text; None if there is none, or none of this tenant. Raises StoreUnavailable."""
    id, _, secret = text.removeprefix(PREFIX).partition("_")
    if not text.startswith(PREFIX) or not text.isascii() or not secret:
        return None
    found = await store.api_key(id)
    if found is None:
        return None
    key, kept = found
    return key if hmac.compare_digest(_hash(secret), kept) else None


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
