"""Symlinks as contents: a symlink is a file with the mode LINK_MODE whose content is its target, as in git."""

LINK_MODE = 0o120000
"""The mode of a symlink in effects, changes and staged files."""


def link_problem(path: str, target: str) -> str:
    """Why a new symlink at a normal path might lead out of the workspace, by its text alone; empty if it stays inside.

    `..` may only come first: after a name it would be relative to wherever a symlink of that name leads.
    """
    if not target:
        return "has no target"
    if target.startswith("/"):
        return "has an absolute target"
    parts = [part for part in target.split("/") if part not in ("", ".")]
    rising = next((place for place, part in enumerate(parts) if part != ".."), len(parts))
    if ".." in parts[rising:]:
        return "has a target with '..' after a name"
    if rising > path.count("/"):
        return "leads out of the workspace"
    return ""


def link_destination(path: str, target: str) -> str:
    """The normal path that a symlink names, for a target without a `link_problem`; `.` is the workspace."""
    parts = path.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or "."
