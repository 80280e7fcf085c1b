"""The rows of shared budgets: what the sessions of a tree have spent and reserved."""

import msgspec

from holdfast.core import SessionId, encode
from holdfast.core.errors import InvalidInput, StoreUnavailable
from holdfast.store.contract import ChangeShares, SessionShare, Shares
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import Connection
from holdfast.store.sqlite.transaction import Transaction

_DECODER: msgspec.json.Decoder[SessionShare] = msgspec.json.Decoder(SessionShare)


def read_shares(connection: Connection, tree: SessionId) -> Shares:
    """Read the shares of a tree. Raises StoreUnavailable if one is damaged: it may hide what was spent."""
    try:
        return {
            SessionId(session): _DECODER.decode(amounts)
            for session, amounts in connection.execute(SQL["shares_of"], (tree,))
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidInput, TypeError) as problem:
        raise StoreUnavailable(
            f"the shared budget of {tree!r} cannot be read",
            hint="compute it from the journals with: holdfast rebuild-index",
        ) from problem


def change_shares(tree: SessionId, change: ChangeShares, transaction: Transaction) -> Shares:
    """Change the shares of a tree, if its first session is still there."""
    if transaction.execute(SQL["find_session"], (tree,)).fetchone() is None:
        return {}
    before = read_shares(transaction, tree)
    changed = change(before)
    transaction.executemany(
        SQL["put_share"], [(tree, session, encode(share)) for session, share in changed.items()]
    )
    return {**before, **changed}


def drop_damaged_shares(transaction: Transaction) -> None:
    """Remove all shares of a tree if one is damaged: a tree without shares gets them from the journals."""
    for (tree,) in transaction.execute(SQL["trees"]).fetchall():
        try:
            read_shares(transaction, tree)
        except StoreUnavailable:
            transaction.execute(SQL["delete_shares"], (tree,))
