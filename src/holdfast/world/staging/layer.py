"""What an overlay holds: files that were written or deleted in it, folders that were made or removed in it. No view."""

from collections import Counter
from typing import NamedTuple

from holdfast.world.paths.names import folders_above, is_within


class Staged(NamedTuple):
    """What a file shall become; content None is a deletion. `before` is the base's fingerprint when first staged."""

    content: bytes | None
    before: str
    mode: int | None
    modified_ms: int
    replaced_bytes: int | None = None
    """The size of the base's file, None where it has none."""

    @property
    def grown_bytes(self) -> int:
        """By how much the base will hold more when this is made."""
        return len(self.content or b"") - (self.replaced_bytes or 0)

    @property
    def grown_files(self) -> int:
        """How many files the base will have more when this is made."""
        return (self.content is not None) - (self.replaced_bytes is not None)


class Layer:
    """Staged files by their path, and the folders that came and went with them."""

    def __init__(self) -> None:
        self.files: dict[str, Staged] = {}
        self.made_folders: set[str] = set()
        self.gone_folders: set[str] = set()
        self.held_bytes = 0
        self.grown_bytes = 0
        self.grown_files = 0
        self._written_in: Counter[str] = Counter()

    def put(self, path: str, staged: Staged | None) -> None:
        """Set what becomes of a file, None to leave it to the base. The only place where files change: it keeps count."""
        for each, sign in ((self.files.pop(path, None), -1), (staged, 1)):
            if each is not None:
                self.grown_bytes += sign * each.grown_bytes
                self.grown_files += sign * each.grown_files
            if each is not None and each.content is not None:
                self.held_bytes += sign * len(each.content)
                for folder in folders_above(path):
                    self._written_in[folder] += sign
        if staged is not None:
            self.files[path] = staged

    def clear(self) -> None:
        """Hold nothing."""
        self.files.clear()
        self._written_in.clear()
        self.held_bytes = self.grown_bytes = self.grown_files = 0
        self.clear_folders()

    def clear_folders(self) -> None:
        """Leave all folders to the base."""
        self.made_folders.clear()
        self.gone_folders.clear()

    def make_folder(self, path: str) -> None:
        """A folder is there because of the overlay."""
        self.made_folders.add(path)

    def remove_folder(self, path: str) -> None:
        """A folder of the base, with everything in it, is not to be seen."""
        self.made_folders = {each for each in self.made_folders if not is_within(each, path)}
        self.gone_folders.add(path)

    def has_made(self, path: str) -> bool:
        """Whether a folder is there because of the overlay."""
        return path in self.made_folders or self._written_in[path] > 0

    def hides(self, path: str) -> bool:
        """Whether the base's file or folder at a path lies in a folder that was removed here."""
        gone = self.gone_folders
        return bool(gone) and (path in gone or any(each in gone for each in folders_above(path)))

    def covers(self, path: str) -> bool:
        """Whether a file of the base is not to be seen as it is there."""
        return path in self.files or self.hides(path)

    def written(self) -> set[str]:
        """The files that have a content here."""
        # A copy first: searches look at the overlay from a thread while the next call may already change it.
        return {path for path, each in tuple(self.files.items()) if each.content is not None}

    def names_in(self, folder: str) -> set[str]:
        """What lies directly in a folder because of the overlay."""
        prefix = "" if folder == "." else f"{folder}/"
        below = (
            each[len(prefix) :] for each in (*self.written(), *self.made_folders) if each.startswith(prefix)
        )
        return {prefix + rest.partition("/")[0] for rest in below if rest}
