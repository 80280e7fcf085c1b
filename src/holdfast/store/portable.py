"""The portable file: one session with its whole history and contents, checkable without Holdfast.

A ZIP with `manifest.json`, `events.jsonl` (one event a line, its bytes exactly as they were hashed), `blobs/SHA256`,
and `verify.py`, which needs nothing but Python. A file that comes from elsewhere is not trusted: names, sizes, chain and
contents are checked before anything of it is kept.
"""

import re
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
from holdfast.core.events import FORMAT, GENESIS, AnyEvent, SessionOpened, chain, decode_event
from holdfast.store.inspection import Line, Problem

LARGEST_TOTAL = 4 * 1024**3
LARGEST_LINE = 64 * 1024**2
MOST_ENTRIES = 100_000
HARMLESS_SIZE = 64 * 1024**2
MOST_EXPANSION = 200
_NAME = re.compile(r"manifest\.json|events\.jsonl|verify\.py|blobs/[0-9a-f]{64}")
_MARK = b',"event":'
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


class _Head(Value):
    session: str
    seq: int
    at_ms: int
    hash: str
    event: msgspec.Raw


def pack(file: IO[bytes], manifest: Manifest, lines: Iterable[Line], blobs: Iterable[bytes]) -> None:
    """Write a portable file."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", encode(manifest))
        archive.writestr("verify.py", (resources.files(__package__) / "verifier" / "verify.py").read_bytes())
        with archive.open("events.jsonl", "w", force_zip64=True) as out:
            for line in lines:
                out.write(_written(line))
        for content in blobs:
            archive.writestr(f"blobs/{digest_bytes(content)}", content, _packing(content))


def unpack(path: Path) -> tuple[Manifest, list[Line], list[AnyEvent]]:
    """Read a portable file and check all of it but the contents. Raises InvalidInput or JournalDamaged."""
    with _opening(path) as archive:
        manifest = _manifest(archive)
        lines, events = _checked(archive)
    end = (lines[-1].session, lines[-1].seq, lines[-1].hash.hex())
    if end != (manifest.session, manifest.events, manifest.last_hash):
        raise JournalDamaged(f"{path.name!r} does not end where its manifest says")
    return manifest, lines, events


def contents(path: Path) -> Iterator[bytes]:
    """The contents of a portable file, each checked against its name."""
    with _opening(path) as archive:
        for name in archive.namelist():
            if name.startswith("blobs/"):
                content = archive.read(name)
                if digest_bytes(content) != name.removeprefix("blobs/"):
                    raise JournalDamaged(f"the content {name!r} was changed")
                yield content


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


@contextmanager
def _opening(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(path) as archive:
            _refuse_hostile(path, archive)
            yield archive
    except FileNotFoundError as problem:
        raise InvalidInput(f"there is no file {str(path)!r}") from problem
    except _UNREADABLE as problem:
        raise InvalidInput(f"{path.name!r} is no exported session that can be read") from problem


def _refuse_hostile(path: Path, archive: zipfile.ZipFile) -> None:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    reason = None
    if len(entries) > MOST_ENTRIES or len(set(names)) != len(names):
        reason = "has too many entries, or one twice"
    elif not all(_NAME.fullmatch(name) for name in names):
        reason = "has an entry that does not belong there"
    elif any(entry.flag_bits & 1 for entry in entries):
        reason = "is encrypted"
    elif sum(entry.file_size for entry in entries) > LARGEST_TOTAL or any(map(_is_bomb, entries)):
        reason = "would grow beyond all measure"
    if reason is not None:
        raise InvalidInput(f"{path.name!r} {reason}; nothing of it was kept")


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > HARMLESS_SIZE and entry.file_size > MOST_EXPANSION * max(entry.compress_size, 1)


def _manifest(archive: zipfile.ZipFile) -> Manifest:
    try:
        manifest = msgspec.json.decode(archive.read("manifest.json"), type=Manifest)
        check_session_id(manifest.session)
    except (msgspec.MsgspecError, InvalidId) as problem:
        raise InvalidInput("the file has no manifest that can be read") from problem
    if manifest.format > FORMAT:
        raise InvalidInput(f"the file has format {manifest.format}, this Holdfast reads {FORMAT}")
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
            raise JournalDamaged(f"line {place} of the file is no event") from problem
        if line.seq != place or chain(previous, line.session, place, line.at_ms, line.body) != line.hash:
            raise JournalDamaged(f"event {place} of the file is missing, changed or out of its place")
        if not lines or line.session != lines[-1].session:
            if line.session in sessions or not _follows(event, lines):
                raise JournalDamaged(f"event {place} of the file does not follow from what stands before it")
            sessions.add(line.session)
        lines.append(line)
        events.append(event)
        previous = line.hash
    if not lines:
        raise JournalDamaged("the file holds no events")
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
    line = Line(
        session=check_session_id(head.session),
        seq=head.seq,
        at_ms=head.at_ms,
        hash=bytes.fromhex(head.hash),
        body=body,
    )
    return line, decode_event(body)


def _follows(event: AnyEvent, lines: Sequence[Line]) -> bool:
    if not isinstance(event, SessionOpened):
        return False
    if not lines or event.parent is None:
        return not lines and event.parent is None
    return (event.parent.session, event.parent.seq) == (lines[-1].session, lines[-1].seq)
