"""Control requests to a session from another process: applied at once if the session is closed, else queued for its process."""

from holdfast.core import Limits, SessionId
from holdfast.core.errors import SessionHeld
from holdfast.gate import Budget, ControlRequests, RaiseBudget, RevokeGrant, TreeBudgetFile, share_of
from holdfast.store import Home, Store


async def send_control_request(
    home: Home, store: Store, session: SessionId, request: RaiseBudget | RevokeGrant
) -> str:
    """Apply the request, or queue it for the process that holds the session. Returns a message in the second case, else `""`."""
    inbox = ControlRequests(home.control_requests(session))
    inbox.put(request)
    try:
        journal = await store.open(session)
    except SessionHeld as held:
        return f"requested; the session is in use ({held}) and applies it before its next call or step"
    try:
        tree_budget = TreeBudgetFile(home.tree_budget(journal.recorded[0].session), session=session)
        if tree_budget.is_readable:
            tree_budget.join(share_of(session, journal.recorded))
        await inbox.apply(journal, Budget(journal, turn_limits=Limits(), tree=tree_budget))
    finally:
        await journal.release()
    return ""
