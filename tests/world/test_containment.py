"""Nothing leads out of the workspace: no symlink, no swapped symlink, no device. With both ways of opening."""

import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.core.errors import HoldfastError, PathRefused
from holdfast.world import FolderWorld, StagedWorld, WorldPaths
from holdfast.world.paths.open_beneath import Opener, has_openat2, open_by_kernel, open_by_walk

OPENERS = {"walk": open_by_walk} | ({"kernel": open_by_kernel} if has_openat2() else {})
SECRET = b"the secret outside"


@pytest.fixture(params=OPENERS)
def opener(request: pytest.FixtureRequest) -> Opener:
    return OPENERS[request.param]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_bytes(SECRET)
    return folder


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir()
    return folder


def every_operation(world: FolderWorld, path: str) -> list[Callable[[], object]]:
    return [
        lambda: world.read(path),
        lambda: world.stat(path),
        lambda: world.exists(path),
        lambda: world.write(path, b"!"),
        lambda: world.write(path, b"!", overwrite=False),
        lambda: world.append(path, b"!"),
        lambda: world.delete(path, recursive=True),
        lambda: world.move(path, "elsewhere"),
        lambda: world.move("mine", path),
        lambda: world.fingerprint(path),
    ]


def test_openat2_is_used_where_the_kernel_has_it() -> None:
    assert "walk" in OPENERS
    assert has_openat2() is ("kernel" in OPENERS)


@pytest.mark.parametrize("name", ["file", "folder/secret", "relative", "chain", "absolute-root"])
def test_a_link_that_leads_out_is_refused_by_every_operation(
    inside: Path, outside: Path, opener: Opener, name: str
) -> None:
    (inside / "file").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    (inside / "relative").symlink_to("../outside/secret")
    (inside / "chain").symlink_to("file")
    (inside / "absolute-root").symlink_to("/")
    world = FolderWorld(inside, opener=opener)
    world.write("mine", b"1")
    for operation in every_operation(world, name):
        with pytest.raises(PathRefused):
            operation()
    assert (outside / "secret").read_bytes() == SECRET
    assert os.listdir(outside) == ["secret"]
    assert world.list() == ("mine",)


@pytest.mark.parametrize("replaced", [".", "..", "../.."])
def test_a_link_in_the_place_of_the_folder_or_of_one_above_it_leads_nowhere(
    tmp_path: Path, opener: Opener, replaced: str
) -> None:
    inside = tmp_path / "a" / "b" / "inside"
    inside.mkdir(parents=True)
    world, paths = FolderWorld(inside, opener=opener), WorldPaths(inside)
    world.write("mine", b"1")
    place = Path(os.path.normpath(inside / replaced))
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(place, elsewhere)
    before = sorted(elsewhere.rglob("*"))
    place.rename(tmp_path / "moved")
    place.symlink_to(elsewhere)
    for operation in [
        *every_operation(world, "mine"),
        world.list,
        world.files,
        world.entries,
        world.fingerprint,
    ]:
        with pytest.raises(PathRefused, match=str(place)):
            operation()
    assert paths.locate("mine").problem
    assert sorted(elsewhere.rglob("*")) == before


def test_a_link_that_stays_inside_is_followed(inside: Path, opener: Opener) -> None:
    world = FolderWorld(inside, opener=opener)
    world.write("real/a", b"1")
    (inside / "relative").symlink_to("real")
    (inside / "absolute").symlink_to(inside / "real")
    (inside / "up").symlink_to("real/../real/a")
    for path in ("relative/a", "absolute/a", "up"):
        assert world.read(path) == b"1"
        assert world.resolve(path) == "real/a"
    world.write("relative/b", b"2")
    assert (inside / "real" / "b").read_bytes() == b"2"
    assert world.write("up", b"3").path == "real/a"
    assert (inside / "up").is_symlink()
    staged = StagedWorld(world)
    staged.write("relative/a", b"staged")
    assert staged.read("absolute/a") == b"staged"
    assert [proposal.path for proposal in staged.proposals()] == ["real/a"]


def test_a_symlink_is_not_deleted_instead_of_its_target(inside: Path, opener: Opener) -> None:
    world = FolderWorld(inside, opener=opener)
    world.write("real/a", b"1")
    (inside / "link").symlink_to("real")
    with pytest.raises(PathRefused):
        world.delete("link", recursive=True)
    with pytest.raises(PathRefused):
        world.move("link", "x")
    assert world.read("link/a") == b"1"


