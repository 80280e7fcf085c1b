"""Looking at the merge of a fork that another process may hold, or whose parent another process holds."""

from holdfast.core import SessionId
from holdfast.core.events import RestorePointMade
from holdfast.session.branches.merge import Merge, MergePlan, MergeSide, fork_base, parent_of
from holdfast.session.branches.rewind_fork import last_point
from holdfast.session.restore_points import restore_limits
from holdfast.session.shared.travelling_folder import readable_folder
from holdfast.session.staged_changes import view_staged
from holdfast.store import Home, Store
from holdfast.world import RestorePoints


async def view_merge(home: Home, store: Store, fork: SessionId, *paths: str) -> MergePlan:
    """The plan of a merge, to look at: without a lease. Raises InvalidInput if the session is not a fork."""
    recorded = await store.read(fork)
    parent = parent_of(fork, recorded).session
    last = last_point(recorded)
    points = RestorePoints(
        await readable_folder(home, store, fork),
        store=store,
        last=last.event.manifest if last is not None and isinstance(last.event, RestorePointMade) else None,
        cache=home.stat_cache(fork),
        limits=restore_limits(recorded),
    )
    merge = Merge(
        fork=MergeSide(fork, recorded, await view_staged(home, store, fork)),
        parent=MergeSide(parent, await store.read(parent), await view_staged(home, store, parent)),
        changes=await points.changes_since(fork_base(recorded)),
    )
    merge.stage(paths)
    return merge.plan()
