"""Where the paths of a call lead, for the policy."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.core.values import encode
from holdfast.world import WorldPaths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "f").write_bytes(b"1")
    return folder


@pytest.mark.parametrize("given", ["d/f", "./d/f", "d/x/../f", "/workspace/d/f", "/app/d/f"])
def test_every_spelling_of_a_file_has_one_place(root: Path, given: str) -> None:
    location = WorldPaths(root).locate(given)
    assert (location.given, location.inside, location.real) == (given, "d/f", f"{root}/d/f")
    assert location.problem is None
    assert location.protected is None


def test_an_absolute_path_of_the_host_is_inside_or_outside(root: Path) -> None:
    paths = WorldPaths(root)
    assert paths.locate(f"{root}/d/f").inside == "d/f"
    assert paths.locate(str(root)).inside == "."
    assert paths.locate(f"{root}/../ws/d").inside == "d"
    outside = paths.locate("/etc/hostname-that-is-not-there")
    assert (outside.inside, outside.real, outside.problem) == (None, "/etc/hostname-that-is-not-there", None)
    assert paths.locate(f"{root}-evil/x").inside is None
    assert paths.locate("/").real == "/"


def test_the_guest_name_of_the_workspace_can_be_another_or_none(root: Path) -> None:
    assert WorldPaths(root, guest_root="/project").locate("/project/d/f").inside == "d/f"
    alone = WorldPaths(root, guest_root=None)
    assert alone.locate("/workspace/d/f").inside is None
    assert alone.locate("d/f").inside == "d/f"


def test_a_link_leads_where_it_points(root: Path) -> None:
    (root / "out").symlink_to("/etc")
    (root / "in").symlink_to("d")
    (root / "dangling-in").symlink_to("d/new")
    (root / "dangling-out").symlink_to("../new")
    paths = WorldPaths(root)
    assert paths.locate("in/f").inside == "d/f"
    assert paths.locate("dangling-in").inside == "d/new"
    assert (paths.locate("out/passwd").inside, paths.locate("out/passwd").real) == (None, "/etc/passwd")
    assert paths.locate("dangling-out").inside is None
    assert paths.locate("dangling-out").real == str(root.parent / "new")


def test_a_path_that_does_not_exist_yet_is_located(root: Path) -> None:
    location = WorldPaths(root).locate("new/deep/file")
    assert (location.inside, location.problem) == ("new/deep/file", None)


@pytest.mark.parametrize(
    "given",
    ["", "..", "a/../../x", "a\0b", "C:\\x", "~/x", "cafe\u0301", "x" * 300, "\ud800", "file:///etc/passwd"],
)
def test_a_path_that_cannot_be_resolved_has_a_problem_that_can_be_recorded(root: Path, given: str) -> None:
    location = WorldPaths(root).locate(given)
    assert location.problem
    assert location.inside is None
    assert encode(location)


@pytest.mark.parametrize(
    "given", ["/proc/self/root/etc/passwd", "/proc/self/cwd/x", "/dev/fd/0", "/dev/null"]
)
def test_links_of_the_process_table_and_devices_are_a_problem(root: Path, given: str) -> None:
    assert WorldPaths(root).locate(given).problem


def test_a_loop_of_symlinks_is_a_problem(root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    assert WorldPaths(root).locate("a/x").problem


def test_at_most_forty_symlinks_are_followed_as_in_the_kernel(root: Path) -> None:
    for number in range(41):
        (root / f"link{number}").symlink_to(f"link{number - 1}" if number else "end")
    paths = WorldPaths(root)
    assert paths.locate("link39").real == str(root / "end")
    assert "loop of symlinks" in (paths.locate("link40").problem or "")


def test_a_hard_link_is_a_problem_inside_and_none_outside(root: Path) -> None:
    (root.parent / "other").write_bytes(b"")
    os.link(root.parent / "other", root / "hard")
    paths = WorldPaths(root)
    assert "hard links" in (paths.locate("hard").problem or "")
    assert paths.locate(str(root.parent / "other")).problem is None


@pytest.mark.parametrize(
    "given", [".git/hooks/pre-commit", ".GIT/HOOKS", "a/.git/config", ".git", ".holdfast", "link/x"]
)
def test_protection_does_not_wait_until_the_file_exists(root: Path, given: str) -> None:
    (root / "link").symlink_to(".git/hooks")
    assert WorldPaths(root).locate(given).protected


def test_our_own_folder_is_protected_but_not_the_workspace_in_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    workspace = home / "sessions" / "s" / "workspace"
    workspace.mkdir(parents=True)
    paths = WorldPaths(workspace, protected=[home, "private.key"])
    assert paths.locate("a").protected is None
    assert paths.locate(str(workspace / "a")).protected is None
    assert paths.locate(str(home / "holdfast.db")).protected == str(home)
    assert paths.locate(str(home / "sessions" / "other" / "workspace")).protected == str(home)
    assert paths.locate(str(tmp_path)).protected == str(home)
    assert paths.locate("deep/private.key").protected == "private.key"


def test_a_protected_place_inside_the_workspace_is_protected(root: Path) -> None:
    paths = WorldPaths(root, protected=[root / "d" / "policy.yaml"])
    assert paths.locate("d/policy.yaml").protected
    assert paths.locate("d/f").protected is None


@settings(deadline=None)
@given(st.text(max_size=40))
def test_locating_never_raises_and_says_the_same_twice(given: str) -> None:
    paths = WorldPaths(Path(__file__).parent)
    location = paths.locate(given)
    assert location == paths.locate(given)
    assert location.problem or location.real
    assert encode(location)


def test_f02_many_paths_are_located_as_each_alone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    outside = tmp_path / "outside.txt"
    outside.write_text("x")
    for folder in ("src", "bare/objects", "bare/refs", ".git/hooks", "repository"):
        (root / folder).mkdir(parents=True)
    names = [f"{number}.txt" for number in range(40)]
    names += [
        "HEAD",
        "config",
        ".env",
        ".holdfast",
        "a b",
        "é.txt",
        "trailing.",
        "x" * 200,
        "Objects",
        "commondir",
    ]
    for folder in (".", "src", "bare", ".git", ".git/hooks"):
        for name in names:
            (root / folder / name).write_text("x")
        (root / folder / "out").symlink_to(outside)
        (root / folder / "inside").symlink_to(root / "src" / "1.txt")
        os.link(outside, root / folder / "hard")
        os.mkfifo(root / folder / "pipe")
    (root / "linked").symlink_to(root / "src")
    paths = WorldPaths(root, protected=["src/3.txt", "private"])
    folders = (".", "src", "bare", ".git", ".git/hooks", "linked", "missing", "..", "/workspace/src")
    special = ["out", "inside", "hard", "pipe", "none", "", "."]
    given = [
        name if folder == "." else f"{folder}/{name}" for folder in folders for name in [*names, *special]
    ]
    given += ["~/x", "//x", "C:x", "a\\b", "a\0b", "\ud800", "http://x/y"]
    assert paths.locate_all(given) == [paths.locate(each) for each in given]
