"""The files of one session, as far as levels go: what it wrote into them, and the lowest level of what it read from them.

A whole content is known by its digest, wherever it lies. A part of a file (a piece, a line, a diff) is known by the place of
the file, and a name by its text.
"""

import base64
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from holdfast.core import Change, JsonObject, Level, digest_bytes, lowest, texts_in
from holdfast.core.errors import PathRefused
from holdfast.core.events import CallSettled
from holdfast.gate.labels.file_labels import FileLabels
from holdfast.world import GUEST_ROOTS, relative

_SHOWS_CONTENT = frozenset(
    {"world.read", "world.search", "world.proposals", "world.stat", "world.fingerprint"}
)
"""Operations whose results say something about the contents of files; the others show names."""
_PATHS = ("path", "source", "destination")


class _Result(NamedTuple):
    operation: str
    arguments: JsonObject
    settled: CallSettled


class SessionFiles:
    """Follows what a session does with files.

    `workspaces` are the folders that its paths are relative to. A fork and an imported session have new ones, with the files of
    the old one: what was written to a place there counts here. What is written goes to the last one.
    """

    def __init__(self, labels: FileLabels, workspaces: list[str]) -> None:
        self._labels = labels
        self._workspaces = workspaces
        self._results: list[_Result] = []
        """Results of file operations that are not looked at yet."""
        self._read: set[str] = set()
        """The keys of everything that was read."""
        self._has_lost_count = False
        """Whether a result was too large to know what it showed."""

    def enter(self, workspace: str) -> None:
        """The session works in this folder from here on."""
        if workspace and workspace not in self._workspaces:
            self._workspaces.append(workspace)

    def read(self, operation: str, arguments: JsonObject, settled: CallSettled) -> None:
        """The session got the result of a file operation."""
        self._results.append(_Result(operation, arguments, settled))

    def write(
        self, operation: str, arguments: JsonObject, levels: dict[str, Level], changes: tuple[Change, ...]
    ) -> None:
        """The session wrote files, with arguments of these levels."""
        for change in changes:
            if change.after is not None:
                self._write(operation, change, change.after, lowest(*levels.values()))
        for name in _PATHS:
            path = arguments.get(name)
            if name in levels and isinstance(path, str):
                self._label_name(self._normal(path), levels[name])

    def write_by_program(self, path: str, digest: str, level: Level) -> None:
        """A program that the session ran wrote a file. It may have read every other file there."""
        if digest:
            anywhere = (self._labels.get(_any_place(each)) or "own" for each in self._workspaces or ("",))
            self._remember(path, digest, lowest(level, *anywhere))

    def level(self, workspace: Level) -> Level:
        """The lowest level of anything that was read, in a workspace of this level."""
        for result in self._results:
            self._read.update(self._keys(result))
        self._results.clear()
        known = (self._labels.get(key) for key in self._read)
        lost = self._labels.lowest() if self._has_lost_count else "own"
        return lowest(workspace, lost, *(level for level in known if level is not None))

    def level_of_content(self, digest: str, workspace: Level) -> Level:
        """The level of one whole file, in a workspace of this level."""
        return lowest(workspace, self._labels.get(digest) or "own")

    def _write(self, operation: str, change: Change, after: str, level: Level) -> None:
        before = self._labels.get(change.before) if change.before is not None else None
        if before is not None and operation != "world.write":
            level = lowest(level, before)
        self._remember(change.path, after, level)

    def _remember(self, path: str, digest: str, level: Level) -> None:
        """A content, the place that it was written to, and the workspace have a level."""
        if level != "own":
            here = self._workspaces[-1] if self._workspaces else ""
            for key in (digest, self._place(here, path), _any_place(here)):
                self._labels.add(key, level)

    def _label_name(self, path: str, level: Level) -> None:
        """A name, and those of the folders that it leads through, may be new."""
        while path not in ("", "."):
            self._labels.add(_of_text(path), level)
            path = path.rpartition("/")[0]

    def _keys(self, result: _Result) -> Iterator[str]:
        operation, arguments, settled = result
        is_piece = bool(arguments.get("offset")) or arguments.get("length") is not None
        if operation == "world.read" and not is_piece and (digest := _digest_of_read(arguments, settled)):
            yield digest
            return
        if operation != "world.read" and settled.whole is not None:
            self._has_lost_count = True
        texts = [text for text in texts_in(settled.result) if len(text) < 4096]
        yield from map(_of_text, texts)
        if operation in _SHOWS_CONTENT:
            given = [path for name in _PATHS if isinstance(path := arguments.get(name), str)]
            for path in (*texts, *given):
                yield from (self._place(each, path) for each in self._workspaces or ("",))

    def _place(self, workspace: str, path: str) -> str:
        return _of_text(f"{workspace}\0{self._normal(path)}")

    def _normal(self, path: str) -> str:
        try:
            return relative(path, (*GUEST_ROOTS, *self._workspaces))
        except PathRefused:
            return path


def _digest_of_read(arguments: JsonObject, settled: CallSettled) -> str | None:
    """The digest of a file that was read whole; None if the result does not tell."""
    is_text = arguments.get("encoding", "utf-8") == "utf-8"
    if settled.whole is not None:
        return settled.whole.digest if is_text else None
    match settled.result:
        case str(text) if is_text:
            return _of_text(text)
        case str(text):
            with suppress(ValueError):  # redacted
                return digest_bytes(base64.b64decode(text, validate=True))
            return None
        case _:
            return None


def _any_place(workspace: str) -> str:
    """The key of the lowest level that was written anywhere in a workspace."""
    return _of_text(f"{workspace}\0")


def _of_text(text: str) -> str:
    return digest_bytes(text.encode("utf-8", "surrogatepass"))
