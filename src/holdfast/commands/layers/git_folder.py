"""The git folder of a workspace: where it lies outside, and its configuration without credentials.

A linked worktree or a submodule has a file `.git` that names its real folder. The project wrote that file, so the folder must
name the workspace in turn; any other folder would become visible to programs.
"""

import os
import re
import stat
from pathlib import Path

from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.git.config_text import parse_config, render_config
from holdfast.commands.init import beneath

_MAX_BYTES = 1 << 20
_MAX_MODULES = 200


def outside_git_folder(workspace: Path) -> Path | None:
    """The git folder outside a workspace that its `.git` file names, if that folder names the workspace too."""
    try:
        named = re.match(
            r"gitdir: (.+)", (workspace / ".git").read_text(encoding="utf-8", errors="surrogateescape")
        )
        folder = (workspace / named[1].strip()).resolve(strict=True) if named else None
        if folder is None or folder.is_relative_to(workspace):
            return None
        if (folder / "commondir").is_file():
            common = (folder / (folder / "commondir").read_text(encoding="utf-8").strip()).resolve(
                strict=True
            )
            back = (folder / (folder / "gitdir").read_text(encoding="utf-8").strip()).resolve()
            return common if back == workspace / ".git" and _is_repository(common) else None
        config = (folder / "config").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None
    tree = re.search(r"^\s*worktree\s*=\s*(.+)$", config, re.MULTILINE)
    is_ours = tree is not None and (folder / tree[1].strip()).resolve() == workspace
    return folder if is_ours and _is_repository(folder) else None


def hide_credentials(layer: int, base: int, git: str) -> None:
    """Put cleaned copies of the configurations of a git folder, and of its submodules, into a layer.

    A copy that programs changed stays, unless the base changed after it. Raises OSError.
    """
    for path in (_join(git, "config"), *_module_configs(base, git)):
        content, changed_ns = _read(base, path)
        if not _may_hold_credentials(content) or _read(layer, path)[1] > changed_ns:
            continue
        beneath.write_file(layer, path, clean_git_config(content), 0o644, mode_of=base)


def _may_hold_credentials(config: bytes) -> bool:
    """Whether cleaning takes anything away. Old addresses with tokens live on in comments."""
    written = render_config(parse_config(config.decode("utf-8", "surrogateescape")))
    return (
        clean_git_config(config) != written.encode("utf-8", "surrogateescape")
        or b"#" in config
        or b";" in config
    )


def _module_configs(base: int, git: str) -> list[str]:
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
                found.append(f"{folder}/config")
                waiting.append(f"{folder}/modules")
            else:
                waiting += [f"{folder}/{name}" for name in names if beneath.is_folder(opened, name)]
        finally:
            os.close(opened)
    return found


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _read(top: int, path: str) -> tuple[bytes, int]:
    """The content and the time of change of a regular file; nothing and 0 if there is none."""
    try:
        parent, name = beneath.open_parent(top, path)
    except OSError:
        return b"", 0
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return b"", 0
    finally:
        os.close(parent)
    with open(file, "rb") as opened:
        status = os.fstat(file)
        is_regular = stat.S_ISREG(status.st_mode)
        return (opened.read(_MAX_BYTES), status.st_mtime_ns) if is_regular else (b"", 0)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
