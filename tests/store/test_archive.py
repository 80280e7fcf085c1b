"""Archives: export, verification by the included program, and import, which refuses hostile files."""

import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.sample_events import ended, opened, replied, said, turn

from holdfast.core import PERSON, FakeClock, Grant, GrantId, Ok, SessionId, Usage, digest_bytes
from holdfast.core.errors import HoldfastError, InvalidInput, JournalDamaged, SessionExists
from holdfast.core.events import (
    GENESIS,
    Event,
    GrantGiven,
    GrantRevoked,
    RecordedEvent,
    RestorePointMade,
    SessionRenamed,
    SessionRewound,
    TurnEnded,
    encode_event,
    event_hash,
)
from holdfast.store import Home, Store
from holdfast.store.archive.format import ArchiveReader, RawEvent, pack
from holdfast.store.contract import ArchiveLimits, ArchiveManifest, Arrival
from holdfast.store.sqlite.store import SqliteStore

Forge = Callable[[dict[str, bytes]], None]


async def exported(store: Store, path: Path) -> SessionId:
    """Export a fork with blobs."""
    leaf, large = b"a leaf", b"x" * 2_000_000
    manifest = json.dumps([digest_bytes(leaf), digest_bytes(large)]).encode()
    parent = await store.create(opened(name="trunk"))
    await parent.append(*turn(1, "one"), blobs=[leaf, large])
    grant = Grant(
        id=GrantId("g"),
        operation="o",
        rule="r",
        targets=(),
        scope="session",
        given_by=PERSON,
        given_ms=0,
    )
    await parent.append(
        GrantGiven(grant=grant), RestorePointMade(turn=1, manifest=digest_bytes(manifest)), blobs=[manifest]
    )
    fork = await store.fork(parent.session, at=6, opened=opened(name="branch"))
    await fork.append(*turn(2, "two"))
    await store.export_session(fork.session, path, now_ms=0)
    return fork.session


def entries(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path: Path, content: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)


def check(path: Path, tmp_path: Path) -> int:
    """Run the verifier of an archive on its own."""
    program = tmp_path / "verify.py"
    program.write_bytes(entries(path)["verify.py"])
    done = subprocess.run([sys.executable, "-I", program, path], capture_output=True, check=False)
    return done.returncode


