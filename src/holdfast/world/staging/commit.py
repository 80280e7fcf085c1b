"""Making many changes as one: all of them, or none, also when the process is killed half-way.

Before the first change, what the files held goes into an undo journal, durable. It is removed after the last one. An
undo journal that is found at start belongs to a commit that was cut off, and is played back. Going back and not forward,
because the record of the commit is written after it: what has no record must not have happened.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.core import Change, Value
from holdfast.core.errors import CommitConflict, HoldfastError, JournalDamaged, PathRefused
from holdfast.store import replace_private, sync_folder
from holdfast.world.contract import NOTHING, World, fingerprint_of
from holdfast.world.paths.names import folders_above


class Step(Value):
    """One file, before and after; None is a file that is not there."""

    path: str
    before: bytes | None
    before_mode: int | None
    after: bytes | None
    after_mode: int | None


class Undo(Value):
    """How to bring one file back. `size` is the length of its old content, None where there was no file."""

    path: str
    size: int | None
    mode: int | None
    before: str
    after: str


class UndoHead(Value):
    """The first line of an undo journal; the old contents follow in the order of the entries."""

    entries: tuple[Undo, ...]
    folders: tuple[str, ...]
    """That did not exist before, parents first."""
    checksum: str


class Recovered(Value):
    """What playing back an undo journal did. `left` are files that somebody else changed since; they are as found."""

    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class OldFile(NamedTuple):
    """A file as it was; content None where there was none."""

    path: str
    content: bytes | None
    mode: int | None


class UndoJournal:
    """Where a commit in progress can be found after a crash: one file in a folder outside the workspace."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "commit.undo"

    def begin(self, steps: Iterable[Step], folders: tuple[str, ...]) -> None:
        """Write down how to undo; durable when it returns. Raises CommitConflict while an older commit is not undone."""
        if self._file.exists():
            raise CommitConflict(
                "an earlier commit was cut off and is not undone yet", hint="recover it first"
            )
        contents = [(step, step.before or b"") for step in steps]
        body = b"".join(content for _, content in contents)
        head = UndoHead(
            entries=tuple(
                Undo(
                    path=step.path,
                    size=None if step.before is None else len(content),
                    mode=step.before_mode,
                    before=NOTHING if step.before is None else fingerprint_of(content),
                    after=NOTHING if step.after is None else fingerprint_of(step.after),
                )
                for step, content in contents
            ),
            folders=folders,
            checksum=fingerprint_of(body),
        )
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_private(self._file, msgspec.json.encode(head) + b"\n" + body)

    def end(self) -> None:
        """The commit is whole, or undone."""
        self._file.unlink(missing_ok=True)
        sync_folder(self._file.parent)

    def recover(self, base: World) -> Recovered | None:
        """Undo a commit that was cut off, None where there was none. To be called before the world is used."""
        for draft in self._file.parent.glob(f".{self._file.name}-*"):
            draft.unlink(missing_ok=True)  # nothing was changed before it was whole
        if not self._file.exists():
            return None
        line, _, body = self._file.read_bytes().partition(b"\n")
        try:
            head = msgspec.json.decode(line, type=UndoHead)
        except msgspec.DecodeError as error:
            raise JournalDamaged(f"{self._file} cannot be read: {error}") from None
        if fingerprint_of(body) != head.checksum:
            raise JournalDamaged(f"{self._file} was changed", hint="move it away to go on without undoing")
        old: list[OldFile] = []
        left: list[str] = []
        place = 0
        for entry in head.entries:
            content = None if entry.size is None else body[place : place + entry.size]
            place += entry.size or 0
            # A deletion that was not yet made leaves the old content; one that was made leaves nothing.
            if base.fingerprint(entry.path) in (entry.before, entry.after):
                old.append(OldFile(entry.path, content, entry.mode))
            else:
                left.append(entry.path)
        base.sweep()
        put_back(base, old, head.folders)
        self.end()
        return Recovered(restored=tuple(file.path for file in old), left=tuple(left))


class Commit(Value):
    """The changes of one commit, checked against the base by whoever made it."""

    steps: tuple[Step, ...]
    made_folders: tuple[str, ...] = ()
    gone_folders: tuple[str, ...] = ()

    def apply(self, base: World, undo: UndoJournal | None) -> tuple[Change, ...]:
        """Make all changes; on any trouble put everything back and raise it. With an undo journal they are durable."""
        folders = self._new_folders(base)
        if undo is not None:
            undo.begin(self.steps, folders)
        try:
            changes = self._make(base)
            if undo is not None:
                base.sync([step.path for step in self.steps])
        except BaseException:
            put_back(
                base, [OldFile(step.path, step.before, step.before_mode) for step in self.steps], folders
            )
            if undo is not None:
                undo.end()
            raise
        if undo is not None:
            undo.end()
        return changes

    def _make(self, base: World) -> tuple[Change, ...]:
        changes: list[Change] = []
        # Deletions first: a file may take the place of a folder, and a folder that of a file.
        for step in self.steps:
            if step.after is None:
                changes += base.delete(step.path)
        in_the_way = (step.path for step in self.steps if step.after is not None)
        remove_empty(base, (*self.gone_folders, *(path for path in in_the_way if is_folder(base, path))))
        for folder in self.made_folders:
            base.make_folder(folder)
        for step in self.steps:
            if step.after is not None:
                changes.append(base.write(step.path, step.after, mode=step.after_mode))
        return tuple(sorted(changes, key=lambda change: change.path))

    def _new_folders(self, base: World) -> tuple[str, ...]:
        missing: set[str] = set(self.made_folders)
        for step in self.steps:
            if step.after is not None:
                missing.update(folders_above(step.path))
        return tuple(sorted(folder for folder in missing if not is_folder(base, folder)))


def is_folder(base: World, path: str) -> bool:
    """Whether a folder is at a path; one that guests may not look at is there for the asking of its inside."""
    try:
        return base.exists(path) and base.stat(path).kind == "folder"
    except PathRefused:
        return True


def put_back(base: World, old: Iterable[OldFile], new_folders: Iterable[str]) -> None:
    """Bring files to what they were: first away with what was made, so that it stands in nobody's way."""
    files = tuple(old)
    for file in files:
        if file.content is None and base.exists(file.path):
            base.delete(file.path)
    remove_empty(base, new_folders)
    for file in files:
        if file.content is not None:
            base.write(file.path, file.content, mode=file.mode)
    base.sync([file.path for file in files])


def remove_empty(base: World, folders: Iterable[str]) -> None:
    """Remove those of the folders, and of the folders in them, in which nothing is left."""
    for folder in sorted(folders, reverse=True):
        with suppress(OSError, HoldfastError):
            remove_empty(base, [each.path for each in base.entries(folder) if each.kind == "folder"])
            base.delete(folder)
