"""Opens files beneath a folder by descriptor. The only place where a guest's path reaches the kernel.

Nothing here follows a symlink, neither in the folder nor on the way to it. On Linux openat2 does this in one step; elsewhere
each part is opened from the descriptor of the one before. So a symlink that is swapped in after a check is detected and
refused. To follow symlinks, a caller resolves the path with `BeneathRoot.resolve` and opens the result, again without
following.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from holdfast.core.errors import PathRefused
from holdfast.world.paths.symlinks import relative_to, resolve_symlinks

Opener = Callable[[int, str, int, int], int]
"""Opens a normal path beneath a descriptor with flags and mode. Raises OSError ELOOP at a symlink."""

# Systems without O_PATH open the folder for reading, which needs read permission.
PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
FOLDER = PATH_ONLY | os.O_DIRECTORY

_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_NO_SYMLINKS = _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
_OPENAT2 = 437
_ATTEMPTS = 128


class SymlinkEncountered(OSError):
    """A part of the path is a symlink; `BeneathRoot.resolve` says where it leads."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "the path contains a symlink", path)


class BeneathRoot:
    """Opens paths beneath a folder, which is given by its real path.

    It keeps no descriptor: each operation opens the folder again without following symlinks. So a symlink that replaces the
    folder, or a folder above it, cannot lead to another place.
    """

    def __init__(self, folder: Path, *, opener: Opener | None = None) -> None:
        self.real = os.path.abspath(folder)
        self._open = opener or best_opener()

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """The folder itself. Raises PathRefused if it is gone or its path contains a symlink."""
        top = os.open("/", FOLDER)
        try:
            opened = self._open(top, self.real.strip("/") or ".", FOLDER, 0)
        except OSError as error:
            raise _unreached(error, self.real) from None
        finally:
            os.close(top)
        try:
            yield opened
        finally:
            os.close(opened)

    def open(self, path: str, flags: int, mode: int = 0o666) -> int:
        """Open a normal path. Raises SymlinkEncountered, PathRefused, or OSError with the path as given."""
        if self._open is open_by_kernel:
            # Folder and path in one step, which follows no symlink either. If it fails, two steps tell where.
            with suppress(OSError):
                return _openat2(_AT_FDCWD, f"{self.real}/{path}", flags | os.O_CLOEXEC, mode, _NO_SYMLINKS)
        with self.descriptor() as top:
            try:
                return self._open(top, path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
            except OSError as error:
                raise _explained(error, path) from None

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """An open folder, for operations on the names in it."""
        opened = self.open(path, FOLDER)
        try:
            yield opened
        finally:
            os.close(opened)

    def resolve(self, path: str) -> str:
        """Where a normal path leads with its symlinks resolved, relative to the root. Raises PathRefused."""
        if path == "." or not self._has_links(path):
            return path
        inside = relative_to(resolve_symlinks(f"{self.real}/{path}"), self.real)
        if inside is None:
            raise PathRefused(f"{path!r} leads out of the workspace through a symlink")
        return inside

    def is_symlink(self, path: str) -> bool:
        """Whether the last name of a normal path is a symlink. Raises SymlinkEncountered if there is one above it."""
        parent, _, name = path.rpartition("/")
        try:
            with self.folder(parent or ".") as folder:
                return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False  # a missing name is not a symlink, and none was found above it

    def _has_links(self, path: str) -> bool:
        try:
            return self.is_symlink(path)
        except SymlinkEncountered:
            return True


def best_opener() -> Opener:
    """openat2 if the kernel has it, else the step-by-step walk."""
    return open_by_kernel if has_openat2() else open_by_walk


@cache
def has_openat2() -> bool:
    """Whether this process can use openat2: old kernels lack it and seccomp filters may block it."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(open_by_kernel(_AT_FDCWD, ".", FOLDER, 0))
    except OSError:
        return False
    return True


class _OpenHow(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_AT_FDCWD = -100


@cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return function


def open_by_kernel(top: int, path: str, flags: int, mode: int) -> int:
    """Open with openat2: the kernel refuses symlinks and paths that lead out."""
    return _openat2(top, path, flags, mode, _RESOLVE_BENEATH | _NO_SYMLINKS)


def _openat2(top: int, path: str, flags: int, mode: int, resolve: int) -> int:
    # Without O_NOFOLLOW, so that a symlink as the last part gives ELOOP as well. RESOLVE_NO_SYMLINKS follows none.
    how = _OpenHow(flags & ~os.O_NOFOLLOW, mode if flags & os.O_CREAT else 0, resolve)
    encoded = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        opened = _syscall()(_OPENAT2, top, encoded, ctypes.byref(how), ctypes.sizeof(how))
        if opened >= 0:
            return opened
        # EAGAIN: something was renamed in the meantime, so the kernel cannot guarantee the result.
        if (number := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), path)
    raise PathRefused(f"{path!r} keeps being renamed; nothing was opened")


def open_by_walk(top: int, path: str, flags: int, mode: int) -> int:
    """Open part by part, each from the descriptor of the one before. No part may be a symlink."""
    *folders, name = path.split("/")
    current = top
    try:
        for folder in folders:
            following = _step(current, folder, FOLDER | os.O_NOFOLLOW, 0)
            if current != top:
                os.close(current)
            current = following
        return _step(current, name, flags, mode)
    finally:
        if current != top:
            os.close(current)


def _step(folder: int, name: str, flags: int, mode: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW, mode, dir_fd=folder)
    except NotADirectoryError:
        # O_DIRECTORY on a symlink gives ENOTDIR; the caller must be able to tell the two apart.
        if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _unreached(error: OSError, real: str) -> OSError | PathRefused:
    match error.errno:
        case errno.ELOOP:
            return PathRefused(
                f"{_first_link(real)!r} is a symlink, and the workspace {real!r} is never opened through one",
                hint="restore the folder, or start a new session in the target of the symlink",
            )
        case errno.ENOENT | errno.ENOTDIR:
            return PathRefused(
                f"the workspace folder {real!r} is gone", hint="restore the folder and try again"
            )
        case number:
            return OSError(number, os.strerror(number or errno.EIO), real)


def _first_link(real: str) -> str:
    place = Path(real)
    return str(next((each for each in (*reversed(place.parents), place) if each.is_symlink()), place))


def _explained(error: OSError, path: str) -> OSError | PathRefused:
    match error.errno:
        case errno.ELOOP:
            return SymlinkEncountered(path)
        case errno.EXDEV:
            return PathRefused(f"{path!r} leads out of the workspace")
        case errno.ENAMETOOLONG:
            return PathRefused(f"{path!r} is too long for this file system")
        case errno.ENXIO | errno.ENODEV:
            return PathRefused(f"{path!r} is not a regular file or folder")
        case number:
            return OSError(number, os.strerror(number or errno.EIO), path)