async def test_an_imported_session_equals_the_exported_one(
    durable: Store, clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "session.zip"
    session = await exported(durable, path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert check(path, tmp_path) == 0
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    assert await other.import_session(path, now_ms=5) == session
    before, after = await durable.read(session), await other.read(session)
    assert list(after)[: len(before)] == list(before)
    assert (await other.verify(session)).is_intact
    assert [line.id for line in await other.sessions()] == [session]
    assert await other.find("branch") == session
    for content in (b"a leaf", b"x" * 2_000_000):
        assert await other.blob(digest_bytes(content)) == content
    journal = await other.open(session)
    await journal.append(said(3))
    await other.close()


async def test_permissions_of_another_home_are_not_valid_here(
    durable: Store, clock: FakeClock, tmp_path: Path
) -> None:
    path = tmp_path / "session.zip"
    session = await exported(durable, path)
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    await other.import_session(path, now_ms=5)
    revoked = [one.event for one in await other.read(session) if isinstance(one.event, GrantRevoked)]
    assert [event.grant for event in revoked] == ["g"]
    assert (await other.summary(session)).workspace == str(other.home.workspace(session))
    await other.close()


async def test_an_import_does_not_replace_an_existing_session(durable: Store, tmp_path: Path) -> None:
    path = tmp_path / "session.zip"
    session = await exported(durable, path)
    with pytest.raises(SessionExists):
        await durable.import_session(path, now_ms=5)
    with pytest.raises(InvalidInput):
        await durable.export_session(session, path, now_ms=0)


async def test_a_deleted_session_with_forks_cannot_be_imported(durable: Store, tmp_path: Path) -> None:
    parent = await durable.create(opened())
    fork = await durable.fork(parent.session, at=1, opened=opened())
    for journal in (parent, fork):
        await journal.release()
    await durable.export_session(parent.session, tmp_path / "parent.zip", now_ms=0)
    await durable.delete(parent.session)
    with pytest.raises(SessionExists, match="forks still use its first events"):
        await durable.import_session(tmp_path / "parent.zip", now_ms=0)
    await durable.delete(fork.session)
    assert await durable.import_session(tmp_path / "parent.zip", now_ms=0) == parent.session


async def test_two_imported_forks_share_their_parents_events(
    durable: Store, clock: FakeClock, tmp_path: Path
) -> None:
    parent = await durable.create(opened(name="trunk"))
    await parent.append(*turn(1, "one"), *turn(2, "two"))
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    for n, at in enumerate((2, 5)):
        fork = await durable.fork(parent.session, at=at, opened=opened(name="same" if n else None))
        await durable.export_session(fork.session, tmp_path / f"{n}.zip", now_ms=0)
        await other.import_session(tmp_path / f"{n}.zip", now_ms=5)
        assert (await other.verify(fork.session)).is_intact
    assert len(await other.sessions()) == 2
    await other.close()


async def test_an_import_does_not_take_the_name_of_another_session(
    durable: Store, clock: FakeClock, tmp_path: Path
) -> None:
    session = await exported(durable, tmp_path / "s.zip")
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    owner = await other.create(opened(name="branch"))
    await other.import_session(tmp_path / "s.zip", now_ms=5)
    assert await other.find("branch") == owner.session
    assert (await other.summary(session)).name is None
    await other.close()


def _change(name: str, old: bytes, new: bytes) -> Forge:
    def forge(content: dict[str, bytes]) -> None:
        assert old in content[name]
        content[name] = content[name].replace(old, new, 1)

    return forge


def _without_line(number: int) -> Forge:
    def forge(content: dict[str, bytes]) -> None:
        lines = content["events.jsonl"].splitlines(keepends=True)
        content["events.jsonl"] = b"".join(lines[:number] + lines[number + 1 :])

    return forge


def _swapped(content: dict[str, bytes]) -> None:
    lines = content["events.jsonl"].splitlines(keepends=True)
    lines[2], lines[3] = lines[3], lines[2]
    content["events.jsonl"] = b"".join(lines)


def _changed_content(content: dict[str, bytes]) -> None:
    content[f"blobs/{digest_bytes(b'a leaf')}"] = b"another"


TAMPERINGS: dict[str, Forge] = {
    "a word": _change("events.jsonl", b'"one"', b'"two"'),
    "a time": _change("events.jsonl", b'"at_ms":1', b'"at_ms":2'),
    "a hash": _change("events.jsonl", b'"hash":"', b'"hash":"00'),
    "the first line gone": _without_line(0),
    "a line gone": _without_line(3),
    "the last line gone": _without_line(-1 + 10),
    "two lines swapped": _swapped,
    "a content": _changed_content,
    "the number of events": _change("manifest.json", b'"events":10', b'"events":11'),
    "the last hash": _change("manifest.json", b'"last_hash":"', b'"last_hash":"0'),
    "an empty journal": lambda content: content.update({"events.jsonl": b""}),
    "a second event in a line": _change("events.jsonl", b',"event":', b',"event":{},"event":'),
}


@pytest.mark.parametrize("tampering", TAMPERINGS)
async def test_a_changed_archive_is_refused_by_import_and_by_its_verifier(
    disk: SqliteStore, clock: FakeClock, tmp_path: Path, tampering: str
) -> None:
    await exported(disk, tmp_path / "s.zip")
    content = entries(tmp_path / "s.zip")
    TAMPERINGS[tampering](content)
    write(tmp_path / "forged.zip", content)
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    with pytest.raises(JournalDamaged):
        await other.import_session(tmp_path / "forged.zip", now_ms=5)
    assert await other.sessions() == []
    await other.close()
    assert check(tmp_path / "forged.zip", tmp_path) == 1


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "blobs/../../x", "blobs/short", "a\\b", "events.jsonl/x"]
)
async def test_an_unexpected_entry_is_refused(
    disk: SqliteStore, clock: FakeClock, tmp_path: Path, name: str
) -> None:
    await exported(disk, tmp_path / "s.zip")
    write(tmp_path / "forged.zip", entries(tmp_path / "s.zip") | {name: b"x"})
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    with pytest.raises(InvalidInput):
        await other.import_session(tmp_path / "forged.zip", now_ms=5)
    await other.close()


