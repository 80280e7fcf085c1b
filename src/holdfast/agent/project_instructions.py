"""Instructions that a project brings for agents: `AGENTS.md` (or `CLAUDE.md`) and `.holdfast/instructions.md`.

They count as instructions of the person only in a folder that the person trusts; the caller checks that. Read at the start are those
from the top of the repository down to the workspace; those of folders below it join when the agent works there.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.agent.folder_instructions import InstructionFile
from holdfast.commands import is_ignored
from holdfast.core import Value, digest_bytes
from holdfast.core.errors import HoldfastError
from holdfast.world import FolderWorld, read_project_file

_NAMES = ("AGENTS.md", "CLAUDE.md")
"""The first one that exists. A folder that has both repeats itself."""
_OWN = (".holdfast/instructions.md",)
MAX_BYTES = 32 << 10
"""What is read of one file."""


class ProjectInstructions(Value):
    """The files that were read, and what they say."""

    files: tuple[str, ...] = ()
    text: str = ""
    digests: tuple[str, ...] = ()
    """Of the contents that were read."""


def read_project_instructions(workspace: Path) -> ProjectInstructions:
    """Read the instructions for a workspace, those of the nearest folder last. A file that cannot be read is left out."""
    found = _files_in(_repository_folders(workspace), workspace)
    return ProjectInstructions(
        files=tuple(file.path for file in found),
        text="\n\n".join(f"From {file.path}:\n{file.content.strip()}" for file in found),
        digests=tuple(file.digest for file in found),
    )


def instruction_files_above(workspace: Path) -> tuple[str, ...]:
    """The files above a workspace, in the same repository, that count as its instructions too."""
    return tuple(file.path for file in _files_in(_repository_folders(workspace)[:-1], workspace))


def read_folder_instructions(workspace: Path, folder: str) -> InstructionFile | None:
    """Read the instructions of a folder below the workspace's top.

    None if it has none, if git ignores them (a package that was installed), or if they are in another repository.
    """
    for file in _first(workspace, tuple(f"{folder}/{name}" for name in _NAMES)):
        real = FolderWorld(workspace).resolve(file.path)
        parents = real.split("/")[:-1]
        is_elsewhere = any(
            os.path.lexists(workspace.joinpath(*parents[:count], ".git"))
            for count in range(1, len(parents) + 1)
        )
        return None if is_elsewhere or is_ignored(workspace, real) else file
    return None


def _repository_folders(workspace: Path) -> list[Path]:
    """The folders from the top of the repository down to the workspace; outside a repository the workspace alone.

    The search ends at a folder of another user, who could put a repository and instructions around a project of the person.
    """
    folders = [workspace]
    with suppress(OSError):
        for above in workspace.parents:
            if os.path.lexists(folders[0] / ".git"):
                return folders
            if above.stat().st_uid != os.geteuid():
                break
            folders.insert(0, above)
    return [workspace]


def _files_in(folders: list[Path], workspace: Path) -> list[InstructionFile]:
    return [
        file._replace(path=os.path.relpath(folder / file.path, workspace))
        for folder in folders
        for names in (_NAMES, _OWN)
        for file in _first(folder, names)
    ]


def _first(folder: Path, names: tuple[str, ...]) -> Iterator[InstructionFile]:
    for name in names:
        try:
            content = read_project_file(folder, name, max_bytes=MAX_BYTES + 1)
        except (HoldfastError, OSError):
            continue
        text = content[:MAX_BYTES].decode("utf-8", "replace")
        if len(content) > MAX_BYTES:
            text += f"\n[the rest of {name} is left out: it is longer than {MAX_BYTES:,} bytes]"
        if text.strip():
            yield InstructionFile(name, text, digest_bytes(content))
            return
