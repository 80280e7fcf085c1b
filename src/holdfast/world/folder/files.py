"""Regular files and folders beneath a root, by normal paths without symlinks: the operations on descriptors.

A file is replaced and never overwritten in place: a reader sees the old content or the new, and a hard link that leads out
of the workspace is never written through. New content goes to a scratch file next to its destination; the name contains the
process id of its writer. A symlink in the path raises SymlinkEncountered, and the caller decides whether to follow it.
"""

import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from holdfast.core.errors import PathRefused
from holdfast.world.paths.names import SCRATCH_PREFIX, parent_and_name
from holdfast.world.paths.open_beneath import FOLDER, BeneathRoot, SymlinkEncountered


def scratch_name() -> str:
    """A unique name that no guest can use."""
    return f"{SCRATCH_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"


def is_abandoned(name: str) -> bool:
    """Whether a name belongs to a scratch file whose writer is dead."""
    if not name.startswith(SCRATCH_PREFIX):
        return False
    try:
        os.kill(int(name[len(SCRATCH_PREFIX) :].partition("-")[0]), 0)
    except (ProcessLookupError, ValueError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


# O_NONBLOCK: opening a pipe without a writer must not hang before we see that it is a pipe.
_SAFE_OPEN = os.O_NONBLOCK | os.O_NOCTTY
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
PERMISSIONS = 0o777


class PlainFiles:
    """Reads and changes the files beneath a root."""

    def __init__(self, root: BeneathRoot, *, allows_hard_links: bool = False) -> None:
        self.root = root
        self._allows_hard_links = allows_hard_links

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content of a file, or a part of it."""
        with self.opened(path, os.O_RDONLY) as opened:
            return _drain(opened, offset, length)

    def fingerprint(self, path: str) -> str:
        """SHA-256 of a file's content in hex. The file is not loaded into memory."""
        with (
            self.opened(path, os.O_RDONLY) as opened,
            open(opened, "rb", buffering=0, closefd=False) as file,
        ):
            return hashlib.file_digest(file, "sha256").hexdigest()

    def stat(self, path: str) -> os.stat_result:
        """What is at a path. Raises PathRefused if it is neither a file nor a folder."""
        if path == ".":
            with self.root.descriptor() as top:
                return os.fstat(top)
        parent, name = parent_and_name(path)
        with self.root.folder(parent) as folder:
            found = self._lstat(folder, name, path)
        self._check_kind(found, path)
        return found

    def find(self, path: str) -> os.stat_result | None:
        """What is at a path, or None."""
        try:
            return self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def replace(self, path: str, content: bytes, *, mode: int | None = None) -> None:
        """Create or replace a file atomically and create its folders. An existing file keeps its mode unless one is given."""
        with self.replacing(path, mode=mode) as opened:
            write_all(opened, content)

    @contextmanager
    def replacing(self, path: str, *, mode: int | None = None) -> Iterator[int]:
        """A descriptor for the new content of a file, which is replaced when the block ends without an error."""
        with self._made_parent(path) as (folder, name):
            old = self._present(folder, name, path)
            kept = mode if mode is not None or old is None else old.st_mode
            scratch = scratch_name()
            opened = os.open(scratch, _NEW, 0o666, dir_fd=folder)
            try:
                try:
                    yield opened
                    if kept is not None:
                        os.fchmod(opened, kept & PERMISSIONS)
                finally:
                    os.close(opened)
                os.rename(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(scratch, dir_fd=folder)
                raise

    def create(self, path: str, content: bytes, *, mode: int | None = None) -> None:
        """Create a file. Raises FileExistsError if there is anything at the path, even a symlink."""
        with self.creating(path, mode=mode) as opened:
            write_all(opened, content)

    @contextmanager
    def creating(self, path: str, *, mode: int | None = None) -> Iterator[int]:
        """A descriptor of a new file, which is removed if the block ends with an error."""
        with self._made_parent(path) as (folder, name):
            if self._present(folder, name, path) is not None:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            try:
                opened = os.open(name, _NEW, 0o666, dir_fd=folder)
            except FileExistsError:
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path) from None
            try:
                yield opened
                if mode is not None:
                    os.fchmod(opened, mode & PERMISSIONS)
            except BaseException:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(opened)

    def link_target(self, path: str) -> str | None:
        """The target of a symlink; None if there is none at the path."""
        if path == ".":
            return None
        parent, name = parent_and_name(path)
        try:
            with self.root.folder(parent) as folder:
                return os.readlink(name, dir_fd=folder)
        except OSError as error:
            if error.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR):
                return None
            raise

    def replace_by_link(self, path: str, target: str) -> None:
        """Create a symlink, or atomically replace a file or a symlink by it, and create its folders."""
        with self._made_parent(path) as (folder, name):
            scratch = scratch_name()
            os.symlink(target, scratch, dir_fd=folder)
            try:
                os.rename(scratch, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError as error:
                os.unlink(scratch, dir_fd=folder)
                raise OSError(error.errno, os.strerror(error.errno or 0), path) from None

    def append(self, path: str, content: bytes) -> tuple[str, str]:
        """Append to a file and return its fingerprints before and after."""
        with self.opened(path, os.O_RDWR | os.O_APPEND) as opened:
            with open(opened, "rb", buffering=0, closefd=False) as file:
                whole = hashlib.file_digest(file, "sha256")
            before = whole.hexdigest()
            write_all(opened, content)
            whole.update(content)
            return before, whole.hexdigest()

    def make_folder(self, path: str, *, mode: int = PERMISSIONS) -> None:
        """Create a folder and its parents. An existing folder is not an error."""
        missing: list[str] = []
        place = path
        while not self._is_folder(place):
            missing.append(place)
            place, _ = parent_and_name(place)
        for each in reversed(missing):
            parent, name = parent_and_name(each)
            with self.root.folder(parent) as folder, suppress(FileExistsError):
                os.mkdir(name, mode if each == path else PERMISSIONS, dir_fd=folder)
        with self.root.folder(path):
            return

    def remove(self, path: str) -> None:
        """Unlink a file, a symlink or anything else that is not a folder."""
        parent, name = parent_and_name(path)
        with self.root.folder(parent) as folder:
            os.unlink(name, dir_fd=folder)

    def remove_folder(self, path: str) -> None:
        """Remove an empty folder."""
        parent, name = parent_and_name(path)
        with self.root.folder(parent) as folder:
            os.rmdir(name, dir_fd=folder)

    def move(self, source: str, destination: str) -> None:
        """Rename a file or a folder and create the folders of the destination."""
        to_parent, to_name = parent_and_name(destination)
        from_parent, from_name = parent_and_name(source)
        self.make_folder(to_parent)
        with self.root.folder(from_parent) as giving, self.root.folder(to_parent) as taking:
            self._check_kind(self._lstat(giving, from_name, source), source)
            self._present(taking, to_name, destination)
            try:
                os.rename(from_name, to_name, src_dir_fd=giving, dst_dir_fd=taking)
            except OSError as error:
                raise OSError(error.errno, os.strerror(error.errno or 0), source, None, destination) from None

    @contextmanager
    def opened(self, path: str, flags: int) -> Iterator[int]:
        """A descriptor of an existing regular file."""
        try:
            opened = self.root.open(path, flags | _SAFE_OPEN)
        except PermissionError:
            self.stat(path)  # refuses a device or socket as such, whatever its permissions
            raise
        try:
            found = os.fstat(opened)
            self._check_kind(found, path)
            if stat.S_ISDIR(found.st_mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            yield opened
        finally:
            os.close(opened)

    @contextmanager
    def _made_parent(self, path: str) -> Iterator[tuple[int, str]]:
        """The open folder of a path and the name in it. The folder is created if it does not exist."""
        parent, name = parent_and_name(path)
        try:
            opened = self.root.open(parent, FOLDER)
        except FileNotFoundError:
            self.make_folder(parent)
            opened = self.root.open(parent, FOLDER)
        try:
            yield opened, name
        finally:
            os.close(opened)

    def _is_folder(self, path: str) -> bool:
        try:
            with self.root.folder(path):
                return True
        except FileNotFoundError:
            return False

    def _present(self, folder: int, name: str, path: str) -> os.stat_result | None:
        """The file that will be replaced, or None."""
        try:
            found = self._lstat(folder, name, path)
        except FileNotFoundError:
            return None
        self._check_kind(found, path)
        return found

    def _lstat(self, folder: int, name: str, path: str) -> os.stat_result:
        try:
            found = os.lstat(name, dir_fd=folder)
        except OSError as error:
            raise OSError(error.errno, os.strerror(error.errno or 0), path) from None
        if stat.S_ISLNK(found.st_mode):
            raise SymlinkEncountered(path)
        return found

    def _check_kind(self, found: os.stat_result, path: str) -> None:
        if stat.S_ISDIR(found.st_mode):
            return
        if not stat.S_ISREG(found.st_mode):
            raise PathRefused(
                f"{path!r} is not a regular file: {_KINDS.get(stat.S_IFMT(found.st_mode), 'unknown')}"
            )
        if found.st_nlink > 1 and not self._allows_hard_links:
            raise PathRefused(
                f"{path!r} has {found.st_nlink} hard links, and one of them may be outside the workspace",
                hint="replace the file with a copy",
            )


_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFLNK: "a symlink",
}


def write_all(opened: int, content: bytes) -> None:
    """Write all bytes, in several calls if necessary."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(opened, rest) :]


def _drain(opened: int, offset: int, length: int | None) -> bytes:
    if length is not None:
        length = max(0, min(length, os.fstat(opened).st_size - offset))
    with open(opened, "rb", closefd=False) as file:
        file.seek(offset)
        return file.read(length)
