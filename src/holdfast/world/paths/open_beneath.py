"""Opening what lies beneath a folder, by descriptor: the only place where a path of a guest meets the kernel.

Nothing here ever follows a link, neither in the folder nor on the way to it. The kernel does it in one step where it has
openat2; elsewhere each part of the path is opened from the descriptor of the one before. So a link that is swapped in
after a check is met as a link, and refused.
Who wants to follow links asks `Root.resolve` for the path they lead to and opens that, again without following.
"""

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from holdfast.core.errors import PathRefused
from holdfast.world.paths.symlinks import relative_to, resolve_symlinks

Opener = Callable[[int, str, int, int], int]
"""Opens a normal path beneath a descriptor with flags and mode, and follows nothing; OSError ELOOP on a link."""

# Systems without O_PATH open a folder for reading instead, which needs the right to read it.
PATH_ONLY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC
FOLDER = PATH_ONLY | os.O_DIRECTORY

_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_OPENAT2 = 437
_ATTEMPTS = 128


class SymlinkEncountered(OSError):
    """A part of the path is a link; `Root.resolve` says where it leads."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "a link is in the way", path)


class BeneathRoot:
    """A folder whose inside can be opened, given by its real path.

    It holds no descriptor: each operation opens the folder anew. The path is taken at its word, so that a link which takes
    the place of the folder, or of one above it, leads nobody to a folder that was never opened to us.
    """

    def __init__(self, folder: Path, *, opener: Opener | None = None) -> None:
        self.real = os.path.abspath(folder)
        self._open = opener or best_opener()

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """The folder itself. Raises PathRefused where it is gone or a link is on the way to it."""
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
        """A descriptor of a normal path. Raises LinkInTheWay, PathRefused or the OSError with the path as given."""
        with self.descriptor() as top:
            try:
                return self._open(top, path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
            except OSError as error:
                raise _explained(error, path) from None

    @contextmanager
    def folder(self, path: str) -> Iterator[int]:
        """A folder, held open for operations on the names in it."""
        opened = self.open(path, FOLDER)
        try:
            yield opened
        finally:
            os.close(opened)

    def resolve(self, path: str) -> str:
        """Where a normal path leads when its links are followed, relative to the root. Raises PathRefused."""
        if path == "." or not self._has_links(path):
            return path
        inside = relative_to(resolve_symlinks(f"{self.real}/{path}"), self.real)
        if inside is None:
            raise PathRefused(f"{path!r} leads out of the workspace through a link")
        return inside

    def _has_links(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        try:
            with self.folder(parent or ".") as folder:
                return stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode)
        except SymlinkEncountered:
            return True
        except (FileNotFoundError, NotADirectoryError):
            return False  # what is missing is no link, and up to there none was met


def best_opener() -> Opener:
    """openat2 where the kernel has it, else the walk."""
    return open_by_kernel if has_openat2() else open_by_walk


@cache
def has_openat2() -> bool:
    """Whether this kernel, and whatever filters its calls, offers openat2."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        os.close(open_by_kernel(_AT_FDCWD, ".", FOLDER, 0))
    except OSError:
        return False
    return True


class _How(ctypes.Structure):
    """`struct open_how` of linux/openat2.h."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


_AT_FDCWD = -100


@cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    return function


def open_by_kernel(top: int, path: str, flags: int, mode: int) -> int:
    """Open by openat2: the kernel itself refuses links and whatever leads out."""
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    # Without O_NOFOLLOW, so that a link at the end is ELOOP like one on the way; RESOLVE_NO_SYMLINKS follows neither.
    how = _How(flags & ~os.O_NOFOLLOW, mode if flags & os.O_CREAT else 0, resolve)
    encoded = os.fsencode(path)
    for _ in range(_ATTEMPTS):
        opened = _syscall()(_OPENAT2, top, encoded, ctypes.byref(how), ctypes.sizeof(how))
        if opened >= 0:
            return opened
        # EAGAIN: something was renamed meanwhile and the kernel would not vouch for the result.
        if (number := ctypes.get_errno()) not in (errno.EAGAIN, errno.EINTR):
            raise OSError(number, os.strerror(number), path)
    raise PathRefused(f"{path!r} is being moved about; nothing was opened")


def open_by_walk(top: int, path: str, flags: int, mode: int) -> int:
    """Open part by part, each from the descriptor of the one before, none of them a link."""
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
        # O_DIRECTORY on a link says "not a directory"; the caller has to know which of both it was.
        if stat.S_ISLNK(os.lstat(name, dir_fd=folder).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _unreached(error: OSError, real: str) -> OSError | PathRefused:
    match error.errno:
        case errno.ELOOP:
            return PathRefused(
                f"{_first_link(real)!r} is a link, and the workspace {real!r} is not looked for behind one",
                hint="put the folder back in its place, or begin a new session where the link leads",
            )
        case errno.ENOENT | errno.ENOTDIR:
            return PathRefused("the folder of the workspace is gone", hint="put it back and go on")
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
            return PathRefused(f"{path!r} is no plain file or folder")
        case number:
            return OSError(number, os.strerror(number or errno.EIO), path)
