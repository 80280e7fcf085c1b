"""After any history of changes, a restore point restores the workspace byte by byte."""

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test
from tests.support.fork_server import forked_python

from holdfast.core import FakeClock, digest_bytes
from holdfast.core.errors import JournalDamaged, PathRefused
from holdfast.store import BlobInfo, Hasher, Home, MemoryStore, open_store
from holdfast.world import RestorePoints
from holdfast.world.paths.open_beneath import BeneathRoot
from holdfast.world.restore_points import save as keeping_module
from holdfast.world.restore_points.scan import scan_tree

Everything = dict[str, tuple[str, int, bytes]]


class Blobs(MemoryStore):
    """A store in memory that tells how much it holds."""

    def __init__(self) -> None:
        super().__init__(clock=FakeClock())

    @property
    def kept_bytes(self) -> int:
        return sum(map(len, self._blobs.values()))

    def points(self, root: Path, *, last: str | None = None, cache: Path | None = None) -> RestorePoints:
        return RestorePoints(root, store=self, last=last, cache=cache)


def everything(folder: Path) -> Everything:
    found: Everything = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode & 0o777
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", 0, os.fsencode(os.readlink(path)))
        elif path.is_dir():
            found[name] = ("folder", mode, b"")
        elif path.is_file():
            found[name] = ("file", mode, path.read_bytes())
    return found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


async def test_every_kind_of_change_is_undone(root: Path) -> None:
    blobs = Blobs()
    (root / "d").mkdir()
    (root / "d" / "changed").write_bytes(b"old")
    (root / "d" / "gone").write_bytes(b"gone")
    (root / "becomes-folder").write_bytes(b"file")
    (root / "folder" / "deep").mkdir(parents=True)
    (root / "folder" / "deep" / "file").write_bytes(b"deep")
    (root / "run.sh").write_bytes(b"#!/bin/sh")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("d/changed")
    (root / "empty").mkdir(mode=0o700)
    before = everything(root)
    points = blobs.points(root)
    point = await points.make()

    (root / "d" / "changed").write_bytes(b"new")
    (root / "d" / "gone").unlink()
    (root / "becomes-folder").unlink()
    (root / "becomes-folder").mkdir()
    (root / "becomes-folder" / "x").write_bytes(b"x")
    shutil.rmtree(root / "folder")
    (root / "folder").write_bytes(b"a file")
    (root / "run.sh").chmod(0o600)
    (root / "link").unlink()
    (root / "link").symlink_to("/etc/passwd")
    (root / "empty").rmdir()
    os.mkfifo(root / "pipe")
    after = everything(root)

    expected = await points.diff(point.manifest)
    kept = blobs.kept_bytes
    preview = await points.preview(point.manifest)
    assert blobs.kept_bytes == kept
    restored = await points.restore(point.manifest)
    assert everything(root) == before
    assert not (root / "pipe").exists()
    assert {(change.path, change.kind) for change in expected} == {
        ("becomes-folder", "deleted"),
        ("becomes-folder/x", "created"),
        ("d/changed", "modified"),
        ("d/gone", "deleted"),
        ("folder", "created"),
        ("folder/deep/file", "deleted"),
        ("link", "modified"),
        ("run.sh", "modified"),
    }
    assert (restored.changes, restored.left) == (preview.changes, ())
    assert {change.path for change in preview.changes} == {change.path for change in expected}
    await points.restore(restored.before)
    assert everything(root) == after


async def test_a_turn_that_touched_nothing_keeps_nothing(root: Path) -> None:
    blobs = Blobs()
    for number in range(50):
        (root / f"f{number}").write_bytes(b"content" * number)
    points = blobs.points(root)
    first = await points.make()
    kept = blobs.kept_bytes
    second = await points.make()
    assert second.manifest == first.manifest
    assert second.changes == ()
    assert blobs.kept_bytes == kept


async def test_a_small_change_in_a_large_workspace_costs_a_small_blob(root: Path) -> None:
    blobs = Blobs()
    for number in range(300):
        (root / f"f{number}").write_bytes(b"%d" % number)
    points = blobs.points(root)
    await points.make()
    kept = blobs.kept_bytes
    (root / "f7").write_bytes(b"changed")
    point = await points.make()
    assert [(change.path, change.kind) for change in point.changes] == [("f7", "modified")]
    assert blobs.kept_bytes - kept < 500


async def test_a_new_process_continues_from_the_last_point(root: Path, tmp_path: Path) -> None:
    blobs = Blobs()
    (root / "a").write_bytes(b"1")
    cache = tmp_path / "cache" / "signs"
    points = blobs.points(root, cache=cache)
    first = await points.make()
    points.save()
    (root / "b").write_bytes(b"2")
    for again in (
        blobs.points(root, last=first.manifest, cache=cache),
        blobs.points(root, last=first.manifest),
    ):
        assert [change.path for change in (await again.make()).changes] == ["b"]
    cache.write_bytes(b"damaged")
    assert (await blobs.points(root, last=first.manifest, cache=cache).make()).changes


