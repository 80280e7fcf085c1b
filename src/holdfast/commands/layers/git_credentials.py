"""Git configurations without credentials: cleaned copies in a layer, over those of the base.

They cover the workspace's repository, the repositories nested in it, bare ones included, and their submodules.
"""

import os
import stat
from collections.abc import Collection

from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.git.config_text import parse_config, render_config
from holdfast.commands.init import beneath
from holdfast.commands.layers.entries import hides_base, open_file_beneath, shows_base, status_beneath

_MAX_BYTES = 1 << 20
_MAX_MODULES = 200
_NAMES = ("config", "config.worktree")
_REPOSITORY = frozenset({"HEAD", "objects", "refs", "config"})


def is_repository(names: Collection[str]) -> bool:
    """Whether a folder with these names is a git folder, as a bare repository is."""
    return _REPOSITORY.issubset(names)


def hide_credentials(layer: int, base: int, git: str) -> list[str]:
    """Put cleaned copies of the configurations of a git folder, and of its submodules, into a layer. Returns their paths.

    A copy that programs changed stays, unless the base changed after it. Raises OSError.
    """
    written: list[str] = []
    for path in _configs(base, git):
        content, changed_ns = _read(base, path)
        if not _may_hold_credentials(content) or not shows_base(layer, path):
            continue
        if _read(layer, path)[1] <= changed_ns:
            beneath.write_file(layer, path, clean_git_config(content), 0o644, mode_of=base)
            written.append(path)
    return written


def holds_only_cleaned(layer: int, base: int, git: str) -> bool:
    """Whether a git folder in a layer has nothing but cleaned copies: no program changed it. Raises OSError."""
    waiting = [git]
    while waiting:
        folder = waiting.pop()
        opened = beneath.open_own_folder(layer, folder)
        try:
            if hides_base(opened) or not _is_base_folder(base, folder):
                return False
            for name in os.listdir(opened):
                path = f"{folder}/{name}"
                if beneath.is_folder(opened, name):
                    waiting.append(path)
                elif name not in _NAMES or _read(layer, path)[0] != clean_git_config(_read(base, path)[0]):
                    return False
        finally:
            os.close(opened)
    return True


def _configs(base: int, git: str) -> list[str]:
    return [_join(folder, name) for folder in (git, *_modules(base, git)) for name in _NAMES]


def _may_hold_credentials(config: bytes) -> bool:
    """Whether cleaning takes anything away. Old addresses with tokens live on in comments."""
    written = render_config(parse_config(config.decode("utf-8", "surrogateescape")))
    return (
        clean_git_config(config) != written.encode("utf-8", "surrogateescape")
        or b"#" in config
        or b";" in config
    )


def _modules(base: int, git: str) -> list[str]:
    found: list[str] = []
    waiting = [_join(git, "modules")]
    while waiting and len(found) < _MAX_MODULES:
        folder = waiting.pop()
        try:
            opened = beneath.open_folder(base, folder)
        except OSError:
            continue
        try:
            names = os.listdir(opened)
            if "HEAD" in names:
                found.append(folder)
                waiting.append(f"{folder}/modules")
            else:
                waiting += [f"{folder}/{name}" for name in names if beneath.is_folder(opened, name)]
        finally:
            os.close(opened)
    return found


def _is_base_folder(base: int, path: str) -> bool:
    found = status_beneath(base, path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def _read(top: int, path: str) -> tuple[bytes, int]:
    """The content and the time of change of a regular file; nothing and 0 if there is none."""
    file = open_file_beneath(top, path)
    if file is None:
        return b"", 0
    with open(file, "rb") as opened:
        return opened.read(_MAX_BYTES), os.fstat(file).st_mtime_ns


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