def test_deleting_a_folder_removes_the_links_in_it_and_not_their_targets(
    inside: Path, outside: Path, opener: Opener
) -> None:
    (inside / "d").mkdir()
    (inside / "d" / "out").symlink_to(outside)
    (inside / "d" / "dangling").symlink_to("nowhere")
    FolderWorld(inside, opener=opener).delete("d", recursive=True)
    assert not (inside / "d").exists()
    assert (outside / "secret").read_bytes() == SECRET


def test_a_loop_of_symlinks_is_refused(inside: Path, opener: Opener) -> None:
    (inside / "a").symlink_to("b")
    (inside / "b").symlink_to("a")
    with pytest.raises(PathRefused):
        FolderWorld(inside, opener=opener).read("a")


def test_a_dangling_link_is_judged_by_where_it_points(inside: Path, outside: Path, opener: Opener) -> None:
    (inside / "in").symlink_to("new")
    (inside / "out").symlink_to(outside / "new")
    world = FolderWorld(inside, opener=opener)
    assert not world.exists("in")
    assert world.write("in", b"1").path == "new"
    with pytest.raises(PathRefused):
        world.write("out", b"1")
    assert not (outside / "new").exists()


def test_a_link_to_a_protected_name_is_as_protected_as_the_name(inside: Path, opener: Opener) -> None:
    (inside / ".git").mkdir()
    (inside / "innocent").symlink_to(".git/hooks/pre-commit")
    (inside / "folder").symlink_to(".git")
    world = FolderWorld(inside, opener=opener)
    for path in ("innocent", "folder/hooks/pre-commit", "folder/config"):
        with pytest.raises(PathRefused):
            world.write(path, b"#!/bin/sh")
    assert os.listdir(inside / ".git") == []


def test_deleting_or_moving_around_a_protected_name_is_refused(inside: Path, opener: Opener) -> None:
    (inside / "sub" / ".git" / "hooks").mkdir(parents=True)
    (inside / "sub" / ".git" / "hooks" / "pre-commit").write_text("mine")
    world = FolderWorld(inside, opener=opener, protected=["secrets/keys"])
    (inside / "secrets").mkdir()
    for operation in (
        lambda: world.delete("sub", recursive=True),
        lambda: world.move("sub", "other"),
        lambda: world.write("secrets/keys", b""),
        lambda: world.write("deep/secrets/keys/x", b""),
        lambda: world.read("sub/.git/hooks/pre-commit"),
    ):
        with pytest.raises(PathRefused):
            operation()
    assert (inside / "sub" / ".git" / "hooks" / "pre-commit").read_text() == "mine"
    assert world.files() == ()


@pytest.mark.parametrize(
    "name", [".git/hooks/pre-commit", ".GIT/config", "lib/.git/hooks/x", "way/hooks/x", ".git"]
)
def test_nothing_is_moved_onto_a_protected_name(inside: Path, opener: Opener, name: str) -> None:
    (inside / ".git").mkdir()
    (inside / "way").symlink_to(".git")
    world = FolderWorld(inside, opener=opener)
    world.write("mine", b"#!/bin/sh")
    world.write("kit/pre-commit", b"#!/bin/sh")
    for source in ("mine", "kit"):
        with pytest.raises(PathRefused):
            world.move(source, name)
    assert world.files() == ("kit/pre-commit", "mine")
    assert os.listdir(inside / ".git") == []


def test_a_hard_link_is_refused_and_its_other_name_untouched(
    inside: Path, outside: Path, opener: Opener
) -> None:
    os.link(outside / "secret", inside / "hard")
    world = FolderWorld(inside, opener=opener)
    for operation in (
        lambda: world.read("hard"),
        lambda: world.write("hard", b"!"),
        lambda: world.append("hard", b"!"),
        lambda: world.fingerprint("hard"),
    ):
        with pytest.raises(PathRefused, match="hard links"):
            operation()
    world.delete("hard")
    assert (outside / "secret").read_bytes() == SECRET


