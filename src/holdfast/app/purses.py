"""The purse of a session's tree: found with the first session, and made anew from the journals where it is missing."""

from holdfast.core import Limits, SessionId
from holdfast.gate import Purse, Share, limits_of_tree, share_of
from holdfast.store import Home, Journal, Store


async def purse_of(journal: Journal, *, home: Home, store: Store) -> Purse | None:
    """The way of this session to the purse it shares with its forks, or its parents; None where nothing is limited."""
    first, session = journal.recorded[0].session, journal.session
    limits = limits_of_tree(journal.recorded)
    if limits == Limits():
        return None
    purse = Purse(home.purse(first), session=session)
    is_deleted = first != session and not home.session_folder(first).is_dir()
    if not purse.is_readable and not is_deleted:
        is_new = len(journal.recorded) == 1
        purse.make(limits, {} if is_new else await _family(first, store))
    purse.join(share_of(session, journal.recorded))
    return purse


async def _family(first: SessionId, store: Store) -> dict[SessionId, Share]:
    """What every session of a tree has spent, as its journal says."""
    parents = {each.id: each.parent.session for each in await store.sessions() if each.parent is not None}
    family = {first}
    while grown := {id for id, parent in parents.items() if parent in family} - family:
        family |= grown
    return {id: share_of(id, await store.read(id)) for id in family}
