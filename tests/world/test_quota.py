"""A workspace never grows beyond its quota, even if other processes write into it."""

from pathlib import Path

import pytest

from holdfast.core.errors import InvalidInput, QuotaExceeded
from holdfast.world import FolderWorld, MemoryWorld, Quota, StagedWorld


def test_exactly_the_quota_may_be_used(tmp_path: Path) -> None:
    for world in (
        FolderWorld(tmp_path, quota=Quota(bytes=10, files=2)),
        MemoryWorld(quota=Quota(bytes=10, files=2)),
    ):
        world.write("a", b"12345")
        world.write("b", b"12345")
        with pytest.raises(QuotaExceeded):
            world.append("a", b"6")
        with pytest.raises(QuotaExceeded):
            world.write("c", b"")
        world.write("a", b"1")
        world.append("b", b"6789")
        world.delete("a")
        world.write("c", b"1")
        assert world.files() == ("b", "c")


def test_changes_by_other_processes_count_towards_the_quota(tmp_path: Path) -> None:
    world = FolderWorld(tmp_path, quota=Quota(bytes=10))
    world.write("a", b"12345")
    (tmp_path / "theirs").write_bytes(b"12345")
    world.recount()
    with pytest.raises(QuotaExceeded):
        world.write("b", b"1")
    (tmp_path / "theirs").unlink()
    world.write("b", b"1")


def test_a_quota_that_is_already_passed_still_lets_files_shrink(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(b"x" * 100)
    world = FolderWorld(tmp_path, quota=Quota(bytes=10))
    world.write("big", b"x" * 50)
    world.delete("big")
    world.write("small", b"x")
    assert world.files() == ("small",)


def test_a_commit_past_the_quota_changes_nothing(tmp_path: Path) -> None:
    world = FolderWorld(tmp_path, quota=Quota(files=2))
    staged = StagedWorld(world)
    staged.write("a", b"")
    staged.write("b", b"")
    world.write("came first", b"")
    with pytest.raises(QuotaExceeded):
        staged.commit()
    assert world.files() == ("came first",)


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_staged_changes_count_towards_the_quota(tmp_path: Path, kind: str) -> None:
    quota = Quota(bytes=10, files=2)
    base = MemoryWorld(quota=quota) if kind == "memory" else FolderWorld(tmp_path, quota=quota)
    base.write("old", b"12345")
    staged = StagedWorld(base)
    staged.write("new", b"12345")
    for path, content in (("more", b""), ("new", b"123456"), ("old", b"123456")):
        with pytest.raises(QuotaExceeded):
            staged.write(path, content)
    staged.write("new", b"1234")
    staged.write("old", b"123456")
    staged.delete("new")
    staged.write("other", b"1234")
    staged.reject(["other"])
    staged.write("third", b"1234")
    staged.commit()
    assert base.files() == ("old", "third")


def test_a_negative_quota_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Quota(bytes=-1)
