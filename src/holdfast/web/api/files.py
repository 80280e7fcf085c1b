"""Routes of a session's files: listed and read as text, with what is staged. Nothing here writes."""

import asyncio
from typing import Literal

from holdfast.core import Value, escape_invisible
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.session import view_staged
from holdfast.web.context import WebRequest
from holdfast.web.route import get
from holdfast.world import StagedWorld

MAX_FILES = 5_000
MAX_CHARACTERS = 200_000


class ListedFile(Value, omit_defaults=False):
    """One file of a workspace."""

    path: str
    shown: str
    """The path with nothing invisible in it."""
    size: int
    is_staged: bool
    """Whether it has a change that is not committed yet."""


class FileList(Value, omit_defaults=False):
    """The files of a workspace, at most so many."""

    files: list[ListedFile]
    is_whole: bool


class FileText(Value, omit_defaults=False):
    """A file as text, with nothing invisible in it."""

    path: str
    size: int
    kind: Literal["text", "binary"]
    text: str
    is_whole: bool


async def list_workspace(request: WebRequest) -> FileList:
    """The files of a session's workspace with what is staged."""
    context = request.context
    staged = await view_staged(context.home, context.store, request.session)
    return await asyncio.to_thread(_listed, staged)


def _listed(staged: StagedWorld) -> FileList:
    changed = set(staged.staged_paths())
    paths = sorted(staged.list("**/*"))
    files: list[ListedFile] = []
    for path in paths[:MAX_FILES]:
        try:
            size = staged.stat(path).size
        except (HoldfastError, OSError):
            continue  # it was removed meanwhile
        shown = escape_invisible(path)
        files.append(ListedFile(path=path, shown=shown, size=size, is_staged=path in changed))
    return FileList(files=files, is_whole=len(paths) <= MAX_FILES)


async def read_text(request: WebRequest) -> FileText:
    """One file of the workspace. A path that leads out of it is refused as it is for the agent."""
    context, path = request.context, request.query.get("path", "")
    staged = await view_staged(context.home, context.store, request.session)
    try:
        return await asyncio.to_thread(_text, staged, path)
    except OSError as problem:
        raise InvalidInput(f"{path!r} cannot be read: {problem.strerror}") from None


def _text(staged: StagedWorld, path: str) -> FileText:
    stat = staged.stat(path)
    if stat.kind != "file":
        raise InvalidInput(f"{path!r} is not a file")
    content = staged.read(path, length=4 * MAX_CHARACTERS)
    try:
        # A character may be cut in two at the end.
        text = content.decode() if len(content) == stat.size else content.decode(errors="ignore")
    except UnicodeDecodeError:
        return FileText(path=escape_invisible(path), size=stat.size, kind="binary", text="", is_whole=False)
    is_whole = len(content) == stat.size and len(text) <= MAX_CHARACTERS
    shown = escape_invisible(text[:MAX_CHARACTERS])
    return FileText(path=escape_invisible(path), size=stat.size, kind="text", text=shown, is_whole=is_whole)


ROUTES = (
    get("/api/sessions/{session}/files", list_workspace, FileList, "The files of a session's workspace"),
    get(
        "/api/sessions/{session}/file",
        read_text,
        FileText,
        "A file of a session's workspace, as text",
        query=("path",),
    ),
)