async def test_a_zip_bomb_is_refused_before_it_expands(disk: SqliteStore, tmp_path: Path) -> None:
    write(tmp_path / "bomb.zip", {"manifest.json": b"{}", "events.jsonl": b"\0" * 80_000_000})
    with pytest.raises(InvalidInput, match="unreasonable size"):
        await disk.import_session(tmp_path / "bomb.zip", now_ms=5)


async def test_what_does_not_fit_into_memory_is_refused(durable: Store, tmp_path: Path) -> None:
    limits = ArchiveLimits(journal_bytes=2000, blob_bytes=1000)
    for name in (f"blobs/{'0' * 64}", "events.jsonl"):
        write(tmp_path / "large.zip", {"manifest.json": b"{}", name: b"x" * 2001})
        with pytest.raises(InvalidInput, match="2,001 bytes") as refused:
            await durable.import_session(tmp_path / "large.zip", now_ms=5, limits=limits)
        assert "--large" in (refused.value.hint or "")


async def test_a_changed_content_leaves_no_file(disk: SqliteStore, clock: FakeClock, tmp_path: Path) -> None:
    await exported(disk, tmp_path / "s.zip")
    large = b"x" * 2_000_000
    write(
        tmp_path / "forged.zip",
        entries(tmp_path / "s.zip") | {f"blobs/{digest_bytes(large)}": large[:-1] + b"y"},
    )
    other = await SqliteStore.start(Home(tmp_path / "other"), clock=clock)
    with pytest.raises(JournalDamaged):
        await other.import_session(tmp_path / "forged.zip", now_ms=5)
    assert [path for path in other.home.blobs.rglob("*") if path.is_file()] == []
    await other.close()


async def test_an_import_that_fails_leaves_no_content(store: Store, clock: FakeClock, tmp_path: Path) -> None:
    large = b"x" * 2_000_000
    point = RestorePointMade(turn=0, manifest=digest_bytes(large))
    forged(tmp_path / "forged.zip", point, at_ms=1, blobs=(large,))

    async def prepare(session: SessionId, recorded: Sequence[RecordedEvent]) -> Arrival:
        assert await store.blob(digest_bytes(large)) == large
        clock.advance(1)
        raise InvalidInput("no files")

    with pytest.raises(InvalidInput, match="no files"):
        await store.import_session(tmp_path / "forged.zip", now_ms=5, prepare=prepare)
    with pytest.raises(JournalDamaged):
        await store.blob(digest_bytes(large))


@pytest.mark.parametrize("content", [b"", b"PK", b"no archive", b"PK\x05\x06" + b"\0" * 18])
async def test_a_file_that_is_not_an_export_is_refused(
    disk: SqliteStore, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(InvalidInput):
        await disk.import_session(tmp_path / "x.zip", now_ms=5)


@pytest.fixture(scope="module")
def whole_file() -> bytes:
    """A small export."""
    first = event_hash(GENESIS, "flipped", 1, 7, encode_event(opened()))
    body = encode_event(said(1, "one"))
    lines = [
        RawEvent(session=SessionId("flipped"), seq=1, at_ms=7, hash=first, body=encode_event(opened())),
        RawEvent(
            session=SessionId("flipped"),
            seq=2,
            at_ms=8,
            hash=event_hash(first, "flipped", 2, 8, body),
            body=body,
        ),
    ]
    manifest = ArchiveManifest(
        session=lines[0].session, events=2, last_hash=lines[1].hash.hex(), exported_ms=0
    )
    file = io.BytesIO()
    pack(file, manifest, lines, [(digest_bytes(b"a content"), b"a content")])
    return file.getvalue()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(min_value=0), byte=st.integers(0, 255))
def test_every_changed_byte_is_detected(whole_file: bytes, tmp_path: Path, position: int, byte: int) -> None:
    whole, changed = tmp_path / "whole.zip", tmp_path / "changed.zip"
    whole.write_bytes(whole_file)
    buffer = bytearray(whole_file)
    buffer[position % len(buffer)] = byte
    changed.write_bytes(buffer)
    try:
        inside = unpacked(changed)
    except HoldfastError:
        return
    everything = unpacked(whole)
    assert inside[:2] == everything[:2]
    assert inside[2] in (everything[2], [])


