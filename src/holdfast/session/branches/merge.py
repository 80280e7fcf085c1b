"""Merging a fork: its changes since the fork, committed and staged, compared with the folder of its parent.

It is a merge of whole files with the restore point of the fork as the base. A file that only the fork changed is taken
over. A file that changed in both is a conflict, which is reported and never resolved here. What was merged once becomes the
base of the next merge. A symlink is merged as itself, not as what it leads to.
"""

import os
from collections.abc import Sequence
from typing import NamedTuple, Self

import msgspec

from holdfast.core import LINK_MODE, Change, Principal, SessionId, Value, digest
from holdfast.core.errors import CommitConflict, InvalidInput, PathRefused
from holdfast.core.events import (
    ForkChangesStaged,
    ForkMerged,
    Noted,
    Parent,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
    RestorePointMade,
    SessionOpened,
    SessionReconfigured,
)
from holdfast.store import Journal, Store
from holdfast.world import (
    ChangesSince,
    NamedContent,
    Proposal,
    StagedWorld,
    World,
    delete_name,
    read_name,
    write_name,
)


class MergeConflict(Value):
    """A file of a fork that cannot be merged, and why."""

    path: str
    reason: str


class MergePlan(Value):
    """What a merge of a fork would change in the folder of its parent."""

    fork: SessionId
    parent: SessionId
    proposals: tuple[Proposal, ...] = ()
    """The changes, as diffs against the parent's folder."""
    conflicts: tuple[MergeConflict, ...] = ()
    left: tuple[str, ...] = ()
    """What differs in the fork and is not merged: devices, symlinks that may lead out of the parent's folder, files that were not
    saved, names that no guest can use."""

    def check(self, shown: "MergePlan | None" = None) -> None:
        """Raise CommitConflict if anything conflicts, or if a person was shown another plan."""
        if self.conflicts:
            named = "; ".join(f"{each.path} ({each.reason})" for each in self.conflicts)
            raise CommitConflict(
                f"the fork and its parent conflict in {named}; nothing was merged",
                paths=tuple(each.path for each in self.conflicts),
                hint=f"merge the other files by name: holdfast merge {self.fork} PATH...; "
                f"to read one of these: holdfast files cat {self.fork} PATH",
            )
        if shown is not None and shown != self:
            raise CommitConflict(
                "the files changed since the merge was shown; nothing was merged",
                hint=f"look at it again: holdfast merge {self.fork}",
            )


class ShownMerge(MergePlan):
    """A plan as a person or a program looks at it, with the digest that goes along with the merge."""

    digest: str

    @classmethod
    def of(cls, plan: MergePlan) -> Self:
        """The plan with its digest."""
        return cls(**msgspec.structs.asdict(plan), digest=digest(plan))


def parent_of(session: SessionId, recorded: Sequence[RecordedEvent]) -> Parent:
    """The session that a fork was made of. Raises InvalidInput if it is not a fork made here."""
    opened = _opening(recorded)
    event = recorded[opened].event
    if not isinstance(event, SessionOpened) or event.parent is None:
        raise InvalidInput(
            f"session {session} is not a fork", hint="only the work of a fork can be merged: holdfast fork"
        )
    if any(isinstance(each.event, Noted) and each.event.code == "imported" for each in recorded[opened:]):
        raise InvalidInput(
            f"session {session} was imported, so its parent here is not the one it was made of",
            hint="copy its files with: holdfast files",
        )
    return event.parent


def fork_base(recorded: Sequence[RecordedEvent]) -> str | None:
    """The restore point that a fork's folder was filled from; None if it started without files."""
    opened = _opening(recorded)
    following = recorded[opened + 1].event if opened + 1 < len(recorded) else None
    if isinstance(following, SessionReconfigured) and following.workspace:
        return None  # `fork --event` takes the chat alone
    point = recorded[opened - 1].event
    return point.manifest if isinstance(point, RestorePointMade) else None


class MergeSide(NamedTuple):
    """One of the two sessions of a merge: its record, and its files with what is staged over them."""

    session: SessionId
    recorded: Sequence[RecordedEvent]
    staged: StagedWorld


