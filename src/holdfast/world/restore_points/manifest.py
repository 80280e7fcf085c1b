"""Manifests: the list of files in a workspace at one moment, with the hashes of their contents. A restore point is one blob.

A manifest lists everything, or only the changes since a base manifest, so the cost of a restore point is that of its changes.
After `MAX_CHAIN` manifests a new one lists everything again, which keeps loading fast.
"""

import os
import re
from collections.abc import Awaitable, Callable, Set
from typing import Literal

import msgspec

from holdfast.core import Change, Value, encode, link_problem
from holdfast.core.errors import JournalDamaged
from holdfast.world.paths.names import MAX_NAME_BYTES, MAX_PATH_BYTES, folders_above
from holdfast.world.paths.protected import protected_in

FetchBlob = Callable[[str], Awaitable[bytes]]
"""Loads the blob with a SHA-256."""

MAX_CHAIN = 64
_ESCAPE = re.compile(r"\\u(dc[89a-f][0-9a-f])")


class TreeEntry(Value):
    """One entry of a workspace. `unkept` is a file whose content is not stored, because it is too large or unreadable;
    `other` has no content, such as a pipe.
    """

    path: str
    kind: Literal["file", "folder", "link", "unkept", "other"]
    mode: int = 0
    size: int = 0
    fingerprint: str = ""
    """SHA-256 of the content. Of an unkept file: its size and time, which also reveal changes."""
    chunks: tuple[str, ...] = ()
    """The blobs of a large file in order. A small file is one blob, named by its fingerprint."""
    target: str = ""
    """The target of a symlink."""

    @property
    def contents(self) -> tuple[str, ...]:
        """The SHA-256 of each blob of the file, in order."""
        return self.chunks or (self.fingerprint,)

    @property
    def stamp(self) -> str:
        """Equal exactly if everything except the path is equal."""
        return f"{self.kind} {self.mode:o} {self.fingerprint} {escape(self.target)}"


class Manifest(Value):
    """Entries by path. With a `base`, only new, changed and removed entries."""

    base: str | None = None
    chain: int = 0
    """The number of manifests below this one."""
    entries: tuple[TreeEntry, ...] = ()
    removed: tuple[str, ...] = ()


Tree = dict[str, TreeEntry]
"""All entries of a workspace by path. Names that are not valid Unicode have surrogates, as Python returns them."""


Delta = dict[str, TreeEntry | None]
"""New and changed entries by path; None means removed."""


def pack(manifest: Manifest) -> bytes:
    """The blob of a manifest."""
    return encode(manifest)


def difference(before: Tree, after: Tree) -> Delta:
    """The changes from one tree to another."""
    delta: Delta = {path: entry for path, entry in after.items() if before.get(path) != entry}
    delta.update({path: None for path in before if path not in after})
    return delta


def without_unkept(delta: Delta, now: Tree) -> tuple[Delta, tuple[str, ...]]:
    """The part of a delta that can be applied without losing data, and the unkept files that stay as they are.

    The content of an unkept file is not stored, so it can be neither removed safely nor restored.
    """
    left = {path for path, wanted in delta.items() if is_unkept(now.get(path)) or is_unkept(wanted)}
    return _leaving(delta, now, left), tuple(sorted(map(readable, left)))


def without_protected(delta: Delta, now: Tree, target: Tree) -> tuple[Delta, tuple[str, ...]]:
    """The part of a delta that changes no git repository and no file of Holdfast, and the topmost paths that stay as they are.

    A guest cannot change these, so there is nothing of a guest to undo. A restore point may come from somebody else, and what
    it has there would run as the user.
    """
    protected = dict(protected_in(now.keys() | target.keys()))
    left = protected.keys() & delta.keys()
    return _leaving(delta, now, left), tuple(sorted({readable(protected[path]) for path in left}))


def without_links_out(delta: Delta, now: Tree) -> tuple[Delta, tuple[str, ...]]:
    """The part of a delta without symlinks that lead out of the workspace, and these."""
    left = {path for path, wanted in delta.items() if is_link_out(path, wanted)}
    return _leaving(delta, now, left), tuple(sorted(map(readable, left)))


def _leaving(delta: Delta, now: Tree, left: Set[str]) -> Delta:
    """A delta without the paths to leave. Folders that contain one stay too, and so does anything that would replace it."""
    if not left:
        return delta
    around = {above for path in left if path in now for above in folders_above(path)}
    return {
        path: wanted
        for path, wanted in delta.items()
        if path not in left
        and (path not in around or (wanted is not None and wanted.kind == "folder"))
        and left.isdisjoint(folders_above(path))
    }


def is_link_out(path: str, entry: TreeEntry | None) -> bool:
    """Whether an entry is a symlink that may lead out of the workspace."""
    return entry is not None and entry.kind == "link" and link_problem(path, entry.target) != ""


def is_unkept(entry: TreeEntry | None) -> bool:
    """Whether an entry is a file whose content is not stored."""
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
    """The manifest of a tree: its delta, or all entries if that is shorter or the chain is too long."""
    if base is None or chain + 1 >= MAX_CHAIN or len(delta) > len(tree) // 2:
        return Manifest(entries=tuple(_written(entry) for _, entry in sorted(tree.items())))
    return Manifest(
        base=base,
        chain=chain + 1,
        entries=tuple(_written(entry) for _, entry in sorted(delta.items()) if entry is not None),
        removed=tuple(escape(path) for path, entry in sorted(delta.items()) if entry is None),
    )


