"""Asking something of a session from outside: done at once where it is put away, else left for the process that holds it."""

from holdfast.core import Limits, SessionId
from holdfast.core.errors import SessionHeld
from holdfast.gate import Budget, ControlRequests, RaiseBudget, RevokeGrant, TreeBudgetFile, share_of
from holdfast.store import Home, SqliteStore


async def send_control_request(
    home: Home, store: SqliteStore, session: SessionId, errand: RaiseBudget | RevokeGrant
) -> str:
    """See to it; tells who will do it where that is another process, else nothing."""
    inbox = ControlRequests(home.inbox(session))
    inbox.put(errand)
    try:
        journal = await store.open(session)
    except SessionHeld as held:
        return f"asked for; the session is in use ({held}) and heeds it before its next call or step"
    try:
        purse = TreeBudgetFile(home.purse(journal.recorded[0].session), session=session)
        if purse.is_readable:
            purse.join(share_of(session, journal.recorded))
        await inbox.apply(journal, Budget(journal, turn_limits=Limits(), tree=purse))
    finally:
        await journal.release()
    return ""
