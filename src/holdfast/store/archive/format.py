"""The portable file: one session with its whole history and contents, checkable without Holdfast.

A ZIP with `manifest.json`, `events.jsonl` (one event a line, its bytes exactly as they were hashed), `blobs/SHA256`,
and `verify.py`, which needs nothing but Python. A file that comes from elsewhere is not trusted: names, sizes, chain and
contents are checked before anything of it is kept.

Quarantine: what is asked of a file from elsewhere before anything of it is read: what it is, and how far it would grow.
"""

import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO

import msgspec

from holdfast.core import SessionId, Value, check_session_id, digest_bytes, encode
from holdfast.core.errors import InvalidId, InvalidInput, JournalDamaged
from holdfast.core.events import FORMAT, GENESIS, AnyEvent, SessionOpened, decode_event, event_hash
from holdfast.store.recovery.inspect import Line, Problem
from holdfast.store.sanity import has_sane_numbers

LARGEST_TOTAL = 4 * 1024**3
LARGEST_JOURNAL = 1024**3
"""A journal is held in memory as a whole, contents one at a time."""
MOST_ENTRIES = 100_000
HARMLESS_SIZE = 64 * 1024**2
MOST_EXPANSION = 200
_NAME = re.compile(r"manifest\.json|events\.jsonl|verify\.py|blobs/[0-9a-f]{64}")
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
WANTED = "give a file that holdfast export wrote"


def open_regular(path: Path) -> IO[bytes]:
    """The file, if it is a plain one. Raises OSError, ValueError."""
    # Not waiting: a pipe or a device would keep us here for ever, or never come to an end.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("no plain file")
    return os.fdopen(descriptor, "rb")


def check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Raises InvalidInput where an archive is not one of ours, or would do harm by being unpacked."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    reason = None
    if len(entries) > MOST_ENTRIES or len(set(names)) != len(names):
        reason = "has too many entries, or one twice"
    elif not all(_NAME.fullmatch(name) for name in names):
        reason = "has an entry that does not belong there"
    elif any(entry.flag_bits & 1 or entry.compress_type not in _PACKINGS for entry in entries):
        reason = "is encrypted, or packed in a way that we do not pack"
    elif sum(entry.file_size for entry in entries) > LARGEST_TOTAL or any(map(_is_bomb, entries)):
        reason = "would grow beyond all measure"
    if reason is not None:
        raise InvalidInput(f"{path.name!r} {reason}; nothing of it was kept", hint=WANTED)


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    if not entry.filename.startswith("blobs/") and entry.file_size > LARGEST_JOURNAL:
        return True
    return entry.file_size > HARMLESS_SIZE and entry.file_size > MOST_EXPANSION * max(entry.compress_size, 1)


LARGEST_LINE = 64 * 1024**2
_MARK = b',"event":'
_CHANGED = "it is not what was exported, and nothing of it was kept; ask for another copy"
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    KeyError,  # an entry that is not there
    NotImplementedError,  # a way of packing that Python does not know
    RuntimeError,  # an entry with a password
    ValueError,
    OverflowError,
)


class Manifest(Value):
    """What a portable file says of itself."""

    session: SessionId
    events: int
    last_hash: str
    exported_ms: int
    format: int = FORMAT
    name: str | None = None
    problems: tuple[Problem, ...] = ()
    lost: tuple[str, ...] = ()
    """Contents that events mention and that could not be read."""


class _Head(Value):
    session: str
    seq: int
    at_ms: int
    hash: str
    event: msgspec.Raw


def pack(
    file: IO[bytes], manifest: Manifest, lines: Iterable[Line], contents: Iterable[tuple[str, bytes | None]]
) -> Manifest:
    """Write a portable file. A content that is None cannot be read; the manifest that comes back names it."""
    lost: list[str] = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("verify.py", (resources.files(__package__) / "standalone_verify.py").read_bytes())
        with archive.open("events.jsonl", "w", force_zip64=True) as out:
            for line in lines:
                out.write(_written(line))
        for digest, content in contents:
            if content is None:
                lost.append(digest)
            else:
                archive.writestr(f"blobs/{digest}", content, _packing(content))
        manifest = msgspec.structs.replace(manifest, lost=tuple(lost))
        archive.writestr("manifest.json", encode(manifest))
    return manifest


