"""The archive format: one session with its whole history and blobs, verifiable without Holdfast.

An archive is a ZIP file with `manifest.json`, `events.jsonl` (one event per line, its bytes exactly as they were
hashed), `blobs/SHA256`, and `verify.py`, which needs only Python. An archive from elsewhere is untrusted: names, sizes,
compression, hash chain and blobs are checked before anything of it is kept. `signature.json` says which home exported it. It
covers the manifest (with the last hash, and so every event), the names of all blobs, which are their digests, and `verify.py`.
"""

import hashlib
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import msgspec

from holdfast.core import SessionId, Value, check_session_id, digest_bytes, encode
from holdfast.core.errors import InvalidId, InvalidInput, JournalDamaged
from holdfast.core.events import (
    FORMAT,
    GENESIS,
    Event,
    SessionOpened,
    SessionRewound,
    Signer,
    decode_event,
    event_hash,
)
from holdfast.store.archive.turn_order import TurnOrder
from holdfast.store.blobs.copy_out import write_span
from holdfast.store.contract import (
    LARGE_ARCHIVE,
    ArchiveLimits,
    ArchiveManifest,
    ArchiveSignature,
    FindSigner,
    SignArchive,
)
from holdfast.store.sanity import has_sane_numbers

MAX_TOTAL_BYTES = 4 * 1024**3
MAX_ENTRIES = 100_000
MAX_REPLAYED = 1_000_000
"""Events that are read again because of rewinds, all together. A person who rewinds a thousand times stays far below."""
MAX_LINE_BYTES = 64 * 1024**2
UNCHECKED_RATIO_BYTES = 64 * 1024**2
"""Up to this size, an entry can have any compression ratio."""
MAX_COMPRESSION_RATIO = 200
_PIECE_BYTES = 1 << 20
_MAX_SIGNATURE_BYTES = 1_000
_LARGE_HINT = "if you trust where it comes from, and have the memory: holdfast import --large FILE"
EXPECTED_HINT = "choose a file that `holdfast export` wrote"
_NAME = re.compile(r"manifest\.json|events\.jsonl|verify\.py|signature\.json|blobs/[0-9a-f]{64}")
_COMPRESSION_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EVENT_KEY = b',"event":'
_CHANGED_HINT = "the file differs from what was exported, and nothing was imported; ask for another copy"
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    OSError,
    EOFError,
    KeyError,  # a missing entry
    NotImplementedError,  # an unknown compression method
    RuntimeError,  # an entry with a password
    ValueError,
    OverflowError,
)


class RawEvent(Value):
    """One event at its position, with its exact bytes."""

    session: SessionId
    seq: int
    at_ms: int
    hash: bytes
    body: bytes


class _EventLine(Value):
    session: str
    seq: int
    at_ms: int
    hash: str
    event: msgspec.Raw


def pack(
    file: IO[bytes],
    manifest: ArchiveManifest,
    lines: Iterable[RawEvent],
    blobs: Iterable[tuple[str, bytes | None]],
    sign: SignArchive | None = None,
) -> ArchiveManifest:
    """Write an archive, and sign it if it is whole. A blob that is None could not be read; the returned manifest names it."""
    lost: list[str] = []
    packed: list[str] = []
    verifier = Path(__file__).with_name("verify_main.py").read_bytes()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("verify.py", verifier)
        with archive.open("events.jsonl", "w", force_zip64=True) as out:
            for line in lines:
                out.write(_encode_line(line))
        for digest, content in blobs:
            if content is None:
                lost.append(digest)
            else:
                archive.writestr(f"blobs/{digest}", content, _compression_for(content))
                packed.append(digest)
        manifest = msgspec.structs.replace(manifest, lost=tuple(lost))
        described = encode(manifest)
        archive.writestr("manifest.json", described)
        if sign is not None and is_whole(manifest):
            signature = sign(_statement(described, digest_bytes(verifier), packed))
            archive.writestr("signature.json", encode(signature))
    return manifest


def is_whole(manifest: ArchiveManifest) -> bool:
    """Whether an archive has everything that its session has; else a signature could hide where its words came from."""
    return not manifest.problems and not manifest.lost


def _statement(manifest: bytes, verifier: str, blobs: Iterable[str]) -> bytes:
    """What a signature signs."""
    return "\n".join(["holdfast export 1", digest_bytes(manifest), verifier, *sorted(blobs), ""]).encode()