async def test_a_fork_is_the_same_point_in_another_folder_and_its_next_point_reads_nothing_again(
    root: Path, tmp_path: Path
) -> None:
    blobs = Blobs()
    (root / "d").mkdir()
    for number in range(20):
        (root / "d" / f"f{number}").write_bytes(b"%d" % number)
    (root / "link").symlink_to("d")
    point = await blobs.points(root).make()
    (tmp_path / "fork").mkdir()
    fork = blobs.points(tmp_path / "fork", cache=tmp_path / "signs")
    await fork.fill(point.manifest)
    assert everything(tmp_path / "fork") == everything(root)
    fork.save()
    again = blobs.points(tmp_path / "fork", last=point.manifest, cache=tmp_path / "signs")
    assert (await again.make()).manifest == point.manifest
    (tmp_path / "fork" / "d" / "f7").write_bytes(b"changed in the fork")
    assert [change.path for change in (await again.make()).changes] == ["d/f7"]
    assert (root / "d" / "f7").read_bytes() == b"7"


async def test_a_large_file_is_kept_in_pieces_and_an_append_costs_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping_module, "CHUNK_BYTES", 1000)
    blobs = Blobs()
    (root / "log").write_bytes(os.urandom(10_500))
    points = blobs.points(root)
    first = await points.make()
    before = everything(root)
    kept = blobs.kept_bytes
    with (root / "log").open("ab") as file:
        file.write(b"more")
    point = await points.make()
    assert point.changes[0].after == digest_bytes((root / "log").read_bytes())
    assert blobs.kept_bytes - kept < 2500
    await points.restore(first.manifest)
    assert everything(root) == before


async def test_a_file_that_grows_while_it_is_read_is_kept_as_long_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping_module, "CHUNK_BYTES", 10)
    log = root / "log"
    log.write_bytes(b"x" * 25)

    class Measure(keeping_module._HashOnlyIngest):
        def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
            if log.stat().st_size < 1000:
                log.write_bytes(log.read_bytes() + b"y" * 10)
            return super().take(descriptor, start, length, whole=whole)

    @asynccontextmanager
    async def growing() -> AsyncIterator[Measure]:
        yield Measure()

    looks = list(scan_tree(BeneathRoot(root)))
    (entry,) = (await keeping_module.SnapshotWriter(BeneathRoot(root), growing).entries(looks)).values()
    assert (entry.size, entry.fingerprint) == (25, digest_bytes(b"x" * 25))


async def test_a_file_that_the_system_does_not_let_us_read_is_one_that_was_not_kept(root: Path) -> None:
    (root / "theirs").write_bytes(b"x")

    class Denied(keeping_module._HashOnlyIngest):
        def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
            raise PermissionError

    @asynccontextmanager
    async def denied() -> AsyncIterator[Denied]:
        yield Denied()

    looks = list(scan_tree(BeneathRoot(root)))
    (entry,) = (await keeping_module.SnapshotWriter(BeneathRoot(root), denied).entries(looks)).values()
    assert (entry.kind, entry.size) == ("unkept", 1)


@pytest.mark.parametrize("replaced", ["above/ws", "above"])
async def test_a_link_in_the_place_of_the_folder_or_of_one_above_it_leads_nowhere(
    tmp_path: Path, replaced: str
) -> None:
    root = tmp_path / "above" / "ws"
    root.mkdir(parents=True)
    points = Blobs().points(root)
    (root / "a.txt").write_text("one")
    first = await points.make()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "ws").mkdir(parents=True)
    (elsewhere / "precious").write_text("precious")
    (elsewhere / "ws" / "precious").write_text("precious")
    before = everything(elsewhere)
    (tmp_path / replaced).rename(tmp_path / "moved")
    (tmp_path / replaced).symlink_to(elsewhere)
    for doing in (points.make(), points.preview(first.manifest), points.restore(first.manifest)):
        with pytest.raises(PathRefused):
            await doing
    with pytest.raises(PathRefused):
        await Blobs().points(root).make()
    assert everything(elsewhere) == before


async def test_names_that_are_not_unicode_are_restored(root: Path) -> None:
    blobs = Blobs()
    names = [b"bad\xff", b"back\\slash", b"new\nline", b"\\udc80", "ü".encode()]
    for name in names:
        Path(os.fsdecode(os.path.join(os.fsencode(root), name))).write_bytes(name)
    points = blobs.points(root)
    point = await points.make()
    for path in root.iterdir():
        path.unlink()
    await points.restore(point.manifest)
    assert sorted(os.listdir(os.fsencode(root))) == sorted(names)


