"""A world whose changes are proposals, with the operations of the host: show, commit, reject and rebuild them."""

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from holdfast.core import Change, Clock, Value
from holdfast.core.errors import CommitConflict, InvalidInput, PathRefused
from holdfast.world.contract import NOTHING, NamedContent, World, fingerprint_of, read_name
from holdfast.world.paths.names import is_within
from holdfast.world.staging.commit import Commit, Step, UndoJournal
from holdfast.world.staging.hunks import HunkDecision, apply_hunks, check_decision, hunks_of, unit_count
from holdfast.world.staging.layer import Staged
from holdfast.world.staging.overlay import MAX_STAGED_BYTES, Overlay
from holdfast.world.staging.proposals import Proposal, describe


class Split(Value):
    """What decisions about hunks come to, by path: files committed whole or in part, dropped, and what stays staged."""

    whole: list[str] = msgspec.field(default_factory=list)
    parts: dict[str, bytes] = msgspec.field(default_factory=dict)
    rests: dict[str, bytes] = msgspec.field(default_factory=dict)
    dropped: list[str] = msgspec.field(default_factory=list)


class StagedWorld(Overlay):
    """An overlay whose changes can be committed to its base, all or nothing."""

    def __init__(
        self,
        base: World,
        *,
        undo: UndoJournal | None = None,
        max_bytes: int = MAX_STAGED_BYTES,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(base, max_bytes=max_bytes, clock=clock)
        self._undo = undo

    def sibling(self) -> "StagedWorld":
        """Another, empty overlay over the same base."""
        return StagedWorld(self.base, undo=self._undo, max_bytes=self._max_bytes, clock=self._clock)

    def staged_paths(self) -> tuple[str, ...]:
        """The paths of staged changes, without computing diffs."""
        return tuple(sorted(self._layer.files))

    def staged_kinds(self) -> dict[str, str]:
        """What each staged change does to its file, without computing diffs."""
        return {path: each.kind for path, each in sorted(self._layer.files.items())}

    def staged_contents(self) -> dict[str, bytes | None]:
        """The staged content of each changed file; None if it is deleted or became a symlink."""
        files = dict(self._layer.files)  # a copy, because an engine calls this from a thread
        return {path: None if each.is_link else each.content for path, each in files.items()}

    def staged_names(self) -> dict[str, NamedContent]:
        """The staged content and mode of each changed name, symlinks as themselves."""
        files = dict(self._layer.files)
        return {path: NamedContent(each.content, each.mode) for path, each in files.items()}

    def asking(self) -> dict[str, str]:
        """The staged changes that a person must approve by name before they are committed, each with the reason."""
        return {path: each.asks for path, each in sorted(self._layer.files.items()) if each.asks}

    def ask_about(self, change: Change, asks: str) -> Change:
        """Mark a change that was just staged as one that a person must approve by name."""
        staged = self._layer.files.get(change.path)
        if staged is None:
            return change  # it brought the file back to what the base has
        self._put(change.path, staged._replace(asks=asks))
        return msgspec.structs.replace(change, asks=asks)

    def proposals(self) -> tuple[Proposal, ...]:
        """Every staged change, sorted by path."""
        files = dict(self._layer.files)  # a copy, because a chat calls this from a thread
        gone = {each.before: path for path, each in files.items() if each.content is None}
        return tuple(self._proposal(path, files[path], gone) for path in sorted(files))

    def commit(self, paths: Sequence[str] | None = None) -> tuple[Change, ...]:
        """Commit staged changes, all of the chosen ones or none. Raises CommitConflict."""
        chosen = self.chosen(paths)
        # Before the first change: what is staged may come from a journal that somebody else wrote.
        for path in chosen:
            self._check_staged(path)
        steps = tuple(self._step(path) for path in chosen)
        conflicts = tuple(
            step.path for step in steps if _fingerprint(step.before) != self._layer.files[step.path].before
        )
        if conflicts:
            raise CommitConflict(
                f"files changed since their changes were staged: {', '.join(conflicts)}; nothing was committed",
                paths=conflicts,
                hint="check the files, then stage the changes again or reject them",
            )
        is_all = paths is None
        commit = Commit(
            steps=steps,
            made_folders=tuple(sorted(self._layer.made_folders)) if is_all else (),
            gone_folders=tuple(sorted(self._layer.gone_folders)) if is_all else (),
        )
        changes = commit.apply(self.base, self._undo)
        self._drop(chosen)
        if is_all:
            self._layer.clear_folders()
        return changes

    def split(self, decisions: Sequence[HunkDecision]) -> Split:
        """What a person's decisions about hunks come to. Changes nothing. Raises CommitConflict or InvalidInput."""
        proposals = {each.path: each for each in self.proposals()}
        split = Split()
        for decision in decisions:
            proposal = proposals.get(decision.path)
            if proposal is None:
                raise CommitConflict(
                    f"nothing is staged for {decision.path} any more; nothing was committed",
                    paths=(decision.path,),
                    hint="look at the changes again",
                )
            check_decision(decision, proposal)
            self._split_one(decision, proposal, split)
        return split

    def _split_one(self, decision: HunkDecision, proposal: Proposal, split: Split) -> None:
        path, count = proposal.path, unit_count(proposal)
        accepted, rejected = set(decision.accepted), set(decision.rejected)
        if not accepted and not rejected:
            return
        if len(accepted) == count:
            split.whole.append(path)
            return
        if len(rejected) == count:
            split.dropped.append(path)
            return
        # Only a text file that is modified has more than one hunk.
        hunks, before = hunks_of(proposal), self.base.read(path).decode()
        undecided = {hunk.number for hunk in hunks} - accepted - rejected
        part = apply_hunks(before, hunks, accepted).encode()
        rest = apply_hunks(before, hunks, accepted | undecided).encode()
        if accepted:
            split.parts[path] = part
        if undecided:
            split.rests[path] = rest

    def recorded(self, split: Split) -> tuple[tuple[Change, ...], tuple[Change, ...]]:
        """The parts and the rests of a split, as changes to record before it is applied."""
        parts = tuple(
            self._staged_change(path, self._layer.files[path].before, part, None)
            for path, part in sorted(split.parts.items())
        )
        rests = tuple(
            self._staged_change(
                path,
                fingerprint_of(split.parts[path]) if path in split.parts else self._layer.files[path].before,
                rest,
                self._layer.files[path],
            )
            for path, rest in sorted(split.rests.items())
        )
        return parts, rests

    def apply_split(self, split: Split) -> tuple[Change, ...]:
        """Commit the parts and the whole files of a split, all or none, and keep its rests staged. Raises CommitConflict."""
        staged = {path: self._layer.files[path] for path in {**split.parts, **split.rests}}
        modes = {path: self._base_mode(path) for path in split.parts}
        for path, part in split.parts.items():
            self._put(path, staged[path]._replace(content=part, mode=modes[path]))
        chosen = (*split.whole, *split.parts)
        try:
            changes = self.commit(chosen) if chosen else ()
        except BaseException:
            for path in split.parts:
                self._put(path, staged[path])
            raise
        self._drop(split.dropped)
        for path, rest in split.rests.items():
            before = fingerprint_of(split.parts[path]) if path in split.parts else staged[path].before
            self._put(
                path,
                staged[path]._replace(content=rest, before=before, replaced_bytes=self._size_in_base(path)),
            )
        return changes

    def _base_mode(self, path: str) -> int | None:
        found = self._base_stat(path)
        return found.mode if found is not None else None

    def _staged_change(self, path: str, before: str, after: bytes, staged: Staged | None) -> Change:
        return Change(
            path=path,
            kind="modified",
            before=before or None,
            after=fingerprint_of(after),
            is_staged=True,
            mode=staged.mode if staged is not None else self._base_mode(path),
            asks=staged.asks if staged is not None else "",
        )

    def reject(self, paths: Sequence[str] | None = None) -> tuple[str, ...]:
        """Drop staged changes and return their paths."""
        chosen = self.chosen(paths)
        self._drop(chosen)
        if paths is None:
            self._layer.clear_folders()
        return chosen

    def restage(self, changes: Iterable[Change], content: Callable[[str], bytes]) -> None:
        """Rebuild the overlay from recorded staged changes. `content` loads the blob of the `after` fingerprint."""
        self._layer.clear()
        last = {change.path: change for change in changes if change.is_staged}
        for path, change in last.items():
            if _is_withdrawn(change) or self.is_committed(change):
                continue
            text = None if change.after is None else content(change.after)
            replaced = self._replaced(path)
            size = self._size_in_base(path) if replaced is None else len(replaced.content or b"")
            staged = Staged(
                text, change.before or NOTHING, change.mode, self._clock.now_ms(), size, change.asks
            )
            self._put(path, staged._replace(replaces_link=replaced is not None))
        self._hide_emptied_folders()

    def is_committed(self, change: Change) -> bool:
        """Whether the base already has a staged change, because a crash followed its commit before the record was written."""
        if _is_withdrawn(change):
            return False
        with suppress(PathRefused):  # refused in the meantime: it stays staged, and a commit reports why
            link = self._base_link(change.path)
            if link is not None:
                return link.fingerprint == change.after and change.mode == link.mode
            is_there = self.base.fingerprint(change.path) == (change.after or NOTHING)
            return is_there and not self._has_other_mode(change.path, change.mode)
        return False

    def _replaced(self, path: str) -> NamedContent | None:
        with suppress(PathRefused):
            return self._base_link(path)
        return None

    def _check_staged(self, path: str) -> None:
        """Raise PathRefused if a staged change may not be made."""
        staged = self._layer.files[path]
        if staged.is_link:
            self.check_link(path, os.fsdecode(staged.content or b""))
        if path in self._layer.links:
            self.check_name(path)
        else:
            self._check_change(path)

    def has_staged(self, path: str, *, is_name: bool = False) -> bool:
        """Whether a change is staged at a path, above it or beneath it. With `is_name` a symlink is meant itself."""
        return self._layer.has_changes_at(self.resolve_name(path) if is_name else self.resolve(path))

    def withdraw(self, paths: Sequence[str] | None = None) -> tuple[Change, ...]:
        """Drop staged changes for a guest. The returned changes record that each file is as in the base again."""
        befores = {path: self._layer.files[path].before or None for path in self.chosen(paths)}
        self.reject(paths)
        return tuple(
            Change(
                path=path,
                kind="modified" if before else "deleted",
                before=before,
                after=before,
                is_staged=True,
            )
            for path, before in befores.items()
        )

    def chosen(self, paths: Sequence[str] | None) -> tuple[str, ...]:
        """The staged changes at or below these paths, or all. Raises InvalidInput if nothing is staged at one of them."""
        if paths is None:
            return tuple(sorted(self._layer.files))
        chosen: set[str] = set()
        for given in paths:
            real = self.resolve(given)
            fitting = {path for path in self._layer.files if real == "." or is_within(path, real)}
            if not fitting:
                raise InvalidInput(
                    f"nothing is staged at {given!r}",
                    hint="list staged changes with /diff or: holdfast proposals show",
                )
            chosen |= fitting
        return tuple(sorted(chosen))

    def _proposal(self, path: str, staged: Staged, gone: dict[str, str]) -> Proposal:
        before, mode_before = None, None
        with suppress(
            OSError, PathRefused
        ):  # a file that can no longer be read can still be shown and rejected
            before, mode_before = read_name(self.base, path)
        source = gone.get(fingerprint_of(staged.content)) if staged.content and before is None else None
        return describe(
            path,
            before,
            staged.content,
            mode=staged.mode,
            mode_before=mode_before,
            renamed_from=source,
            asks=staged.asks,
        )

    def _step(self, path: str) -> Step:
        staged = self._layer.files[path]
        before, mode = read_name(self.base, path)
        return Step(path=path, before=before, before_mode=mode, after=staged.content, after_mode=staged.mode)

    def _drop(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._put(path, None)


def _is_withdrawn(change: Change) -> bool:
    """Whether a recorded change withdraws a staged one. A change of the mode alone has a mode."""
    return change.before == change.after and change.mode is None


def _fingerprint(content: bytes | None) -> str:
    return NOTHING if content is None else fingerprint_of(content)