class Portable:
    """A portable file that is open for reading; one that could do harm is not. Blocking. Raises InvalidInput."""

    def __init__(self, path: Path) -> None:
        self._name = path.name or str(path)
        with self._explained():
            self._file = open_regular(path)
            try:
                self._archive = zipfile.ZipFile(self._file)
                check_archive(path, self._archive)
            except BaseException:
                self._file.close()
                raise

    def journal(self) -> tuple[Manifest, list[Line], list[AnyEvent]]:
        """Everything but the contents, checked. Raises InvalidInput or JournalDamaged."""
        with self._explained():
            manifest = _manifest(self._archive)
            lines, events = _checked(self._archive)
        end = (lines[-1].session, lines[-1].seq, lines[-1].hash.hex())
        if end != (manifest.session, manifest.events, manifest.last_hash):
            raise JournalDamaged(f"{self._name!r} does not end where its manifest says", hint=_CHANGED)
        return manifest, lines, events

    def digests(self) -> list[str]:
        """The names of the contents, each of which was held against its content. Raises InvalidInput or JournalDamaged."""
        found = [
            name.removeprefix("blobs/") for name in self._archive.namelist() if name.startswith("blobs/")
        ]
        for digest in found:
            self.content(digest)
        return found

    def content(self, digest: str) -> bytes:
        """One content, checked against its name."""
        with self._explained():
            content = self._archive.read(f"blobs/{digest}")
        if digest_bytes(content) != digest:
            raise JournalDamaged(f"the content {digest!r} was changed", hint=_CHANGED)
        return content

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as problem:
            raise InvalidInput(f"there is no file {self._name!r}", hint=WANTED) from problem
        except _UNREADABLE as problem:
            raise InvalidInput(
                f"{self._name!r} is no exported session that can be read", hint=WANTED
            ) from problem


def segments(lines: Sequence[Line]) -> list[list[Line]]:
    """The lines of each session that the history consists of, oldest first."""
    found: list[list[Line]] = []
    for line in lines:
        if not found or found[-1][-1].session != line.session:
            found.append([])
        found[-1].append(line)
    return found


def _packing(content: bytes) -> int:
    # An honest file full of zeros must not look like a bomb to the one who imports it.
    is_empty_air = len(content) > HARMLESS_SIZE and len(zlib.compress(content, 1)) * 100 < len(content)
    return zipfile.ZIP_STORED if is_empty_air else zipfile.ZIP_DEFLATED


def _written(line: Line) -> bytes:
    head = {"session": line.session, "seq": line.seq, "at_ms": line.at_ms, "hash": line.hash.hex()}
    return msgspec.json.encode(head)[:-1] + _MARK + line.body + b"}\n"


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        manifest = msgspec.json.decode(archive.read("manifest.json"), type=Manifest)
        check_session_id(manifest.session)
    except (msgspec.MsgspecError, InvalidId) as problem:
        raise InvalidInput("the file has no manifest that can be read", hint=WANTED) from problem
    if manifest.format > FORMAT:
        raise InvalidInput(
            f"the file has format {manifest.format}, this Holdfast reads {FORMAT}",
            hint="import it with the Holdfast that wrote it, or a newer one",
        )
    return manifest


def _checked(archive: zipfile.ZipFile) -> tuple[list[Line], list[AnyEvent]]:
    lines: list[Line] = []
    events: list[AnyEvent] = []
    previous, sessions = GENESIS, set[str]()
    for raw in _raw_lines(archive):
        place = len(lines) + 1
        try:
            line, event = _parsed(raw)
        except (msgspec.MsgspecError, ValueError, InvalidId) as problem:
            raise JournalDamaged(f"line {place} of the file is no event", hint=_CHANGED) from problem
        if line.seq != place or event_hash(previous, line.session, place, line.at_ms, line.body) != line.hash:
            raise JournalDamaged(
                f"event {place} of the file is missing, changed or out of its place", hint=_CHANGED
            )
        if not lines or line.session != lines[-1].session:
            if line.session in sessions or not _follows(event, lines):
                raise JournalDamaged(
                    f"event {place} of the file does not follow from what stands before it", hint=_CHANGED
                )
            sessions.add(line.session)
        lines.append(line)
        events.append(event)
        previous = line.hash
    if not lines:
        raise JournalDamaged(
            "the file holds no events", hint="nothing of this session could be read when it was exported"
        )
    return lines, events


def _raw_lines(archive: zipfile.ZipFile) -> Iterator[bytes]:
    with archive.open("events.jsonl") as stream:
        while raw := stream.readline(LARGEST_LINE):
            yield raw.removesuffix(b"\n")


def _parsed(raw: bytes) -> tuple[Line, AnyEvent]:
    head = msgspec.json.decode(raw, type=_Head)
    body = raw[raw.index(_MARK) + len(_MARK) : -1]
    if bytes(head.event) != body:
        raise ValueError("the event is not the last thing in its line")
    event = decode_event(body)
    if not has_sane_numbers(event, head.at_ms):
        raise ValueError("a number that no journal has")
    line = Line(
        session=check_session_id(head.session),
        seq=head.seq,
        at_ms=head.at_ms,
        hash=bytes.fromhex(head.hash),
        body=body,
    )
    return line, event


def _follows(event: AnyEvent, lines: Sequence[Line]) -> bool:
    if not isinstance(event, SessionOpened):
        return False
    if not lines or event.parent is None:
        return not lines and event.parent is None
    return (event.parent.session, event.parent.seq) == (lines[-1].session, lines[-1].seq)
