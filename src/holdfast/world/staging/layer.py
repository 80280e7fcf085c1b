"""The data of an overlay: files that were written or deleted in it, folders that were created or removed in it."""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Literal, NamedTuple

from holdfast.core import LINK_MODE
from holdfast.world.paths.names import folders_above
from holdfast.world.paths.protected import may_lead_to_repository


class Staged(NamedTuple):
    """The staged state of a file; `content` None is a deletion. `before` is the base's fingerprint when it was first staged."""

    content: bytes | None
    before: str
    mode: int | None
    modified_ms: int
    replaced_bytes: int | None = None
    """The size of the file in the base, or None."""
    asks: str = ""
    """Why a person must approve the change by name before it is committed; empty if nobody must."""
    replaces_link: bool = False
    """Whether the base has a symlink of this name."""

    @property
    def is_link(self) -> bool:
        """Whether this is a symlink; its content is the target."""
        return self.content is not None and self.mode == LINK_MODE

    @property
    def kind(self) -> Literal["created", "modified", "deleted"]:
        """What committing this does to the file."""
        if self.content is None:
            return "deleted"
        return "created" if self.replaced_bytes is None else "modified"

    @property
    def grown_bytes(self) -> int:
        """How many bytes the base gains when this is committed."""
        return len(self.content or b"") - (self.replaced_bytes or 0)

    @property
    def grown_files(self) -> int:
        """How many files the base gains when this is committed."""
        return (self.content is not None) - (self.replaced_bytes is not None)


class Layer:
    """Staged files by path, and the folders created and removed with them."""

    def __init__(self) -> None:
        self.files: dict[str, Staged] = {}
        self.made_folders: set[str] = set()
        self.gone_folders: set[str] = set()
        self.held_bytes = 0
        self.grown_bytes = 0
        self.grown_files = 0
        self.repository_parts: set[str] = set()
        """Staged files and made folders that could be part of a repository."""
        self.links: set[str] = set()
        """Staged symlinks, and changes of names that are symlinks in the base: no path is resolved through one of them."""
        self._written_in: Counter[str] = Counter()
        self._changed_in: Counter[str] = Counter()
        self._names_in: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """How many written files each name directly in a folder stands for: one, or those beneath it."""
        self._made_beneath: defaultdict[str, set[str]] = defaultdict(set)
        """By folder: what is directly in it and is a made folder or leads to one."""

    def put(self, path: str, staged: Staged | None) -> None:
        """Stage a file, or drop it with None. All changes of files go through here, so that the totals stay correct."""
        for each, sign in ((self.files.pop(path, None), -1), (staged, 1)):
            if each is not None:
                self.grown_bytes += sign * each.grown_bytes
                self.grown_files += sign * each.grown_files
                for folder in folders_above(path):
                    self._changed_in[folder] += sign
            if each is not None and each.content is not None:
                self.held_bytes += sign * len(each.content)
                name = path
                for folder in folders_above(path):
                    self._written_in[folder] += sign
                    self._count_name(folder, name, sign)
                    name = folder
                self._count_name(".", name, sign)
        self.links.discard(path)
        if staged is not None:
            self.files[path] = staged
            if staged.is_link or staged.replaces_link:
                self.links.add(path)
        if staged is not None and staged.content is not None and may_lead_to_repository(path):
            self.repository_parts.add(path)

    def clear(self) -> None:
        """Drop everything."""
        self.files.clear()
        self._written_in.clear()
        self._changed_in.clear()
        self._names_in.clear()
        self.repository_parts.clear()
        self.links.clear()
        self.held_bytes = self.grown_bytes = self.grown_files = 0
        self.clear_folders()

    def clear_folders(self) -> None:
        """Drop all changes of folders."""
        self.made_folders.clear()
        self._made_beneath.clear()
        self.gone_folders.clear()

    def make_folder(self, path: str) -> None:
        """Create a folder in the overlay."""
        self.made_folders.add(path)
        for inner, parent in pairwise((path, *folders_above(path), ".")):
            self._made_beneath[parent].add(inner)
        if may_lead_to_repository(path):
            self.repository_parts.add(path)

    def remove_folder(self, path: str) -> None:
        """Hide a folder of the base with everything in it."""
        beneath = [path]
        for each in beneath:
            self.made_folders.discard(each)
            beneath += self._made_beneath.pop(each, ())
        for inner, parent in pairwise((path, *folders_above(path), ".")):
            if inner in self.made_folders or self._made_beneath.get(inner):
                break
            self._made_beneath[parent].discard(inner)
        self.gone_folders.add(path)

    def has_made(self, path: str) -> bool:
        """Whether a folder exists in the overlay."""
        return path in self.made_folders or self._written_in[path] > 0

    def has_changes_at(self, path: str) -> bool:
        """Whether a file is changed at a path, above it or beneath it."""
        return (
            path in self.files
            or self._changed_in[path] > 0
            or any(each in self.files for each in folders_above(path))
        )

    def is_removed(self, path: str) -> bool:
        """Whether a path of the base is a folder that was removed here, or is inside one."""
        gone = self.gone_folders
        return bool(gone) and (path in gone or any(each in gone for each in folders_above(path)))

    def overrides(self, path: str) -> bool:
        """Whether the overlay replaces or hides a file of the base."""
        return path in self.files or self.is_removed(path)

    def written(self) -> set[str]:
        """The files that have content here, without symlinks."""
        # From a copy, because searches run in a thread while the next call may already change the overlay.
        files = tuple(self.files.items())
        return {path for path, each in files if each.content is not None and not each.is_link}

    def names_in(self, folder: str) -> set[str]:
        """The names directly in a folder that come from the overlay."""
        return {*self._made_beneath.get(folder, ()), *self._names_in.get(folder, ())}

    def _count_name(self, folder: str, name: str, sign: int) -> None:
        names = self._names_in[folder]
        names[name] += sign
        if not names[name]:
            del names[name]