def unpacked(path: Path) -> tuple[list[RawEvent], list[Event], list[bytes]]:
    """Read an archive."""
    with closing(ArchiveReader(path)) as file:
        _, lines, events = file.journal()
        return lines, events, [file.blob(digest) for digest in file.digests()]


def test_a_truncated_archive_is_refused(whole_file: bytes, tmp_path: Path) -> None:
    refuse_truncated(whole_file, [*range(0, len(whole_file), 29), len(whole_file) - 1], tmp_path)


@pytest.mark.soak
def test_an_archive_truncated_at_any_byte_is_refused(whole_file: bytes, tmp_path: Path) -> None:
    refuse_truncated(whole_file, range(len(whole_file)), tmp_path)


def refuse_truncated(content: bytes, lengths: Iterable[int], folder: Path) -> None:
    path = folder / "cut.zip"
    for length in lengths:
        path.write_bytes(content[:length])
        with pytest.raises(InvalidInput):
            unpacked(path)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "link to a device"])
async def test_a_file_that_is_not_regular_is_refused_at_once(
    disk: SqliteStore, tmp_path: Path, kind: str
) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "x.zip"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    with pytest.raises(InvalidInput):
        await disk.import_session(path, now_ms=5)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
async def test_an_unsupported_compression_method_is_refused(
    disk: SqliteStore, tmp_path: Path, packing: int
) -> None:
    await exported(disk, tmp_path / "s.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w", packing) as archive:
        for name, data in entries(tmp_path / "s.zip").items():
            archive.writestr(name, data)
    with pytest.raises(InvalidInput, match="unsupported compression method"):
        await disk.import_session(tmp_path / "other.zip", now_ms=5)


def forged(path: Path, *events: Event, at_ms: int, blobs: Sequence[bytes] = ()) -> None:
    """Build a consistent archive."""
    lines: list[RawEvent] = []
    previous = GENESIS
    for seq, event in enumerate((opened(), *events), start=1):
        body = encode_event(event)
        previous = event_hash(previous, "forged", seq, at_ms, body)
        lines.append(RawEvent(session=SessionId("forged"), seq=seq, at_ms=at_ms, hash=previous, body=body))
    manifest = ArchiveManifest(
        session=SessionId("forged"), events=len(lines), last_hash=previous.hex(), exported_ms=0
    )
    with path.open("w+b") as file:
        pack(file, manifest, lines, [(digest_bytes(each), each) for each in blobs])


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("\x1b[31mred", "31mred"),
        ("\u202egnp.exe", "gnp.exe"),
        ("..", None),
        ("", None),
        ("index", None),
        ("x" * 9000, "x" * 64),
        ("日本語", "日本語"),
    ],
    ids=ascii,
)
async def test_an_invalid_name_is_dropped_on_import(
    durable: Store, tmp_path: Path, given: str, kept: str | None
) -> None:
    forged(tmp_path / "forged.zip", SessionRenamed(name=given), at_ms=1)
    session = await durable.import_session(tmp_path / "forged.zip", now_ms=5)
    assert (await durable.summary(session)).name == kept
    await durable.rebuild_index()
    assert (await durable.summary(session)).name == kept
    assert (await durable.verify(session)).is_intact


async def test_an_export_contains_the_name_of_the_session(durable: Store, tmp_path: Path) -> None:
    journal = await durable.create(opened(name="first"))
    names = []
    happened: list[Event] = [said(1), SessionRenamed(name="second"), SessionRenamed(name=None)]
    for number, event in enumerate(happened):
        await journal.append(event)
        names.append(
            (await durable.export_session(journal.session, tmp_path / f"{number}.zip", now_ms=0)).name
        )
    assert names == ["first", "second", None]


IMPLAUSIBLE: dict[str, tuple[Event, int]] = {
    "a time behind all calendars": (said(1), 10**18),
    "a time before all journals": (said(1), -1),
    "an impossible turn": (said(2**63), 0),
    "a price without end": (replied(1, cost="Infinity"), 0),
    "a price that is none": (replied(1, cost="sNaN"), 0),
    "a price that gives back": (replied(1, cost="-1"), 0),
    "a price of a billion digits": (replied(1, cost="1E-999999999"), 0),
    "tokens that are given back": (
        msgspec.structs.replace(replied(1), usage=Usage(input_tokens=-(10**15))),
        0,
    ),
    "a time that is given back": (msgspec.structs.replace(ended(1), wall_seconds=-1.0), 0),
    "a time that has no sum": (msgspec.structs.replace(ended(1), wall_seconds=1e308), 0),
}


