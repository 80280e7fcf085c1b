"""Shared budgets: what the sessions of a tree have spent and reserved.

A change is computed here and written if nobody changed the tree in the meantime; otherwise it is computed again. The last
known shares are kept, so a tree that one process uses costs one round trip a change.
"""

import asyncio
import secrets
import weakref
from collections import OrderedDict

import asyncpg
import msgspec

from holdfast.core import SessionId, Value, encode
from holdfast.core.errors import InvalidInput, StoreUnavailable
from holdfast.store.contract import ChangeShares, SessionShare, Shares
from holdfast.store.postgres.database import LOST, SQL, Database

MAX_KNOWN = 10_000
_DECODER: msgspec.json.Decoder[SessionShare] = msgspec.json.Decoder(SessionShare)


class _Known(Value):
    """The shares of a tree at a version."""

    version: int
    change: str
    shares: dict[SessionId, SessionShare]


class TreeShares:
    """The shares of all trees, as this process last saw them."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._locks: weakref.WeakValueDictionary[SessionId, asyncio.Lock] = weakref.WeakValueDictionary()
        self._known: OrderedDict[SessionId, _Known] = OrderedDict()

    async def read(self, tree: SessionId) -> Shares:
        """The shares of a tree. Raises StoreUnavailable if one is damaged: it may hide what was spent."""
        found = await self._database.read(lambda connection: _read(connection, tree))
        return {} if found is None else found.shares

    async def change(self, tree: SessionId, change: ChangeShares) -> Shares:
        """Change the shares of a tree, if its first session is still there."""
        async with self._locks.setdefault(
            tree, asyncio.Lock()
        ):  # within this process, nobody computes in vain
            known = self._known.pop(tree, None)
            while known is not None or (known := await self._current(tree)) is not None:
                changed = change(known.shares)
                token = secrets.token_hex(8)
                after = _Known(version=known.version + 1, change=token, shares={**known.shares, **changed})
                if await self._write(tree, known.version, changed, token):
                    return self._keep(tree, after)
                known = await self._current(tree)
                if known is not None and known.change == token:  # written, but the answer was lost
                    return self._keep(tree, after)
            return {}

    def _keep(self, tree: SessionId, known: _Known) -> Shares:
        self._known[tree] = known
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        return known.shares

    async def _current(self, tree: SessionId) -> _Known | None:
        async def look(connection: asyncpg.Connection) -> _Known | None:
            found = await _read(connection, tree)
            if found is None:
                await connection.execute(SQL["begin_tree"], tree)
                found = await _read(connection, tree)
            return found

        return await self._database.read(look)

    async def _write(self, tree: SessionId, version: int, changed: Shares, token: str) -> bool:
        columns = (list(changed), [encode(share) for share in changed.values()], token)
        try:
            written = await self._database.write(
                lambda connection: connection.fetchval(SQL["put_shares"], tree, version, *columns)
            )
        except StoreUnavailable as problem:
            if isinstance(problem.__cause__, LOST):
                return False
            raise
        return written is not None


async def _read(connection: asyncpg.Connection, tree: SessionId) -> _Known | None:
    rows = await connection.fetch(SQL["shares_of"], tree)
    if not rows:
        return None
    try:
        shares = {
            SessionId(row["session"]): _DECODER.decode(row["amounts"])
            for row in rows
            if row["session"] is not None
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidInput) as problem:
        raise StoreUnavailable(
            f"the shared budget of {tree!r} cannot be read",
            hint="compute it from the journals with: holdfast rebuild-index",
        ) from problem
    return _Known(version=rows[0]["version"], change=rows[0]["change"], shares=shares)


async def drop_damaged(connection: asyncpg.Connection, tree: SessionId) -> None:
    """Remove all shares of a tree if one is damaged: a tree without shares gets them from the journals."""
    try:
        await _read(connection, tree)
    except StoreUnavailable:
        await connection.execute(SQL["delete_shares"], tree)