def test_pipes_sockets_and_devices_are_refused_and_nothing_hangs(inside: Path, opener: Opener) -> None:
    os.mkfifo(inside / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.getcwd()
        try:
            os.chdir(inside)  # a socket's address has room for a short name only
            listener.bind("socket")
        finally:
            os.chdir(here)
        with suppress(PermissionError):
            os.mknod(inside / "device", 0o020666, os.makedev(1, 3))
        world = FolderWorld(inside, opener=opener)
        world.write("mine", b"1")
        names = [name for name in ("pipe", "socket", "device") if (inside / name).exists()]
        for name in names:
            for operation in every_operation(world, name):
                with pytest.raises(PathRefused):
                    operation()
            assert WorldPaths(inside).locate(name).problem
        assert world.files() == ("mine",)
        assert [entry.path for entry in world.entries()] == ["mine"]


def test_names_that_no_guest_could_give_are_not_listed(inside: Path, opener: Opener) -> None:
    for name in (b"plain", b"bad\xff", "cafe\u0301".encode(), b"new\nline", b"dot."):
        (inside / os.fsdecode(name)).write_bytes(b"")
    (inside / "bad ").mkdir()
    (inside / "bad " / "inner").write_bytes(b"")
    world = FolderWorld(inside, opener=opener)
    assert world.files() == ("plain",)
    assert [entry.path for entry in world.entries()] == ["plain"]


@contextmanager
def swapping(inside: Path, outside: Path) -> Iterator[None]:
    """A thread that makes `d` now a folder, now a link that leads out, and `f` now a file, now a link."""
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            with suppress(OSError):
                os.rename(inside / "d", inside / "d-kept")
                os.symlink(outside, inside / "d")
                os.unlink(inside / "d")
                os.rename(inside / "d-kept", inside / "d")
            with suppress(OSError):
                os.symlink(outside / "secret", inside / "f-link")
                os.rename(inside / "f-link", inside / "d" / "f")

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def race(inside: Path, outside: Path, opener: Opener, rounds: int) -> None:
    (inside / "d").mkdir()
    world = FolderWorld(inside, opener=opener)
    with swapping(inside, outside):
        for number in range(rounds):
            for operation in (
                lambda: world.read("d/secret"),
                lambda: world.read("d/f"),
                lambda: world.write("d/secret", b"!"),
                lambda: world.write("d/f", b"!"),
                lambda: world.append("d/secret", b"!"),
                lambda number=number: world.write(f"d/new-{number % 10}", b"!", overwrite=False),
                lambda: world.delete("d/secret"),
                lambda: world.make_folder("d/made"),
                lambda: world.move("d/f", "d/g"),
                lambda: world.entries("d"),
                lambda: world.search("secret"),
            ):
                with suppress(OSError, PathRefused):
                    assert SECRET not in repr(operation()).encode()
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_bytes() == SECRET


def test_a_thread_that_swaps_links_gets_no_byte_in_or_out(
    inside: Path, outside: Path, opener: Opener
) -> None:
    race(inside, outside, opener, rounds=30)


@pytest.mark.soak
def test_a_thread_that_swaps_links_for_long_gets_no_byte_in_or_out(
    inside: Path, outside: Path, opener: Opener
) -> None:
    race(inside, outside, opener, rounds=20_000)


NAMES = st.sampled_from(["a", "b", "c", "d", "out", ".git", "hooks"])
TARGETS = st.sampled_from(
    ["a", "b/c", "../x", "..", ".", "/etc", "/", "../outside/secret", "a/../../outside", ".git"]
)
PATHS = st.one_of(
    st.lists(st.one_of(NAMES, st.sampled_from(["..", ".", ""])), min_size=1, max_size=6).map("/".join),
    st.text(max_size=20),
)


def attempt(world: FolderWorld, path: str) -> bytes | str:
    try:
        return world.read(path)
    except (OSError, HoldfastError) as error:
        return type(error).__name__


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(
    st.lists(st.tuples(st.lists(NAMES, min_size=1, max_size=3), st.one_of(st.none(), TARGETS)), max_size=8),
    st.lists(PATHS, min_size=1, max_size=8),
)
def test_in_any_tree_a_path_is_inside_or_refused(
    tmp_path_factory: pytest.TempPathFactory, tree: list[tuple[list[str], str | None]], paths: list[str]
) -> None:
    top = tmp_path_factory.mktemp("tree")
    (top / "outside").mkdir()
    (top / "outside" / "secret").write_bytes(SECRET)
    (top / "inside").mkdir()
    for parts, target in tree:
        place = top / "inside" / "/".join(parts)
        with suppress(OSError):
            if os.path.lexists(place) or not Path(os.path.realpath(place.parent)).is_relative_to(
                top / "inside"
            ):
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(target) if target else place.write_bytes(b"mine")
    locate = WorldPaths(top / "inside").locate
    for path in paths:
        first = locate(path)
        assert locate(path) == first
        worlds = [FolderWorld(top / "inside", opener=opener) for opener in OPENERS.values()]
        answers = {attempt(world, path) for world in worlds}
        assert len(answers) == 1
        if answers == {b"mine"}:
            assert first.inside is not None
            assert first.problem is None
            assert first.protected is None
        for world in worlds:
            with suppress(OSError, HoldfastError):
                world.write(path, b"mine")
    assert os.listdir(top / "outside") == ["secret"]
    assert (top / "outside" / "secret").read_bytes() == SECRET