async def load(
    digest: str, fetch: FetchBlob, *, max_bytes: int | None = None, max_entries: int | None = None
) -> tuple[Tree, int]:
    """The tree of a manifest and the length of its chain. Raises JournalDamaged, also if it has more bytes or entries than these."""
    links: list[Manifest] = []
    size = count = 0
    following: str | None = digest
    while following is not None:
        content = await fetch(following)
        size += len(content)
        if max_bytes is not None and size > max_bytes:
            raise _too_long(digest)
        try:
            manifest = msgspec.json.decode(content, type=Manifest)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise JournalDamaged(f"the restore point {following!r} cannot be read: {error}") from None
        count += len(manifest.entries)
        if max_entries is not None and count > max_entries:
            raise _too_long(digest)
        links.append(manifest)
        if len(links) > MAX_CHAIN + 1:
            raise JournalDamaged(f"the restore point {digest!r} has too many base manifests")
        following = manifest.base
    tree: Tree = {}
    try:
        for manifest in reversed(links):
            for path in manifest.removed:
                tree.pop(unescape(path), None)
            for entry in manifest.entries:
                read = _read(entry)
                tree[read.path] = read
        _check_folders(tree)
    except ValueError as error:
        raise JournalDamaged(
            f"the restore point {digest!r} contains an invalid entry: {error}",
            hint="Holdfast did not write it; nothing was restored from it",
        ) from None
    return tree, links[0].chain


def _too_long(digest: str) -> JournalDamaged:
    return JournalDamaged(
        f"the restore point {digest!r} lists more files than Holdfast reads from a file",
        hint="if you trust where the file comes from, and have the memory: holdfast import --large FILE",
    )


def readable(path: str) -> str:
    """A path for display, with bytes that are not valid Unicode escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _content(entry: TreeEntry | None) -> str | None:
    if entry is None or entry.kind in ("folder", "other"):
        return None
    return f"link:{readable(entry.target)}" if entry.kind == "link" else entry.fingerprint


def _read(entry: TreeEntry) -> TreeEntry:
    """An entry with its names unescaped. Raises ValueError if the file system could not have had it."""
    if "\\" not in entry.path and "\\" not in entry.target:
        _check(entry)
        return entry
    read = _unescaped(entry)
    _check(read)
    return read


def _check(entry: TreeEntry) -> None:
    """A manifest may come from a file of a stranger, so its names are checked before any reaches the file system."""
    os.fsencode(entry.path + entry.target)  # a UnicodeEncodeError is a ValueError
    if "\0" in entry.path or "\0" in entry.target:
        raise ValueError(f"a NUL character in {entry.path!a}")
    if any(part in ("", ".", "..") for part in entry.path.split("/")):
        raise ValueError(f"{entry.path!a} is not a path in a workspace")
    if len(os.fsencode(entry.path)) > MAX_PATH_BYTES or len(os.fsencode(entry.target)) > MAX_PATH_BYTES:
        raise ValueError(f"a path of more than {MAX_PATH_BYTES} bytes")
    if any(len(os.fsencode(part)) > MAX_NAME_BYTES for part in entry.path.split("/")):
        raise ValueError(f"a file name of more than {MAX_NAME_BYTES} bytes")
    if entry.kind == "link" and not entry.target:
        raise ValueError(f"the symlink {entry.path!a} has no target")
    if not 0 <= entry.mode <= 0o777 or not 0 <= entry.size < 2**63:
        raise ValueError(f"an impossible mode or size of {entry.path!a}")


def _check_folders(tree: Tree) -> None:
    for path in tree:
        for above in folders_above(path):
            entry = tree.get(above)
            if entry is not None and entry.kind != "folder":
                raise ValueError(f"{path!a} is inside {above!a}, which is not a folder")
            if entry is not None:
                break  # the folders above it are checked with it


def _unescaped(entry: TreeEntry) -> TreeEntry:
    return msgspec.structs.replace(entry, path=unescape(entry.path), target=unescape(entry.target))


def _written(entry: TreeEntry) -> TreeEntry:
    if _is_plain(entry.path) and _is_plain(entry.target):
        return entry
    return msgspec.structs.replace(entry, path=escape(entry.path), target=escape(entry.target))


def escape(path: str) -> str:
    """A path with invalid Unicode and backslashes escaped, so that JSON can represent it."""
    if _is_plain(path):
        return path
    return path.replace("\\", "\\\\").encode("utf-8", "backslashreplace").decode()


def _is_plain(path: str) -> bool:
    return path.isascii() and "\\" not in path


def unescape(text: str) -> str:
    """The original of an escaped path. Raises ValueError for an escape that `escape` does not write."""
    if "\\" not in text:
        return text
    pieces = text.split("\\\\")
    return "\\".join(_surrogates(piece) for piece in pieces)


def _surrogates(text: str) -> str:
    # Only what `escape` writes: the surrogate of a byte that is not valid UTF-8.
    if _ESCAPE.sub("", text).count("\\"):
        raise ValueError(f"an unknown escape in {text!a}")
    return _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
