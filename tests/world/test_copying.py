"""Files go in and out byte by byte, replace nothing unasked, and follow no link."""

from pathlib import Path

import pytest

from holdfast.core.errors import PathRefused
from holdfast.world import FolderWorld, MemoryWorld, World, copy_in, copy_out


@pytest.fixture(params=["memory", "folder"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    (tmp_path / "ws").mkdir()
    return MemoryWorld() if request.param == "memory" else FolderWorld(tmp_path / "ws")


def test_a_file_goes_in_and_out_with_its_mode(world: World, tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"\x00\xff")
    (tmp_path / "run").chmod(0o755)
    (change,) = copy_in(world, tmp_path / "run", "d/run")
    assert (change.path, change.kind) == ("d/run", "created")
    copy_out(world, "d/run", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"\x00\xff"
    assert (tmp_path / "back").stat().st_mode & 0o777 == 0o755


def test_a_folder_goes_in_and_out_without_its_links(world: World, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a").write_bytes(b"1")
    (tmp_path / "in" / ".b").write_bytes(b"2")
    (tmp_path / "in" / "link").symlink_to("/etc/passwd")
    copy_in(world, tmp_path / "in", "data")
    assert world.files() == ("data/.b", "data/sub/a")
    copy_out(world, "data", tmp_path / "out")
    assert (tmp_path / "out" / "sub" / "a").read_bytes() == b"1"
    copy_out(world, ".", tmp_path / "all")
    assert (tmp_path / "all" / "data" / ".b").read_bytes() == b"2"


def test_nothing_is_replaced_unasked(world: World, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"new")
    (tmp_path / "in" / "b").write_bytes(b"new")
    world.write("d/b", b"old")
    for source, path in ((tmp_path / "in", "d"), (tmp_path / "in" / "b", "d/b")):
        with pytest.raises(FileExistsError):
            copy_in(world, source, path)
    assert world.files() == ("d/b",)
    copy_in(world, tmp_path / "in", "d", overwrite=True)
    assert world.read("d/b") == b"new"
    with pytest.raises(FileExistsError):
        copy_out(world, "d/b", tmp_path / "in" / "b")


def test_a_link_at_the_destination_is_replaced_and_not_followed(world: World, tmp_path: Path) -> None:
    world.write("a", b"content")
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("precious")
    with pytest.raises(FileExistsError):
        copy_out(world, "a", tmp_path / "link")
    copy_out(world, "a", tmp_path / "link", overwrite=True)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "link").read_bytes() == b"content"


def test_what_leads_out_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    with pytest.raises(PathRefused):
        copy_in(world, tmp_path / "f", "../x")
    with pytest.raises(PathRefused):
        copy_out(world, "../f", tmp_path / "g")
    with pytest.raises(FileNotFoundError):
        copy_out(world, "missing", tmp_path / "g")
