"""The exact call in an approval, line by line: a diff where a file would be written, else the arguments."""

from holdfast.core import Call
from holdfast.core.approval_text import describe_call_lines, visible
from holdfast.core.errors import HoldfastError
from holdfast.session import ASK_PERSON
from holdfast.world import World, unified_diff

MAX_DIFF_CHARACTERS = 500_000
"""A larger file is shown as it would be written, because comparing it takes too long."""


def exact_call(call: Call, workspace: World | None = None) -> list[str]:
    """The exact call: a diff where a file would be written, else the arguments."""
    return [visible(line) for line in call_lines(call, workspace)]


def call_lines(call: Call, workspace: World | None = None) -> list[str]:
    """The lines of the exact call, not escaped: what is not shown does not need to be."""
    if call.operation == ASK_PERSON.name:
        return str(call.arguments.get("question", "")).split("\n")
    lines = describe_call_lines(call)
    diff = _diff(call, workspace)
    return lines if diff is None else [*lines[:2], *(f"  {line}" for line in diff)]


def _diff(call: Call, workspace: World | None) -> list[str] | None:
    path, content = call.arguments.get("path"), call.arguments.get("content")
    if (
        workspace is None
        or call.operation != "world.write"
        or not isinstance(path, str)
        or not isinstance(content, str)
        or len(content) > MAX_DIFF_CHARACTERS
    ):
        return None
    try:
        name = workspace.resolve(path)
        if workspace.exists(name) and workspace.stat(name).size > MAX_DIFF_CHARACTERS:
            return None
        before = workspace.read(name).decode() if workspace.exists(name) else None
    except (OSError, HoldfastError, UnicodeDecodeError):
        return None  # the call will fail anyway; show its arguments
    diff = unified_diff(before or "", content, ("current" if before is not None else "new file", "proposed"))
    if diff is None:
        return None
    if not diff:
        return ["(a new empty file)" if before is None else "(the file has this content already)"]
    return diff.removesuffix("\n").split("\n")