class Merge:
    """The changes of one fork over the folder of its parent: planned first, then committed."""

    def __init__(self, *, fork: MergeSide, parent: MergeSide, changes: ChangesSince) -> None:
        self._fork = fork.staged
        self._parent = parent.staged
        self._sessions = fork.session, parent.session
        self._folder = changes
        self._base = {each.path: (each.fingerprint, each.mode) for each in changes.files}
        self._merged = {
            change.path: change.after or ""
            for entry in fork.recorded
            if isinstance(entry.event, ForkMerged)
            for change in entry.event.changes
        }
        self._staged = parent.staged.sibling()
        self._changes: list[Change] = []
        self._conflicts: list[MergeConflict] = []
        self._left = set(changes.left)

    def plan(self) -> MergePlan:
        """What is staged, and what could not be."""
        fork, parent = self._sessions
        return MergePlan(
            fork=fork,
            parent=parent,
            proposals=self._staged.proposals(),
            conflicts=tuple(self._conflicts),
            left=tuple(sorted(self._left)),
        )

    async def commit(self, store: Store, principal: Principal, *, fork: Journal, parent: Journal) -> None:
        """Commit what is staged to the parent's folder, all or nothing, and record it in both sessions.

        It is recorded as staged first, so that a crash leaves it as proposals of the parent.
        """
        own = set(self._parent.staged_paths())
        new = [change for change in self._changes if change.path not in own]
        for change in new:
            if change.after is not None:
                await store.put_blob(self._forked(change.path).content or b"")
        if new:
            staged = ForkChangesStaged(fork=fork.session, changes=tuple(new), principal=principal)
            await parent.append(staged)
        try:
            committed = self._staged.commit()
        except BaseException:
            if new:
                dropped = ProposalsRejected(paths=tuple(each.path for each in new), principal=principal)
                await parent.append(dropped)
            raise
        await parent.append(ProposalsCommitted(changes=committed, principal=principal))
        if both := [change.path for change in committed if change.path in own]:
            self._parent.reject(both)
        merged = ForkMerged(parent=parent.session, changes=tuple(self._changes), principal=principal)
        await fork.append(merged)

    def stage(self, paths: Sequence[str]) -> None:
        """Stage every change, or only those at and beneath some paths; collect the conflicts."""
        chosen = self._chosen(paths)
        for path in chosen:
            # Deletions first: a file may take the place of a folder, and a folder that of a file.
            if (gone := self._forked(path)).content is None:
                self._stage(path, gone)
        if not paths:
            for folder in sorted(self._folder.gone_folders, reverse=True):
                if self._staged.exists(folder) and not self._staged.entries(folder):
                    self._staged.delete(folder)
        for path in chosen:
            if (there := self._forked(path)).content is not None:
                self._stage(path, there)
        if not paths:
            for folder in self._folder.made_folders:
                if not self._staged.exists(folder):
                    self._staged.make_folder(folder)

    def _chosen(self, paths: Sequence[str]) -> list[str]:
        every = sorted({*self._base, *self._fork.staged_paths(), *self._merged})
        if not paths:
            return every
        wanted = [self._fork.resolve(path) for path in paths]
        chosen = [each for each in every if any(_is_at(each, one) for one in wanted)]
        if not chosen:
            raise InvalidInput("the fork changed nothing at these paths", hint="leave out the paths")
        return chosen

    def _forked(self, path: str) -> NamedContent:
        """What the fork has at a name itself."""
        return _read_name(self._fork, path)

    def _stage(self, path: str, forked: NamedContent) -> None:
        content, mode = forked
        base, base_mode = self._base_of(path)
        after = forked.fingerprint
        is_link = mode == LINK_MODE
        is_mode_changed = content is not None and mode != base_mode and path not in self._merged
        if after == base and not is_mode_changed:
            return
        try:
            there = _read_name(self._parent.base, path)
            if there.fingerprint == after and not (is_mode_changed and there.mode != mode):
                return
            if reason := self._conflict(path, there, base, after):
                self._conflicts.append(MergeConflict(path=path, reason=reason))
            elif is_link and not self._may_link(path, content or b""):
                self._left.add(path)
            elif content is None:
                self._changes += delete_name(self._staged, path)
            else:
                kept_mode = mode if is_mode_changed or is_link else None
                self._changes.append(write_name(self._staged, path, content, mode=kept_mode))
        except (PathRefused, IsADirectoryError, NotADirectoryError) as error:
            reason = (
                str(error) if isinstance(error, PathRefused) else "a folder and a file have the same name"
            )
            self._conflicts.append(MergeConflict(path=path, reason=reason))

    def _base_of(self, path: str) -> tuple[str, int | None]:
        """The file that both sides started from. Where the fork's folder has not changed, it is the one there."""
        if path in self._base:
            fingerprint, mode = self._base[path]
        else:
            there = _read_name(self._fork.base, path)
            fingerprint, mode = there.fingerprint, there.mode
        return self._merged.get(path, fingerprint), mode

    def _conflict(self, path: str, there: NamedContent, base: str, after: str) -> str | None:
        if there.fingerprint not in (base, after):
            return "it was deleted in the parent" if there.content is None else "it changed in the parent"
        if path in self._parent.staged_paths() and self._parent_staged(path) != after:
            return "the parent has another change staged"
        return None

    def _parent_staged(self, path: str) -> str:
        return _read_name(self._parent, path).fingerprint

    def _may_link(self, path: str, target: bytes) -> bool:
        """Whether a symlink of the fork may be made in the parent's folder."""
        try:
            self._staged.check_link(path, os.fsdecode(target))
        except PathRefused:
            return False
        return True


def _opening(recorded: Sequence[RecordedEvent]) -> int:
    """The index of the event that opened this session; a fork has those of its ancestors before it."""
    return max(number for number, each in enumerate(recorded) if isinstance(each.event, SessionOpened))


def _read_name(world: World, path: str) -> NamedContent:
    """What a world has at a name itself; nothing if a symlink among its folders leads there."""
    parts = path.split("/")
    folders = ("/".join(parts[:count]) for count in range(1, len(parts)))
    is_through_link = any(world.link_target(folder) is not None for folder in folders)
    return NamedContent(None, None) if is_through_link else read_name(world, path)


def _is_at(path: str, wanted: str) -> bool:
    return wanted == "." or path == wanted or path.startswith(f"{wanted}/")
