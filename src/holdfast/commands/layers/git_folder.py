"""The git folder of a workspace that lies outside it.

A linked worktree or a submodule has a file `.git` that names its real folder. The project wrote that file, so the folder must
name the workspace in turn; any other folder would become visible to programs.
"""

import re
from pathlib import Path


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


def _is_repository(folder: Path) -> bool:
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir() and (folder / "refs").is_dir()
