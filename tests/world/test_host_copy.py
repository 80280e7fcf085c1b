"""Files are copied in and out byte by byte, replace nothing by default, and follow no symlink."""

from pathlib import Path

import pytest

from holdfast.core.errors import PathRefused
from holdfast.world import FolderWorld, MemoryWorld, StagedWorld, World


@pytest.fixture(params=["memory", "folder", "staged"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    (tmp_path / "ws").mkdir()
    folder = FolderWorld(tmp_path / "ws")
    worlds: dict[str, World] = {"memory": MemoryWorld(), "folder": folder, "staged": StagedWorld(folder)}
    return worlds[request.param]


def test_a_file_goes_in_and_out_with_its_mode(world: World, tmp_path: Path) -> None:
    (tmp_path / "run").write_bytes(b"\x00\xff")
    (tmp_path / "run").chmod(0o755)
    (change,) = world.copy_in(tmp_path / "run", "d/run")
    assert (change.path, change.kind) == ("d/run", "created")
    world.copy_out("d/run", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == b"\x00\xff"
    assert (tmp_path / "back").stat().st_mode & 0o777 == 0o755


def test_a_folder_goes_in_and_out_without_its_links(world: World, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "a").write_bytes(b"1")
    (tmp_path / "in" / ".b").write_bytes(b"2")
    (tmp_path / "in" / "link").symlink_to("/etc/passwd")
    world.copy_in(tmp_path / "in", "data")
    assert world.files() == ("data/.b", "data/sub/a")
    world.copy_out("data", tmp_path / "out")
    assert (tmp_path / "out" / "sub" / "a").read_bytes() == b"1"
    world.copy_out(".", tmp_path / "all")
    assert (tmp_path / "all" / "data" / ".b").read_bytes() == b"2"


def test_nothing_is_replaced_unasked(world: World, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"new")
    (tmp_path / "in" / "b").write_bytes(b"new")
    world.write("d/b", b"old")
    for source, path in ((tmp_path / "in", "d"), (tmp_path / "in" / "b", "d/b")):
        with pytest.raises(FileExistsError):
            world.copy_in(source, path)
    assert world.files() == ("d/b",)
    world.copy_in(tmp_path / "in", "d", overwrite=True)
    assert world.read("d/b") == b"new"
    with pytest.raises(FileExistsError):
        world.copy_out("d/b", tmp_path / "in" / "b")


def test_a_link_at_the_destination_is_replaced_and_not_followed(world: World, tmp_path: Path) -> None:
    world.write("a", b"content")
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "link").symlink_to("precious")
    with pytest.raises(FileExistsError):
        world.copy_out("a", tmp_path / "link")
    world.copy_out("a", tmp_path / "link", overwrite=True)
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert (tmp_path / "link").read_bytes() == b"content"


def test_a_path_that_leads_out_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1")
    with pytest.raises(PathRefused):
        world.copy_in(tmp_path / "f", "../x")
    with pytest.raises(PathRefused):
        world.copy_out("../f", tmp_path / "g")
    with pytest.raises(FileNotFoundError):
        world.copy_out("missing", tmp_path / "g")