async def test_what_cannot_be_stored_is_reported_and_left_alone(root: Path) -> None:
    blobs = Blobs()
    os.mkfifo(root / "pipe")
    points = blobs.points(root)
    point = await points.make()
    assert point.skipped == ("pipe",)
    (root / "new").write_bytes(b"")
    await points.restore(point.manifest)
    assert os.listdir(root) == ["pipe"]


async def test_a_file_that_is_too_large_is_reported_and_the_rest_is_stored(root: Path) -> None:
    points = RestorePoints(root, store=Blobs(), max_new_bytes=100)
    await points.make()
    with (root / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    (root / "small").write_bytes(b"x" * 60)
    (root / "large").write_bytes(b"y" * 61)
    point = await points.make()
    assert point.unkept == point.skipped == ("large", "sparse")
    assert [change.path for change in point.changes] == ["large", "small", "sparse"], "a turn made them all"
    assert await points.unkept(point.manifest) == ("large", "sparse")
    again = await points.make()
    assert (again.changes, again.unkept, again.skipped) == ((), (), ("large", "sparse"))
    os.truncate(root / "sparse", 1 << 39)
    (root / "small").write_bytes(b"z" * 160)
    changed = await points.make()
    assert [change.path for change in changed.changes] == ["small", "sparse"]
    assert changed.unkept == ("sparse",), "what was kept may grow by as much as a new file may have"


async def test_a_file_that_was_not_stored_is_neither_removed_nor_replaced(root: Path) -> None:
    blobs = Blobs()
    points = RestorePoints(root, store=blobs, max_new_bytes=100)
    for name in ("becomes-large", "becomes-a-folder"):
        (root / name).write_bytes(b"old")
    first = (await points.make()).manifest
    (root / "becomes-a-folder").unlink()
    for folder in ("becomes-a-folder", "new"):
        (root / folder).mkdir()
        (root / folder / "beside").write_bytes(b"")
    larges = ("becomes-a-folder/large", "becomes-large", "new/large")
    for path in larges:
        (root / path).write_bytes(b"y" * 1000)
    second = await points.make()
    assert second.unkept == larges
    preview = await points.preview(first)
    restored = await points.restore(first)
    assert preview.left == restored.left == larges
    assert [change.path for change in restored.changes] == ["becomes-a-folder/beside", "new/beside"]
    assert preview.changes == restored.changes
    assert {path for path, (kind, *_) in everything(root).items() if kind == "file"} == set(larges)
    back = await points.restore(second.manifest)
    assert back.left == ()
    assert (root / "new" / "beside").exists()
    for path in larges:
        (root / path).unlink()
    assert (await points.restore(second.manifest)).left == larges, "and what is gone is report"
    filled = root.with_name("filled")
    filled.mkdir()
    await RestorePoints(filled, store=blobs).fill(second.manifest)
    assert set(everything(filled)) == {"becomes-a-folder", "becomes-a-folder/beside", "new", "new/beside"}


async def test_without_a_limit_a_file_that_was_too_large_is_stored_next_time(root: Path) -> None:
    blobs, cache = Blobs(), root.with_name("signs")
    first = RestorePoints(root, store=blobs, max_new_bytes=1, cache=cache)
    (root / "large").write_bytes(b"large")
    os.utime(root / "large", (1, 1))
    made = await first.make()
    first.save()
    points = RestorePoints(root, store=blobs, last=made.manifest, cache=cache, max_new_bytes=None)
    point = await points.make()
    assert (point.unkept, point.skipped) == ((), ())
    (root / "large").unlink()
    await points.restore(point.manifest)
    assert (root / "large").read_bytes() == b"large"


async def test_scratch_files_of_killed_writers_are_removed_and_never_stored(root: Path) -> None:
    blobs = Blobs()
    (root / ".holdfast-999999999-abc").write_bytes(b"half")
    point = await blobs.points(root).make()
    assert point.changes == ()
    assert os.listdir(root) == []


async def test_the_way_back_stays_short_over_many_points(root: Path) -> None:
    blobs = Blobs()
    for number in range(10):
        (root / f"f{number}").write_bytes(b"")
    points = blobs.points(root)
    trees: dict[str, Everything] = {}
    for number in range(150):
        (root / "f0").write_bytes(b"%d" % number)
        trees[(await points.make()).manifest] = everything(root)
    assert len(trees) == 150
    for manifest, tree in list(trees.items())[::30]:
        await points.restore(manifest)
        assert everything(root) == tree


async def test_a_damaged_manifest_changes_nothing(root: Path) -> None:
    blobs = Blobs()
    (root / "a").write_bytes(b"1")
    points = blobs.points(root)
    await points.make()
    digest = await blobs.put_blob(b"not a manifest")
    with pytest.raises(JournalDamaged):
        await points.restore(digest)
    assert (root / "a").read_bytes() == b"1"


@pytest.mark.parametrize("step", [0, 1, 4, 9])
async def test_a_process_killed_while_it_keeps_contents_leaves_nothing_that_is_wrong(
    root: Path, tmp_path: Path, step: int
) -> None:
    for number in range(12):
        (root / f"f{number}").write_bytes(bytes([number]) * 900_000)
    child = forked_python("-m", "tests.world.crashing_point", str(tmp_path), str(step))
    died = await asyncio.create_subprocess_exec(*child, cwd=Path(__file__).parents[2])
    assert await died.wait() == -signal.SIGKILL
    store = await open_store(Home(tmp_path / "home"), clock=FakeClock())
    try:
        assert not list((tmp_path / "home" / "blobs").glob(".taken-*")), "drafts are collected"
        points = RestorePoints(root, store=store)
        before = everything(root)
        point = await points.make()
        for path in root.iterdir():
            path.write_bytes(b"changed")
        await points.restore(point.manifest)
        assert everything(root) == before
    finally:
        await store.close()


async def test_a_damaged_blob_is_not_restored(root: Path, tmp_path: Path) -> None:
    for number in range(12):
        (root / f"f{number}").write_bytes(bytes([number]) * 900_000)
    store = await open_store(Home(tmp_path / "home"), clock=FakeClock())
    try:
        points = RestorePoints(root, store=store)
        point = await points.make()
        rotten = max((tmp_path / "home" / "blobs").glob("*/*"))
        rotten.write_bytes(b"x" * rotten.stat().st_size)
        (tmp_path / "fork").mkdir()
        with pytest.raises(JournalDamaged):
            await RestorePoints(tmp_path / "fork", store=store).fill(point.manifest)
        assert b"x" not in {path.read_bytes()[:1] for path in (tmp_path / "fork").iterdir()}
    finally:
        await store.close()


NAMES = st.sampled_from(["a", "b", "c"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"1", b"2", b"longer content"])


class Histories(RuleBasedStateMachine):
    """Changes made by anybody, restore points in between, and rewinding to any of them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="histories-"))
        self.root = self.folder / "ws"
        self.root.mkdir()
        self.blobs = Blobs()
        self.points = self.blobs.points(self.root)
        self.made: list[tuple[str, Everything]] = []

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def _cleared(self, path: str) -> Path:
        place = self.root / path
        for above in [*list(place.parents)[::-1], place]:
            if above.is_relative_to(self.root) and (above.is_symlink() or above.is_file()):
                above.unlink()
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    @rule(path=PATHS, content=CONTENTS, mode=st.sampled_from([0o644, 0o755, 0o600]))
    def write(self, path: str, content: bytes, mode: int) -> None:
        place = self._cleared(path)
        if place.is_dir():
            shutil.rmtree(place)
        place.write_bytes(content)
        place.chmod(mode)

    @rule(path=PATHS)
    def make_folder(self, path: str) -> None:
        self._cleared(path).mkdir(exist_ok=True)

    @rule(path=PATHS, to=st.sampled_from(["a", "../x", "/etc", "b/c"]))
    def link(self, path: str, to: str) -> None:
        place = self._cleared(path)
        if place.is_dir():
            shutil.rmtree(place)
        place.symlink_to(to)

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        place = self.root / path
        if place.is_symlink() or place.is_file():
            place.unlink()
        elif place.is_dir():
            shutil.rmtree(place)

    @rule()
    def make(self) -> None:
        point = asyncio.run(self.points.make())
        self.made.append((point.manifest, everything(self.root)))

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def preview(self, data: st.DataObject) -> None:
        manifest, _ = data.draw(st.sampled_from(self.made))
        expected = asyncio.run(self.points.preview(manifest))
        asyncio.run(self.points.diff(manifest))
        assert asyncio.run(self.points.preview(manifest)) == expected

    @rule()
    def restart(self) -> None:
        last = asyncio.run(self.points.make()).manifest
        self.points = self.blobs.points(self.root, last=last)

    @precondition(lambda self: self.made)
    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        manifest, tree = data.draw(st.sampled_from(self.made))
        now = everything(self.root)
        restored = asyncio.run(self.points.restore(manifest))
        assert everything(self.root) == tree
        asyncio.run(self.points.restore(restored.before))
        assert everything(self.root) == now
        asyncio.run(self.points.restore(manifest))


def histories(examples: int, steps: int) -> None:
    bounds = settings(max_examples=examples, stateful_step_count=steps, deadline=None, database=None)
    run_state_machine_as_test(Histories, settings=bounds)


def test_after_rewinding_in_any_history_the_tree_is_byte_equal() -> None:
    histories(examples=10, steps=15)


@pytest.mark.soak
def test_after_rewinding_in_very_many_histories_the_tree_is_byte_equal() -> None:
    histories(examples=2000, steps=40)
