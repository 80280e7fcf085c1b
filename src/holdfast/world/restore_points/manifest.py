"""What a workspace holds at one moment, by the names of its contents: the blob that a restore point is.

A manifest lists everything, or only what changed since another manifest that it names; so a restore point costs as much
as its changes. After a while one lists everything again, so that the way back stays short.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Literal

import msgspec

from holdfast.core import Change, Value, encode
from holdfast.core.errors import JournalDamaged
from holdfast.world.paths.names import folders_above

Fetch = Callable[[str], Awaitable[bytes]]
"""Answers with the blob of a SHA-256."""

MAX_CHAIN = 64


class Entry(Value):
    """One thing in a workspace. `unkept` is a file whose content was not kept: too large, or not ours to read; `other` is what
    has none to keep, such as a pipe.
    """

    path: str
    kind: Literal["file", "folder", "link", "unkept", "other"]
    mode: int = 0
    size: int = 0
    fingerprint: str = ""
    """SHA-256 of the content; of an unkept file, what else tells whether it changed."""
    chunks: tuple[str, ...] = ()
    """The blobs of a large file in order; a small one is the blob of its fingerprint."""
    target: str = ""
    """Where a link points."""

    @property
    def contents(self) -> tuple[str, ...]:
        """The names of what a file holds, in order."""
        return self.chunks or (self.fingerprint,)

    @property
    def stamp(self) -> str:
        """Equal exactly when everything but the path is."""
        return f"{self.kind} {self.mode:o} {self.fingerprint} {escape(self.target)}"


class Manifest(Value):
    """Entries by path. With a `base`, only what is new or different, and what is gone."""

    base: str | None = None
    chain: int = 0
    """How many manifests lie below."""
    entries: tuple[Entry, ...] = ()
    removed: tuple[str, ...] = ()


Tree = dict[str, Entry]
"""Everything in a workspace by its path; names that are no Unicode carry surrogates, as Python gives them."""


Delta = dict[str, Entry | None]
"""What is new or different by its path; None is what is gone."""


def pack(manifest: Manifest) -> bytes:
    """The blob of a manifest."""
    return encode(manifest)


def difference(before: Tree, after: Tree) -> Delta:
    """What leads from one tree to another."""
    delta: Delta = {path: entry for path, entry in after.items() if before.get(path) != entry}
    delta.update({path: None for path in before if path not in after})
    return delta


def without_unkept(delta: Delta, now: Tree) -> tuple[Delta, tuple[str, ...]]:
    """What of a delta can be made without losing anything, and the unkept files that stay as they are for it.

    An unkept file that is there could not be brought back if it were removed, nor can one that was there be now. The folders
    such a file lies in stay as well, and so does what would take its place.
    """
    left = {path for path, wanted in delta.items() if is_unkept(now.get(path)) or is_unkept(wanted)}
    if not left:
        return delta, ()
    around = {above for path in left if path in now for above in folders_above(path)}
    can_be_made = {
        path: wanted
        for path, wanted in delta.items()
        if path not in left
        and (path not in around or (wanted is not None and wanted.kind == "folder"))
        and left.isdisjoint(folders_above(path))
    }
    return can_be_made, tuple(sorted(map(readable, left)))


def is_unkept(entry: Entry | None) -> bool:
    """Whether a file is there whose content was not kept."""
    return entry is not None and entry.kind == "unkept"


def changes_in(delta: Delta, before: Tree) -> tuple[Change, ...]:
    """The files that a delta creates, modifies and deletes, sorted by path."""
    changes: list[Change] = []
    for path, entry in sorted(delta.items()):
        old, new = _content(before.get(path)), _content(entry)
        if old is None and new is None:
            continue
        changes.append(
            Change(
                path=readable(path),
                kind="created" if old is None else "deleted" if new is None else "modified",
                before=old,
                after=new,
                mode=entry.mode if entry is not None and new is not None else None,
            )
        )
    return tuple(changes)


def manifest_of(tree: Tree, delta: Delta, base: str | None, chain: int) -> Manifest:
    """The manifest of a tree: the delta that led to it, or the whole where that is shorter or the chain too long."""
    if base is None or chain + 1 >= MAX_CHAIN or len(delta) > len(tree) // 2:
        return Manifest(entries=tuple(_written(entry) for _, entry in sorted(tree.items())))
    return Manifest(
        base=base,
        chain=chain + 1,
        entries=tuple(_written(entry) for _, entry in sorted(delta.items()) if entry is not None),
        removed=tuple(escape(path) for path, entry in sorted(delta.items()) if entry is None),
    )


async def load(digest: str, fetch: Fetch) -> tuple[Tree, int]:
    """The tree of a manifest and the length of its chain. Raises JournalDamaged."""
    links: list[Manifest] = []
    following: str | None = digest
    while following is not None:
        try:
            manifest = msgspec.json.decode(await fetch(following), type=Manifest)
        except msgspec.DecodeError as error:
            raise JournalDamaged(f"the restore point {following!r} cannot be read: {error}") from None
        links.append(manifest)
        if len(links) > MAX_CHAIN + 1:
            raise JournalDamaged(f"the restore point {digest!r} goes back through too many others")
        following = manifest.base
    tree: Tree = {}
    for manifest in reversed(links):
        for path in manifest.removed:
            tree.pop(unescape(path), None)
        for entry in manifest.entries:
            read = _read(entry)
            tree[read.path] = read
    return tree, links[0].chain


def readable(path: str) -> str:
    """A path as it can be written down; bytes that are no Unicode show as escapes."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _content(entry: Entry | None) -> str | None:
    if entry is None or entry.kind in ("folder", "other"):
        return None
    return f"link:{readable(entry.target)}" if entry.kind == "link" else entry.fingerprint


def _read(entry: Entry) -> Entry:
    if "\\" not in entry.path and "\\" not in entry.target:
        return entry
    return msgspec.structs.replace(entry, path=unescape(entry.path), target=unescape(entry.target))


def _written(entry: Entry) -> Entry:
    if _is_plain(entry.path) and _is_plain(entry.target):
        return entry
    return msgspec.structs.replace(entry, path=escape(entry.path), target=escape(entry.target))


def escape(path: str) -> str:
    """A path with what is no Unicode, and every backslash, in a form that JSON can hold."""
    if _is_plain(path):
        return path
    return path.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _is_plain(path: str) -> bool:
    return path.isascii() and "\\" not in path


def unescape(text: str) -> str:
    """The path that was escaped."""
    if "\\" not in text:
        return text
    pieces = text.split("\\\\")
    return "\\".join(_surrogates(piece) for piece in pieces)


def _surrogates(text: str) -> str:
    head, *rest = text.split("\\u")
    return head + "".join(chr(int(piece[:4], 16)) + piece[4:] for piece in rest)
