"""Looking at a rewind of a session that another process may hold."""

import msgspec

from holdfast.core import SessionId
from holdfast.core.events import RestorePointMade
from holdfast.session.branches.rewind_fork import RewindPlan, last_point, plan_rewind
from holdfast.session.restore_points import restore_limits
from holdfast.session.shared.travelling_folder import readable_folder
from holdfast.store import Home, Store
from holdfast.world import RestorePoints


async def view_rewind(home: Home, store: Store, session: SessionId, turn: int) -> RewindPlan:
    """The plan of a rewind to the end of a turn, to look at: without a lease. Raises InvalidInput if it has no restore point.

    Which ports are open to programs is up to the process that holds the session, so the effects of all programs are named.
    """
    recorded = await store.read(session)
    plan, last = plan_rewind(recorded, turn), last_point(recorded)
    assert last is not None, "the plan leads to one"
    assert isinstance(last.event, RestorePointMade)
    folder = await readable_folder(home, store, session)
    points = RestorePoints(
        folder,
        store=store,
        last=last.event.manifest,
        cache=home.stat_cache(session),
        limits=restore_limits(recorded),
    )
    preview = await points.preview(plan.manifest)
    return msgspec.structs.replace(plan, changes=preview.changes, left=preview.left)