class ArchiveReader:
    """An open archive, checked for names, sizes and compression ratios. Blocking. Raises InvalidInput."""

    def __init__(self, path: Path, limits: ArchiveLimits | None = None) -> None:
        self._name = path.name or str(path)
        self._manifest = b""
        self._checked: list[str] = []
        with self._errors_explained():
            self._file = open_regular(path)
            try:
                self._archive = zipfile.ZipFile(self._file)
                check_archive(path, self._archive, limits or ArchiveLimits())
            except BaseException:
                self._file.close()
                raise

    def journal(self) -> tuple[ArchiveManifest, list[RawEvent], list[Event]]:
        """Read and check everything but the blobs. Raises InvalidInput or JournalDamaged."""
        with self._errors_explained():
            self._manifest = self._archive.read("manifest.json")
            manifest = _parse_manifest(self._manifest)
            lines, events = _read_events(self._archive)
        end = (lines[-1].session, lines[-1].seq, lines[-1].hash.hex())
        if end != (manifest.session, manifest.events, manifest.last_hash):
            raise JournalDamaged(
                f"the journal in {self._name!r} does not end where the manifest says", hint=_CHANGED_HINT
            )
        return manifest, lines, events

    def digests(self) -> list[str]:
        """List the blobs after checking each against its name. Raises InvalidInput or JournalDamaged."""
        found = [
            name.removeprefix("blobs/") for name in self._archive.namelist() if name.startswith("blobs/")
        ]
        for digest in found:
            if self._digest_of(f"blobs/{digest}") != digest:
                raise JournalDamaged(f"the blob {digest!r} was changed", hint=_CHANGED_HINT)
        self._checked = found
        return found

    def signer(self, find_signer: FindSigner | None) -> Signer:
        """Who signed what `journal` and `digests` returned; empty if it is nobody that the person trusts. Call it after them.

        It is about what they read, not about the file: another process may have changed the file in between.
        """
        with self._errors_explained():
            signature = _read_signature(self._archive)
            if find_signer is None or signature is None:
                return ""
            verifier = self._digest_of("verify.py")
        return find_signer(_statement(self._manifest, verifier, self._checked), signature)

    def _digest_of(self, name: str) -> str:
        hashed = hashlib.sha256()
        with self._errors_explained(), self._archive.open(name) as stream:
            while piece := stream.read(_PIECE_BYTES):
                hashed.update(piece)
        return hashed.hexdigest()

    def blob(self, digest: str) -> bytes:
        """Read one blob and check it against its name."""
        with self._errors_explained():
            content = self._archive.read(f"blobs/{digest}")
        if digest_bytes(content) != digest:
            raise JournalDamaged(f"the blob {digest!r} was changed", hint=_CHANGED_HINT)
        return content

    def size(self, digest: str) -> int:
        """The size of a blob."""
        return self._archive.getinfo(f"blobs/{digest}").file_size

    def copy_blob(self, digest: str, target: int) -> int:
        """Write one blob to an open file, piece by piece, check it against its name, and return its size. Raises OSError."""
        hashed, size = hashlib.sha256(), 0
        with self._errors_explained():
            stream = self._archive.open(f"blobs/{digest}")
        with stream:
            while piece := self._piece(stream):
                hashed.update(piece)
                write_span(target, size, piece)
                size += len(piece)
        if hashed.hexdigest() != digest:
            raise JournalDamaged(f"the blob {digest!r} was changed", hint=_CHANGED_HINT)
        return size

    def _piece(self, stream: IO[bytes]) -> bytes:
        with self._errors_explained():
            return stream.read(_PIECE_BYTES)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as problem:
            raise InvalidInput(f"there is no file {self._name!r}", hint=EXPECTED_HINT) from problem
        except _UNREADABLE as problem:
            raise InvalidInput(
                f"{self._name!r} is not a readable export of a session", hint=EXPECTED_HINT
            ) from problem


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file. Raises OSError, ValueError."""
    # Non-blocking: opening a pipe or a device could otherwise wait forever.
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("not a regular file")
    return os.fdopen(descriptor, "rb")


def check_archive(path: Path, archive: zipfile.ZipFile, limits: ArchiveLimits) -> None:
    """Raise InvalidInput if an archive does not have our format or would expand too far."""
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    reason = None
    if len(entries) > MAX_ENTRIES or len(set(names)) != len(names):
        reason = "has too many entries, or an entry twice"
    elif not all(_NAME.fullmatch(name) for name in names):
        reason = "contains an unexpected entry"
    elif any(entry.flag_bits & 1 or entry.compress_type not in _COMPRESSION_METHODS for entry in entries):
        reason = "is encrypted or uses an unsupported compression method"
    elif sum(entry.file_size for entry in entries) > MAX_TOTAL_BYTES or any(map(_is_bomb, entries)):
        reason = "would expand to an unreasonable size"
    if reason is not None:
        raise InvalidInput(f"{path.name!r} {reason}; nothing was imported", hint=EXPECTED_HINT)
    for entry in entries:
        is_blob = entry.filename.startswith("blobs/")
        bound = limits.blob_bytes if is_blob else limits.journal_bytes
        if entry.file_size > bound:
            raise InvalidInput(
                f"{path.name!r} has {'one content' if is_blob else 'a history'} of {entry.file_size:,} bytes, which takes several "
                f"times as much memory, and at most {bound:,} are read; nothing was imported",
                hint=_LARGE_HINT if limits != LARGE_ARCHIVE else EXPECTED_HINT,
            )


def segments(lines: Sequence[RawEvent]) -> list[list[RawEvent]]:
    """Split a history by the session that wrote each part, oldest first."""
    found: list[list[RawEvent]] = []
    for line in lines:
        if not found or found[-1][-1].session != line.session:
            found.append([])
        found[-1].append(line)
    return found


def _is_bomb(entry: zipfile.ZipInfo) -> bool:
    return entry.file_size > UNCHECKED_RATIO_BYTES and entry.file_size > MAX_COMPRESSION_RATIO * max(
        entry.compress_size, 1
    )


def _compression_for(content: bytes) -> int:
    # A legitimate file full of zeros must not look like a ZIP bomb on import.
    is_sparse = len(content) > UNCHECKED_RATIO_BYTES and len(zlib.compress(content, 1)) * 100 < len(content)
    return zipfile.ZIP_STORED if is_sparse else zipfile.ZIP_DEFLATED


def _encode_line(line: RawEvent) -> bytes:
    head = {"session": line.session, "seq": line.seq, "at_ms": line.at_ms, "hash": line.hash.hex()}
    return msgspec.json.encode(head)[:-1] + _EVENT_KEY + line.body + b"}\n"


def _parse_manifest(content: bytes) -> ArchiveManifest:
    try:
        manifest = msgspec.json.decode(content, type=ArchiveManifest)
        check_session_id(manifest.session)
    except (msgspec.MsgspecError, InvalidId) as problem:
        raise InvalidInput("the manifest of the archive is not readable", hint=EXPECTED_HINT) from problem
    if manifest.format > FORMAT:
        raise InvalidInput(
            f"the archive has format {manifest.format}; this version of Holdfast reads format {FORMAT}",
            hint="import it with the version of Holdfast that wrote it, or a newer one",
        )
    return manifest


def _read_signature(archive: zipfile.ZipFile) -> ArchiveSignature | None:
    """The signature of an archive; None if it has none, or one that nobody wrote like this."""
    if "signature.json" not in archive.namelist():
        return None
    if archive.getinfo("signature.json").file_size > _MAX_SIGNATURE_BYTES:
        return None
    try:
        return msgspec.json.decode(archive.read("signature.json"), type=ArchiveSignature)
    except msgspec.MsgspecError:
        return None


def _read_events(archive: zipfile.ZipFile) -> tuple[list[RawEvent], list[Event]]:
    lines: list[RawEvent] = []
    events: list[Event] = []
    previous, sessions, turns = GENESIS, set[str](), TurnOrder()
    replayed = 0
    for raw in _raw_lines(archive):
        place = len(lines) + 1
        try:
            line, event = _parse_line(raw)
        except (msgspec.MsgspecError, ValueError, InvalidId) as problem:
            raise JournalDamaged(
                f"line {place} of the archive is not an event", hint=_CHANGED_HINT
            ) from problem
        if line.seq != place or event_hash(previous, line.session, place, line.at_ms, line.body) != line.hash:
            raise JournalDamaged(
                f"event {place} of the archive is missing, changed or out of order", hint=_CHANGED_HINT
            )
        if not lines or line.session != lines[-1].session:
            if line.session in sessions or not _continues(event, lines):
                raise JournalDamaged(
                    f"event {place} of the archive does not continue the events before it",
                    hint=_CHANGED_HINT,
                )
            sessions.add(line.session)
        if not turns.accepts(place, event):
            raise JournalDamaged(
                f"event {place} of the archive does not belong to the turn that it lies in",
                hint=_CHANGED_HINT,
            )
        if isinstance(event, SessionRewound):
            # What is computed from a journal is computed again at each rewind, from the events that are left.
            replayed += min(max(event.seq, 0), place)
            if replayed > MAX_REPLAYED:
                raise InvalidInput("the archive rewinds more often than Holdfast reads", hint=EXPECTED_HINT)
        lines.append(line)
        events.append(event)
        previous = line.hash
    if not lines:
        raise JournalDamaged(
            "the archive contains no events",
            hint="nothing of this session was readable at the time of export",
        )
    return lines, events


def _raw_lines(archive: zipfile.ZipFile) -> Iterator[bytes]:
    with archive.open("events.jsonl") as stream:
        while raw := stream.readline(MAX_LINE_BYTES):
            yield raw.removesuffix(b"\n")


def _parse_line(raw: bytes) -> tuple[RawEvent, Event]:
    head = msgspec.json.decode(raw, type=_EventLine)
    body = raw[raw.index(_EVENT_KEY) + len(_EVENT_KEY) : -1]
    if bytes(head.event) != body:
        raise ValueError("the event is not the last field of its line")
    event = decode_event(body)
    if not has_sane_numbers(event, head.at_ms):
        raise ValueError("a number that no journal contains")
    line = RawEvent(
        session=check_session_id(head.session),
        seq=head.seq,
        at_ms=head.at_ms,
        hash=bytes.fromhex(head.hash),
        body=body,
    )
    return line, event


def _continues(event: Event, lines: Sequence[RawEvent]) -> bool:
    if not isinstance(event, SessionOpened):
        return False
    if not lines or event.parent is None:
        return not lines and event.parent is None
    return (event.parent.session, event.parent.seq) == (lines[-1].session, lines[-1].seq)
