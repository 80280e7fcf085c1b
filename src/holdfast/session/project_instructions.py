"""Instructions that a project brings for agents: `AGENTS.md` (or `CLAUDE.md`) and `.holdfast/instructions.md`.

They count as instructions of the person only in a folder that the person trusts; the caller checks that. What lies in
subfolders stays data that the agent reads itself.
"""

from pathlib import Path

from holdfast.core import Value, digest_bytes
from holdfast.core.errors import HoldfastError
from holdfast.world import read_project_file

_FILES: tuple[tuple[str, ...], ...] = (("AGENTS.md", "CLAUDE.md"), (".holdfast/instructions.md",))
"""Of each group, the first file that exists. A project that has both of the first group repeats itself."""
MAX_BYTES = 32 << 10
"""What is read of one file."""
_NESTED = "A folder of the project can have an AGENTS.md of its own: read it before you change files there."


class ProjectInstructions(Value):
    """The files that were read, and what they say."""

    files: tuple[str, ...] = ()
    text: str = ""
    digests: tuple[str, ...] = ()
    """Of the contents that were read."""


def read_project_instructions(folder: Path) -> ProjectInstructions:
    """Read the instructions of a project. A file that cannot be read is left out."""
    found = [each for names in _FILES for each in _first(folder, names)]
    if not found:
        return ProjectInstructions()
    sections = [f"From {path}:\n{text.strip()}" for path, text, _ in found]
    return ProjectInstructions(
        files=tuple(path for path, _, _ in found),
        text="\n\n".join([*sections, _NESTED]),
        digests=tuple(digest for _, _, digest in found),
    )


def _first(folder: Path, names: tuple[str, ...]) -> list[tuple[str, str, str]]:
    for name in names:
        try:
            content = read_project_file(folder, name, max_bytes=MAX_BYTES + 1)
        except (HoldfastError, OSError):
            continue
        text = content[:MAX_BYTES].decode("utf-8", "replace")
        if len(content) > MAX_BYTES:
            text += f"\n[the rest of {name} is left out: it is longer than {MAX_BYTES:,} bytes]"
        if text.strip():
            return [(name, text, digest_bytes(content))]
    return []
