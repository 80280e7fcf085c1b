"""Proposals: staged changes that are not yet committed, shown as unified diffs."""

import os
from typing import Literal

from holdfast.core import LINK_MODE, Value, pluralize, runs_when, text_memory
from holdfast.world.contract import fingerprint_of
from holdfast.world.staging.line_diff import MAX_TEXT_BYTES, unified_diff


class Proposal(Value):
    """The staged change of one file. `git apply` can apply `diff`; for a binary or very large file it is a description."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    diff: str = ""
    is_binary: bool = False
    renamed_from: str | None = None
    """The deleted file that had the same content."""
    mode: int | None = None
    runs_when: str | None = None
    """What makes another program run or trust the file, as in "this runs when you ..."; None if nothing known does."""
    asks: str = ""
    """Why the change must be approved by name before it is committed; empty if it need not."""


def describe(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    mode: int | None = None,
    mode_before: int | None = None,
    renamed_from: str | None = None,
    asks: str = "",
) -> Proposal:
    """The proposal from one content to another. None means no file, or an unchanged mode."""
    kind: Literal["created", "modified", "deleted"] = (
        "created" if before is None else "deleted" if after is None else "modified"
    )
    if kind == "modified" and (mode == LINK_MODE) != (mode_before == LINK_MODE):
        what = f"{_name_and_content(before, mode_before)} -> {_name_and_content(after, mode)}"
        return Proposal(
            path=path, kind=kind, diff=f"{path}: {what}\n", is_binary=True, mode=mode, asks=asks,
            runs_when=runs_when(path),
        )  # fmt: skip
    sizes = [_text_bytes(content or b"") for content in (before, after)]
    is_binary = None in sizes
    names = (
        "/dev/null" if before is None else f"a/{path}",
        "/dev/null" if after is None else f"b/{path}",
    )
    compared = None
    if not is_binary and sum(size or 0 for size in sizes) <= MAX_TEXT_BYTES:
        compared = unified_diff((before or b"").decode(), (after or b"").decode(), names)
    if compared is None:
        what = "binary" if is_binary else "large"
        diff = f"{what} file {path}: {_size_and_hash(before)} -> {_size_and_hash(after)}\n"
    else:
        diff = compared or _empty_file(path, kind, mode if after is not None else mode_before)
    if kind != "modified" and LINK_MODE in (mode, mode_before):
        verb = "new" if kind == "created" else "deleted"
        diff = f"diff --git a/{path} b/{path}\n{verb} file mode {LINK_MODE:o}\n{diff}"
    if kind == "modified" and mode is not None and mode != mode_before:
        end = (
            diff or "\n"
        )  # a blank line ends a header without a diff, so that git reads the next patch as another one
        diff = f"diff --git a/{path} b/{path}\nold mode 100{mode_before or 0:o}\nnew mode 100{mode:o}\n{end}"
    return Proposal(
        path=path,
        kind=kind,
        diff=diff,
        is_binary=is_binary,
        renamed_from=renamed_from,
        mode=mode,
        runs_when=runs_when(path),
        asks=asks,
    )


def _empty_file(path: str, kind: str, mode: int | None) -> str:
    """The header that stands for a created or deleted file without content, as git writes it."""
    if kind == "modified":
        return ""
    verb = "new" if kind == "created" else "deleted"
    git_mode = "100755" if mode is not None and mode & 0o100 else "100644"  # the only two that git knows
    return f"diff --git a/{path} b/{path}\n{verb} file mode {git_mode}\n\n"  # a blank line ends the header


def _text_bytes(content: bytes) -> int | None:
    """How many bytes of memory a content takes as text; None if it is binary."""
    if b"\0" in content:
        return None
    try:
        return text_memory(content)
    except UnicodeDecodeError:
        return None


def _name_and_content(content: bytes | None, mode: int | None) -> str:
    if mode == LINK_MODE:
        return f"symlink to {os.fsdecode(content or b'')!r}"
    return f"file of {_size_and_hash(content)}"


def _size_and_hash(content: bytes | None) -> str:
    return (
        "nothing" if content is None else f"{pluralize(len(content), 'byte')}, {fingerprint_of(content)[:12]}"
    )
