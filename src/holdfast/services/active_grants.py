"""The saved approvals that apply to a session, in words."""

from holdfast.core import Clock, Grant, SessionId, Value
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Grants, SavedGrants, describe_grant
from holdfast.store import Store


class ShownGrant(Value, omit_defaults=False):
    """A saved approval, and what it covers in words."""

    grant: Grant
    text: str


async def active_grants(
    store: Store, saved: SavedGrants, session: SessionId | None, *, clock: Clock
) -> list[ShownGrant]:
    """The saved approvals for every session and, if one is named, those of that session. Reports a damaged document."""
    recorded = await store.read(session) if session is not None else ()
    saved.load()
    active = Grants(ReplayedHistory(recorded), clock=clock, saved=saved).active()
    return [ShownGrant(grant=grant, text=describe_grant(grant)) for grant in active]
