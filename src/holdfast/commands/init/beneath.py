"""Files beneath a folder that untrusted programs can change at any moment: opened step by step, never through a link.

Used by the init process and by the host. Every function takes the descriptor of the top folder and a relative path.
"""

import contextlib
import errno
import os
import stat

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TEMPORARY = ".holdfast-new"


def open_folder(top: int, path: str, *, mode_of: "int | None" = None, create: bool = False) -> int:
    """Open a folder beneath `top`; the caller closes it. With `create`, make what is missing and replace what is in the way.

    A folder that is made gets the mode of the same folder beneath `mode_of`, if there is one. Raises OSError.
    """
    current = os.dup(top)
    seen = ""
    for name in (part for part in path.split("/") if part):
        seen = f"{seen}/{name}" if seen else name
        try:
            following = os.open(name, _FOLDER, dir_fd=current)
        except OSError as error:
            if not create or error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                os.close(current)
                raise
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=current)
                os.mkdir(name, 0o755, dir_fd=current)
                following = os.open(name, _FOLDER, dir_fd=current)
                os.fchmod(following, _mode_beneath(mode_of, seen))
            except OSError:
                os.close(current)
                raise
        os.close(current)
        current = following
    return current


def open_own_folder(top: int, path: str) -> int:
    """Open a folder of our own layer whose rights a program may have taken away, and give its owner all rights back.

    Every program must be stopped: the rights are changed by name. Raises OSError.
    """
    current = os.dup(top)
    _give_back(current)
    for name in (part for part in path.split("/") if part):
        try:
            if is_folder(current, name) and not _is_open(current, name):
                os.chmod(name, 0o700, dir_fd=current)
            following = os.open(name, _FOLDER, dir_fd=current)
        finally:
            os.close(current)
        current = following
        _give_back(current)
    return current


def _is_open(parent: int, name: str) -> bool:
    return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode & 0o500 == 0o500


def _give_back(folder: int) -> None:
    mode = stat.S_IMODE(os.fstat(folder).st_mode)
    if mode & 0o700 != 0o700:
        os.fchmod(folder, mode | 0o700)


def open_parent(
    top: int, path: str, *, mode_of: "int | None" = None, create: bool = False
) -> "tuple[int, str]":
    """Open the folder that holds a path; returns it with the last name. Raises OSError."""
    folder, _, name = path.rpartition("/")
    return open_folder(top, folder, mode_of=mode_of, create=create), name


def write_file(
    top: int, path: str, content: bytes, mode: int, *, mode_of: "int | None" = None
) -> os.stat_result:
    """Replace a file, or whatever is in its place, at once. Returns its status. Raises OSError."""
    parent, name = open_parent(top, path, mode_of=mode_of, create=True)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_TEMPORARY, dir_fd=parent)
        file = os.open(_TEMPORARY, _NEW_FILE, 0o600, dir_fd=parent)
        try:
            view = memoryview(content)
            while view:
                view = view[os.write(file, view) :]
            os.fchmod(file, mode)
            if is_folder(parent, name):
                remove_tree(parent, name)
            os.rename(_TEMPORARY, name, src_dir_fd=parent, dst_dir_fd=parent)
            return os.fstat(file)
        finally:
            os.close(file)
    finally:
        os.close(parent)


def write_link(top: int, path: str, target: str, *, mode_of: "int | None" = None) -> os.stat_result:
    """Replace whatever is at a path by a symlink at once. Returns its status. Raises OSError."""
    parent, name = open_parent(top, path, mode_of=mode_of, create=True)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(_TEMPORARY, dir_fd=parent)
        os.symlink(target, _TEMPORARY, dir_fd=parent)
        if is_folder(parent, name):
            remove_tree(parent, name)
        os.rename(_TEMPORARY, name, src_dir_fd=parent, dst_dir_fd=parent)
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    finally:
        os.close(parent)


def read_link(top: int, path: str) -> "str | None":
    """The target of a symlink; None if there is none at the path."""
    try:
        parent, name = open_parent(top, path)
    except OSError:
        return None
    try:
        return os.readlink(name, dir_fd=parent)
    except OSError:
        return None
    finally:
        os.close(parent)


def remove(top: int, path: str) -> None:
    """Remove a file, a link or a whole folder, if it exists. Raises OSError."""
    try:
        parent, name = open_parent(top, path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return
        raise
    try:
        remove_tree(parent, name)
    finally:
        os.close(parent)


def remove_empty(top: int, path: str) -> None:
    """Remove a folder if it is empty."""
    with contextlib.suppress(OSError):
        parent, name = open_parent(top, path)
        try:
            os.rmdir(name, dir_fd=parent)
        finally:
            os.close(parent)


def remove_tree(parent: int, name: str) -> None:
    """Remove an entry of a folder with everything below it, however deep. Raises OSError."""
    try:
        if not is_folder(parent, name):
            os.unlink(name, dir_fd=parent)
            return
    except FileNotFoundError:
        return
    # Each folder below moves up into the first one before it is emptied, so no path grows and no stack deepens.
    top = _open_for_removal(parent, name)
    try:
        while names := os.listdir(top):
            for each in names:
                if not is_folder(top, each):
                    os.unlink(each, dir_fd=top)
                    continue
                folder = _open_for_removal(top, each)
                try:
                    for number, inner in enumerate(os.listdir(folder)):
                        if is_folder(folder, inner):
                            moved = f".{os.fstat(folder).st_ino}-{number}"
                            os.rename(inner, moved, src_dir_fd=folder, dst_dir_fd=top)
                        else:
                            os.unlink(inner, dir_fd=folder)
                finally:
                    os.close(folder)
                os.rmdir(each, dir_fd=top)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def is_folder(parent: int, name: str) -> bool:
    """Whether an entry is a folder, not a link to one. False if it does not exist."""
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _open_for_removal(parent: int, name: str) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        # A program can take every right from its own folder.
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, _FOLDER, dir_fd=parent)


def _mode_beneath(top: "int | None", path: str) -> int:
    if top is not None:
        try:
            folder = open_folder(top, path)
        except OSError:
            return 0o755
        try:
            return stat.S_IMODE(os.fstat(folder).st_mode)
        finally:
            os.close(folder)
    return 0o755
