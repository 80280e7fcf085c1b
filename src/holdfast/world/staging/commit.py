"""Commits many file changes atomically, even if the process is killed in the middle.

Before the first change, the old contents are written durably to an undo journal, which is removed after the last change. An
undo journal that is found at start belongs to an interrupted commit and is rolled back. It rolls back and not forward,
because the commit is recorded after it is made, and a change without a record must not have happened.
"""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.core import Change, Value
from holdfast.core.errors import CommitConflict, HoldfastError, JournalDamaged, PathRefused
from holdfast.store import replace_private, sync_folder
from holdfast.world.contract import (
    NOTHING,
    World,
    delete_name,
    fingerprint_name,
    fingerprint_of,
    write_name,
)
from holdfast.world.paths.names import folders_above


class Step(Value):
    """One file before and after the commit; None means that it does not exist."""

    path: str
    before: bytes | None
    before_mode: int | None
    after: bytes | None
    after_mode: int | None


class UndoEntry(Value):
    """How to restore one file. `size` is the length of its old content, None if it did not exist."""

    path: str
    size: int | None
    mode: int | None
    before: str
    after: str


class UndoHead(Value):
    """The first line of an undo journal; the old contents follow in the order of the entries."""

    entries: tuple[UndoEntry, ...]
    folders: tuple[str, ...]
    """The folders that did not exist before, parents first."""
    checksum: str


class Recovered(Value):
    """The result of rolling back. `left` are files that another process changed since; they are not touched."""

    restored: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


class OriginalFile(NamedTuple):
    """A file as it was; `content` is None if it did not exist."""

    path: str
    content: bytes | None
    mode: int | None


class UndoJournal:
    """The undo journal of a commit in progress: one file outside the workspace."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "commit.undo"

    def begin(self, steps: Iterable[Step], folders: tuple[str, ...]) -> None:
        """Write the undo journal durably. Raises CommitConflict while an earlier commit is not rolled back."""
        if self._file.exists():
            raise CommitConflict(
                "an earlier commit was interrupted and is not rolled back yet",
                hint="open the session again to roll it back",
            )
        contents = [(step, step.before or b"") for step in steps]
        body = b"".join(content for _, content in contents)
        head = UndoHead(
            entries=tuple(
                UndoEntry(
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
        """Remove the undo journal: the commit is complete or rolled back."""
        self._file.unlink(missing_ok=True)
        sync_folder(self._file.parent)

    def recover(self, base: World) -> Recovered | None:
        """Roll back an interrupted commit; None if there was none. Call it before the world is used."""
        for draft in self._file.parent.glob(f".{self._file.name}-*"):
            draft.unlink(missing_ok=True)  # an incomplete journal: no file was changed yet
        if not self._file.exists():
            return None
        line, _, body = self._file.read_bytes().partition(b"\n")
        try:
            head = msgspec.json.decode(line, type=UndoHead)
        except msgspec.DecodeError as error:
            raise JournalDamaged(f"{self._file} cannot be read: {error}") from None
        if fingerprint_of(body) != head.checksum:
            raise JournalDamaged(
                f"{self._file} is damaged", hint="move it away to continue without rolling back"
            )
        old: list[OriginalFile] = []
        left: list[str] = []
        place = 0
        for entry in head.entries:
            content = None if entry.size is None else body[place : place + entry.size]
            place += entry.size or 0
            # The file is as before the commit or as after it; anything else is another process's change.
            if fingerprint_name(base, entry.path) in (entry.before, entry.after):
                old.append(OriginalFile(entry.path, content, entry.mode))
            else:
                left.append(entry.path)
        base.sweep()
        put_back(base, old, head.folders)
        self.end()
        return Recovered(restored=tuple(file.path for file in old), left=tuple(left))


class Commit(Value):
    """The changes of one commit. The caller has checked them for conflicts with the base."""

    steps: tuple[Step, ...]
    made_folders: tuple[str, ...] = ()
    gone_folders: tuple[str, ...] = ()

    def apply(self, base: World, undo: UndoJournal | None) -> tuple[Change, ...]:
        """Make all changes; on an error roll back and raise it. With an undo journal the changes are durable."""
        folders = self._missing_folders(base)
        if undo is not None:
            undo.begin(self.steps, folders)
        try:
            changes = self._make(base)
            if undo is not None:
                base.sync([step.path for step in self.steps])
        except BaseException:
            put_back(
                base, [OriginalFile(step.path, step.before, step.before_mode) for step in self.steps], folders
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
                changes += delete_name(base, step.path)
        written = (step.path for step in self.steps if step.after is not None)
        remove_empty(base, (*self.gone_folders, *(path for path in written if is_folder(base, path))))
        for folder in self.made_folders:
            base.make_folder(folder)
        for step in self.steps:
            if step.after is not None:
                changes.append(write_name(base, step.path, step.after, mode=step.after_mode))
        return tuple(sorted(changes, key=lambda change: change.path))

    def _missing_folders(self, base: World) -> tuple[str, ...]:
        missing: set[str] = set(self.made_folders)
        for step in self.steps:
            if step.after is not None:
                missing.update(folders_above(step.path))
        return tuple(sorted(folder for folder in missing if not is_folder(base, folder)))


def is_folder(base: World, path: str) -> bool:
    """Whether there is a folder at a path. A protected folder counts, because only its contents can be asked for."""
    try:
        return base.link_target(path) is None and base.exists(path) and base.stat(path).kind == "folder"
    except PathRefused:
        return True


def put_back(base: World, old: Iterable[OriginalFile], new_folders: Iterable[str]) -> None:
    """Restore the old files. New files are removed first, so that they do not block a restored folder."""
    files = tuple(old)
    for file in files:
        if file.content is None and (base.link_target(file.path) is not None or base.exists(file.path)):
            delete_name(base, file.path)
    remove_empty(base, new_folders)
    for file in files:
        if file.content is not None:
            write_name(base, file.path, file.content, mode=file.mode, is_original=True)
    base.sync([file.path for file in files])


def remove_empty(base: World, folders: Iterable[str]) -> None:
    """Remove the folders that are empty, including empty folders inside them."""
    for folder in sorted(folders, reverse=True):
        with suppress(OSError, HoldfastError):
            if base.link_target(folder) is not None:
                continue  # what it leads to is another folder
            remove_empty(base, [each.path for each in base.entries(folder) if each.kind == "folder"])
            base.delete(folder)
