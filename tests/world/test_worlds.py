"""One contract, every world: memory, folder (both ways of opening) and staged over each of them."""

import errno
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.core import digest_bytes
from holdfast.core.errors import InvalidInput, PathRefused
from holdfast.world import FolderWorld, MemoryWorld, StagedWorld, World
from holdfast.world.paths.open_beneath import has_openat2, open_by_kernel, open_by_walk

OPENERS = {"walk": open_by_walk} | ({"kernel": open_by_kernel} if has_openat2() else {})
MAKERS: dict[str, Callable[[Path], World]] = {
    "memory": lambda folder: MemoryWorld(),
    "staged over memory": lambda folder: StagedWorld(MemoryWorld()),
    "staged over folder": lambda folder: StagedWorld(FolderWorld(folder)),
    **{
        f"folder by {name}": (lambda folder, opener=opener: FolderWorld(folder, opener=opener))  # type: ignore[misc]
        for name, opener in OPENERS.items()
    },
}


@pytest.fixture(params=MAKERS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return MAKERS[request.param](tmp_path)


def test_a_written_file_can_be_read(world: World) -> None:
    change = world.write("d/e/f.txt", b"\x00\xff text")
    assert world.read("d/e/f.txt") == b"\x00\xff text"
    assert (change.path, change.kind, change.before) == ("d/e/f.txt", "created", None)
    assert change.after == digest_bytes(b"\x00\xff text")


def test_text_is_written_as_utf_8(world: World) -> None:
    change = world.write("d/text", "grün\n")
    assert world.read("d/text") == "grün\n".encode()
    assert change.after == digest_bytes("grün\n".encode())
    with pytest.raises(UnicodeEncodeError):
        world.write("broken", "\ud800")
    assert not world.exists("broken")


def test_a_second_write_is_a_modification_and_keeps_the_mode(world: World) -> None:
    world.write("run.sh", b"one", mode=0o755)
    change = world.write("run.sh", b"two")
    assert change.after == digest_bytes(b"two")
    assert world.stat("run.sh").mode == 0o755


@pytest.mark.parametrize("given", ["./x", "a/../x", "/workspace/x", "/app/x", "a//..//x"])
def test_one_file_has_many_spellings(world: World, given: str) -> None:
    world.write("x", b"1")
    assert world.read(given) == b"1"
    assert world.resolve(given) == "x"


@pytest.mark.parametrize("old", [b"", b"content"])
def test_a_write_that_must_not_overwrite_leaves_even_an_empty_file_alone(world: World, old: bytes) -> None:
    world.write("a", old)
    with pytest.raises(FileExistsError):
        world.write("a", b"new", overwrite=False)
    assert world.read("a") == old
    world.write("b", b"new", overwrite=False)
    assert world.read("b") == b"new"


def test_a_path_with_the_prefix_of_a_folder_is_not_in_it(world: World) -> None:
    for path in ("a/x", "ab/x", "a.txt"):
        world.write(path, b"")
    world.delete("a", recursive=True)
    assert list(world.files()) == ["a.txt", "ab/x"]
    world.move("ab", "c")
    assert list(world.files()) == ["a.txt", "c/x"]


def test_a_missing_file_is_not_found(world: World) -> None:
    for operation in (world.read, world.stat, world.delete, world.entries):
        with pytest.raises(FileNotFoundError):
            operation("missing")
        with pytest.raises(FileNotFoundError):
            operation("missing/deeper")
    assert not world.exists("missing")
    assert world.fingerprint("missing") == ""


def test_a_file_is_not_a_folder_and_a_folder_is_not_a_file(world: World) -> None:
    world.write("d/f", b"1")
    with pytest.raises(IsADirectoryError):
        world.read("d")
    with pytest.raises(IsADirectoryError):
        world.write("d", b"2")
    for operation in (world.entries, world.make_folder):
        with pytest.raises(NotADirectoryError):
            operation("d/f")
    with pytest.raises(NotADirectoryError):
        world.write("d/f/g", b"3")
    assert not world.exists("d/f/g")
    assert world.fingerprint("d") == ""


def test_appending_makes_or_lengthens_a_file(world: World) -> None:
    assert world.append("log", b"one\n").kind == "created"
    change = world.append("log", b"two\n")
    assert world.read("log") == b"one\ntwo\n"
    assert change.after == digest_bytes(b"one\ntwo\n")


def test_a_folder_lists_its_direct_entries(world: World) -> None:
    world.write("a/b/c.txt", b"123")
    world.make_folder("a/empty/deep")
    world.make_folder("a/empty")
    assert [(each.path, each.kind, each.size) for each in world.entries("a")] == [
        ("a/b", "folder", 0),
        ("a/empty", "folder", 0),
    ]
    assert [(each.path, each.size) for each in world.entries("a/b")] == [("a/b/c.txt", 3)]
    assert [each.path for each in world.entries()] == ["a"]
    assert world.stat(".").kind == "folder"


def test_lists_are_sorted_files_and_dots_must_be_asked_for(world: World) -> None:
    for path in ("b.py", "a/x.py", "a/b/y.py", "a/z.txt", ".env", ".github/x", "a/.hidden/k.py"):
        world.write(path, b"")
    assert world.list() == ("a/b/y.py", "a/x.py", "a/z.txt", "b.py")
    assert world.list("*.py") == ("b.py",)
    assert world.list("**/*.py") == ("a/b/y.py", "a/x.py", "b.py")
    assert world.list("a/*") == ("a/x.py", "a/z.txt")
    assert world.list("a/**") == ("a/b/y.py", "a/x.py", "a/z.txt")
    assert world.list("a/[xz].*") == ("a/x.py", "a/z.txt")
    assert world.list(".*") == (".env",)
    assert world.list("nothing/**/*") == ()
    assert world.files() == (".env", ".github/x", "a/.hidden/k.py", "a/b/y.py", "a/x.py", "a/z.txt", "b.py")
    for bad in ("", "/etc/*", "../*", "a/../../*", "a\\*", "[z-a]"):
        with pytest.raises(InvalidInput):
            world.list(bad)


@pytest.fixture
def low_recursion_limit() -> Iterator[int]:
    """Far below the default: opening by walk takes time that is quadratic in the depth."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(300)
    yield 300
    sys.setrecursionlimit(before)


def test_folders_may_be_nested_deeper_than_the_recursion_limit(
    world: World, low_recursion_limit: int
) -> None:
    deep = "/".join(["d"] * (low_recursion_limit + 50))
    world.write(f"{deep}/leaf", b"x")
    assert world.read(f"{deep}/leaf") == b"x"
    world.delete("d", recursive=True)
    assert world.entries() == ()


def test_a_file_is_deleted_and_its_folder_stays(world: World) -> None:
    world.write("d/f", b"1")
    (change,) = world.delete("d/f")
    assert (change.kind, change.path) == ("deleted", "d/f")
    assert not world.exists("d/f")
    assert world.exists("d")
    world.delete("d")
    assert not world.exists("d")


def test_a_folder_with_something_in_it_is_deleted_only_when_asked_for(world: World) -> None:
    world.write("d/a", b"1")
    world.write("d/e/b", b"2")
    with pytest.raises(OSError) as caught:
        world.delete("d")
    assert caught.value.errno == errno.ENOTEMPTY
    assert world.read("d/a") == b"1"
    changes = world.delete("d", recursive=True)
    assert [change.path for change in changes] == ["d/a", "d/e/b"]
    assert not world.exists("d")
    assert world.files() == ()
    world.write("d/e/b", b"2")
    world.delete("d/e", recursive=True)
    assert world.exists("d")
    world.write("d/a", b"again")
    assert world.entries("d")[0].path == "d/a"


def test_the_workspace_itself_is_neither_written_nor_removed(world: World) -> None:
    world.write("kept", b"1")
    for given in (".", "./", "a/..", "/workspace", "/app/"):
        with pytest.raises((PathRefused, IsADirectoryError)):
            world.write(given, b"")
        with pytest.raises(PathRefused):
            world.delete(given, recursive=True)
    for operation in (world.write, world.append):
        with pytest.raises(PathRefused):
            operation("", b"")
    assert world.files() == ("kept",)


def test_a_file_moves_and_replaces_what_was_there(world: World) -> None:
    world.write("a", b"1", mode=0o755)
    world.write("b", b"2")
    world.move("a", "b")
    assert (world.exists("a"), world.read("b"), world.stat("b").mode) == (False, b"1", 0o755)
    world.move("b", "new/folder/c")
    assert world.files() == ("new/folder/c",)


def test_a_folder_moves_with_everything_in_it(world: World) -> None:
    world.write("d/a", b"1")
    world.write("d/e/b", b"2")
    world.make_folder("d/empty/deep")
    changes = world.move("d", "f")
    assert world.exists("f/empty/deep")
    assert world.files() == ("f/a", "f/e/b")
    assert sorted((change.kind, change.path) for change in changes) == [
        ("created", "f/a"),
        ("created", "f/e/b"),
        ("deleted", "d/a"),
        ("deleted", "d/e/b"),
    ]
    with pytest.raises(OSError) as caught:
        world.move("f", "f/inside/deep")
    assert caught.value.errno == errno.EINVAL
    assert not world.exists("f/inside")
    with pytest.raises(FileNotFoundError):
        world.move("d", "g")


def test_a_fingerprint_names_content_and_place(world: World) -> None:
    empty = world.fingerprint()
    world.write("a", b"1")
    one = world.fingerprint()
    assert world.fingerprint("a") == digest_bytes(b"1")
    world.write("a", b"2")
    assert len({empty, one, world.fingerprint()}) == 3
    world.write("a", b"1")
    assert world.fingerprint() == one
    world.move("a", "b")
    assert world.fingerprint() != one
    world.delete("b")
    assert world.fingerprint() == empty


def test_all_worlds_with_equal_files_have_equal_fingerprints(world: World) -> None:
    twin = MemoryWorld()
    for path, content in (("a/b", b"1"), ("a.b", b"2"), (".c", b"3")):
        world.write(path, content)
        twin.write(path, content)
    assert world.fingerprint() == twin.fingerprint()


def test_a_search_finds_lines_by_text_and_by_expression(world: World) -> None:
    world.write("a.txt", b"first TODO\nsecond\nthird TODO 42\r\n")
    world.write("b.md", b"TODO in another kind of file")
    world.write("c.bin", b"TODO\x00TODO")
    assert [(hit.path, hit.line, hit.text) for hit in world.search("TODO")] == [
        ("a.txt", 1, "first TODO"),
        ("a.txt", 3, "third TODO 42"),
        ("b.md", 1, "TODO in another kind of file"),
    ]
    assert [(hit.path, hit.line) for hit in world.search(r"TODO \d+$")] == [("a.txt", 3)]
    assert len(world.search("TODO", limit=1)) == 1
    assert [hit.path for hit in world.search("T[O]DO", "*.md")] == ["b.md"]
    assert world.search("nowhere") == ()
    with pytest.raises(InvalidInput):
        world.search("(")


@pytest.mark.parametrize(
    "path", [".git/hooks/pre-commit", ".GIT/Hooks/x", "sub/.git/config", ".git", ".holdfast/x"]
)
def test_a_protected_name_is_refused_whether_or_not_it_exists(world: World, path: str) -> None:
    world.write("mine", b"1")
    with pytest.raises(PathRefused):
        world.write(path, b"#!/bin/sh")
    with pytest.raises(PathRefused):
        world.append(path, b"#!/bin/sh")
    with pytest.raises(PathRefused):
        world.make_folder(path)
    with pytest.raises(PathRefused):
        world.move("mine", path)
    assert world.files() == ("mine",)