@pytest.mark.parametrize("number", IMPLAUSIBLE)
async def test_an_absurd_number_is_refused(disk: SqliteStore, tmp_path: Path, number: str) -> None:
    event, at_ms = IMPLAUSIBLE[number]
    forged(tmp_path / "forged.zip", event, at_ms=at_ms)
    with pytest.raises(JournalDamaged):
        await disk.import_session(tmp_path / "forged.zip", now_ms=5)
    assert await disk.sessions() == []


async def test_a_program_may_have_returned_any_number(disk: SqliteStore, tmp_path: Path) -> None:
    forged(tmp_path / "forged.zip", TurnEnded(turn=1, outcome=Ok(value=2**60)), at_ms=1)
    session = await disk.import_session(tmp_path / "forged.zip", now_ms=5)
    assert TurnEnded(turn=1, outcome=Ok(value=2**60)) in [entry.event for entry in await disk.read(session)]


async def test_an_export_omits_a_damaged_blob_and_reports_it(
    disk: SqliteStore, home: Home, tmp_path: Path
) -> None:
    session = await exported(disk, tmp_path / "first.zip")
    large = digest_bytes(b"x" * 2_000_000)
    (home.blobs / large[:2] / large).write_bytes(b"y")
    manifest = await disk.export_session(session, tmp_path / "second.zip", now_ms=0)
    assert manifest.lost == (large,)
    assert entries(tmp_path / "first.zip").keys() - entries(tmp_path / "second.zip").keys() == {
        f"blobs/{large}"
    }
    assert check(tmp_path / "second.zip", tmp_path) == 0


async def test_a_damaged_blob_does_not_block_the_deletion_of_other_sessions(
    disk: SqliteStore, home: Home, tmp_path: Path
) -> None:
    await exported(disk, tmp_path / "s.zip")
    large = digest_bytes(b"x" * 2_000_000)
    (home.blobs / large[:2] / large).write_bytes(b"y")
    other = await disk.create(opened())
    await other.append(said(1), blobs=[b"content"])
    await other.release()
    await disk.delete(other.session)
    assert len(await disk.sessions()) == 2


async def test_the_verifier_reports_an_event_that_is_not_an_object(disk: SqliteStore, tmp_path: Path) -> None:
    await exported(disk, tmp_path / "s.zip")
    content = entries(tmp_path / "s.zip")
    content["events.jsonl"] = b'{"session":"x","seq":1,"at_ms":0,"hash":"00","event":[]}\n'
    write(tmp_path / "forged.zip", content)
    assert check(tmp_path / "forged.zip", tmp_path) == 2


def test_the_verifier_is_short_and_has_no_dependencies() -> None:
    import holdfast.store

    source = (Path(holdfast.store.__file__).parent / "archive" / "verify_main.py").read_text()
    assert len(source.splitlines()) <= 80
    imports = {
        line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import", "from"))
    }
    assert imports <= set(sys.stdlib_module_names)
    assert "holdfast" not in source.split('"""')[2]
    compile(io.StringIO(source).read(), "verify.py", "exec")


def test_an_archive_that_rewinds_without_end_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "rewinds.zip"
    events: list[Event] = [opened(), *(said(turn) for turn in range(1, 2000))]
    events += [SessionRewound(seq=1990, turn=1, principal=PERSON)] * 1000
    lines, previous = [], GENESIS
    for seq, event in enumerate(events, start=1):
        body = encode_event(event)
        previous = event_hash(previous, "evil", seq, 1, body)
        lines.append(RawEvent(session=SessionId("evil"), seq=seq, at_ms=1, hash=previous, body=body))
    manifest = ArchiveManifest(
        session=SessionId("evil"), events=len(lines), last_hash=previous.hex(), exported_ms=1
    )
    with path.open("wb") as file:
        pack(file, manifest, lines, ())
    with closing(ArchiveReader(path)) as reader, pytest.raises(InvalidInput, match="rewinds more often"):
        reader.journal()
