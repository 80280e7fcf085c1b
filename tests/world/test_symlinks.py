"""Symlinks that programs make: staged, shown, committed, rolled back and rebuilt; never a way out of the workspace."""

import os
import subprocess
from pathlib import Path

import pytest

from holdfast.core import LINK_MODE, Call, CallId, FileEffect, JsonObject, digest_bytes, link_problem
from holdfast.core.errors import CommitConflict, PathRefused
from holdfast.world import EffectWriter, FolderWorld, StagedWorld, UndoJournal, WorldToolset


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "d").mkdir(parents=True)
    (folder / "d" / "f").write_text("f\n")
    (folder / "a").write_text("a\n")
    (folder / "old").symlink_to("a")
    (folder / "far").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def staged(root: Path, tmp_path: Path) -> StagedWorld:
    return StagedWorld(FolderWorld(root), undo=UndoJournal(tmp_path / "own"))


def link(world: StagedWorld, path: str, target: str, *, is_staged: bool = True) -> None:
    effect = FileEffect(path=path, kind="created", digest=digest_bytes(target.encode()), mode=LINK_MODE)
    EffectWriter(world).apply(effect, target.encode, is_staged=is_staged)


def delete(world: StagedWorld, path: str, *, is_staged: bool = True) -> None:
    EffectWriter(world).apply(FileEffect(path=path, kind="deleted"), lambda: b"", is_staged=is_staged)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc/passwd"),
        ("l", "../x"),
        ("l", ".."),
        ("d/l", "../../x"),
        ("l", "d/../../x"),
        ("l", "d/.."),
        ("l", ""),
    ],
)
def test_a_link_that_may_lead_out_has_a_problem(path: str, target: str) -> None:
    assert link_problem(path, target)


@pytest.mark.parametrize(("path", "target"), [("l", "d/f"), ("d/l", "../a"), ("l", "."), ("l", "missing/x")])
def test_a_relative_link_inside_has_none(path: str, target: str) -> None:
    assert link_problem(path, target) == ""


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("l", "/etc"),
        ("d/l", "../../x"),
        ("l", ".git/hooks"),
        ("l", "far"),
        (".git", "d"),
        ("old/l", "a"),
        ("l", "x\n"),
    ],
)
@pytest.mark.parametrize("is_staged", [True, False])
def test_a_link_that_leads_out_or_to_what_is_protected_is_refused(
    staged: StagedWorld, root: Path, path: str, target: str, is_staged: bool
) -> None:
    with pytest.raises((PathRefused, NotADirectoryError)):
        link(staged, path, target, is_staged=is_staged)
    assert staged.staged_paths() == ()
    assert not os.path.lexists(root / "l")


def test_a_staged_link_is_shown_as_git_shows_it_and_committed(
    staged: StagedWorld, root: Path, tmp_path: Path
) -> None:
    link(staged, "n/l", "../d/f")
    [proposal] = staged.proposals()
    assert proposal.kind == "created"
    assert "new file mode 120000" in proposal.diff
    assert "+../d/f" in proposal.diff
    copy = tmp_path / "copy"
    subprocess.run(["git", "init", "-q", str(copy)], check=True)
    subprocess.run(["git", "apply", "-"], input=proposal.diff.encode(), cwd=copy, check=True)
    assert os.readlink(copy / "n" / "l") == "../d/f"
    staged.copy_out(".", tmp_path / "whole")
    assert os.readlink(tmp_path / "whole" / "n" / "l") == "../d/f"
    assert not os.path.lexists(root / "n")
    staged.commit()
    assert os.readlink(root / "n" / "l") == "../d/f"
    assert staged.read("n/l") == b"f\n"
    assert staged.staged_paths() == ()


def test_links_of_the_base_are_changed_and_deleted_as_names(staged: StagedWorld, root: Path) -> None:
    link(staged, "old", "d/f")
    delete(staged, "far")
    link(staged, "a", "d/f")
    assert {each.path: each.kind for each in staged.proposals()} == {
        "a": "modified",
        "far": "deleted",
        "old": "modified",
    }
    assert "deleted file mode 120000" in next(each.diff for each in staged.proposals() if each.path == "far")
    staged.commit()
    assert os.readlink(root / "old") == os.readlink(root / "a") == "d/f"
    assert not os.path.lexists(root / "far")
    assert (root / "d" / "f").read_text() == "f\n"


def test_a_file_takes_the_place_of_a_link_and_not_of_its_target(staged: StagedWorld, root: Path) -> None:
    effect = FileEffect(path="old", kind="modified", digest=digest_bytes(b"new\n"), mode=0o644)
    EffectWriter(staged).apply(effect, lambda: b"new\n", is_staged=True)
    assert staged.read("old") == b"new\n"
    assert staged.read("a") == b"a\n"
    staged.commit()
    assert not (root / "old").is_symlink()
    assert (root / "old").read_text() == "new\n"
    assert (root / "a").read_text() == "a\n"


def test_files_are_not_reached_through_a_link_that_is_not_committed(staged: StagedWorld) -> None:
    link(staged, "l", "d")
    for attempt in (
        lambda: staged.read("l"),
        lambda: staged.read("l/f"),
        lambda: staged.write("l", b"x"),
        lambda: staged.write("l/f", b"x"),
        lambda: staged.delete("l"),
        lambda: staged.make_folder("l/x"),
        lambda: staged.exists("l/f"),
    ):
        with pytest.raises(PathRefused, match="not committed yet"):
            attempt()
    assert "l" not in staged.files()
    assert "l" not in [each.path for each in staged.entries()]
    assert staged.reject() == ("l",)


def test_a_link_over_a_link_that_is_withdrawn_leaves_nothing_staged(staged: StagedWorld) -> None:
    link(staged, "old", "d/f")
    link(staged, "old", "a")
    assert staged.proposals() == ()


def test_staged_links_are_rebuilt_from_their_record(staged: StagedWorld, root: Path) -> None:
    writer = EffectWriter(staged)
    contents = {digest_bytes(target): target for target in (b"d/f", b"d")}
    changes = [
        *writer.apply(
            FileEffect(path="l", kind="created", digest=digest_bytes(b"d"), mode=LINK_MODE),
            lambda: b"d",
            is_staged=True,
        ),
        *writer.apply(
            FileEffect(path="old", kind="modified", digest=digest_bytes(b"d/f"), mode=LINK_MODE),
            lambda: b"d/f",
            is_staged=True,
        ),
        *writer.apply(FileEffect(path="far", kind="deleted"), lambda: b"", is_staged=True),
    ]
    again = StagedWorld(FolderWorld(root))
    again.restage(changes, contents.__getitem__)
    assert again.proposals() == staged.proposals()
    staged.commit()
    again.restage(changes, contents.__getitem__)
    assert again.proposals() == ()


def test_a_commit_that_fails_puts_links_back_as_they_were(
    staged: StagedWorld, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link(staged, "l", "d")
    delete(staged, "far")
    link(staged, "old", "d/f")
    staged.write("z", b"z")

    def fail(*_: object, **__: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(FolderWorld, "write", fail)
    with pytest.raises(OSError, match="no room"):
        staged.commit()
    assert not os.path.lexists(root / "l")
    assert os.readlink(root / "old") == "a"
    assert os.readlink(root / "far") == "/etc/passwd"


def test_a_link_that_changed_in_the_base_is_a_conflict(staged: StagedWorld, root: Path) -> None:
    link(staged, "old", "d/f")
    (root / "old").unlink()
    (root / "old").symlink_to("d")
    with pytest.raises(CommitConflict):
        staged.commit()
    assert os.readlink(root / "old") == "d"


def test_an_empty_folder_behind_a_link_is_not_removed_with_the_link(staged: StagedWorld, root: Path) -> None:
    (root / "behind" / "empty").mkdir(parents=True)
    (root / "way").symlink_to("behind")
    delete(staged, "way")
    staged.commit()
    assert (root / "behind" / "empty").is_dir()


@pytest.mark.parametrize("operation", ["world.write", "world.read", "world.delete", "world.stat"])
async def test_a_call_on_a_changed_link_reaches_no_file_that_was_not_judged(
    staged: StagedWorld, operation: str
) -> None:
    """The policy judges `old` as `a`, where the base's symlink leads; what is staged there needs its own approval."""
    effect = FileEffect(path="old", kind="modified", digest=digest_bytes(b"new\n"), mode=0o644)
    EffectWriter(staged).apply(effect, lambda: b"new\n", is_staged=True, asks="it runs later")
    kept: dict[str, bytes] = {}

    async def keep(content: bytes) -> str:
        kept[digest_bytes(content)] = content
        return digest_bytes(content)

    toolset = WorldToolset(staged.base, staged, keep=keep)
    arguments: JsonObject = {"path": "old"}
    if operation == "world.write":
        arguments["content"] = "x"
    call = Call(id=CallId("1"), operation=operation, arguments=arguments)
    with pytest.raises(PathRefused, match="not committed yet"):
        await toolset.perform(call, is_staged=True)
    assert staged.asking() == {"old": "it runs later"}
    assert staged.staged_contents() == {"old": b"new\n"}


def test_a_folder_that_holds_a_link_is_not_empty(staged: StagedWorld, root: Path) -> None:
    (root / "d" / "l").symlink_to("f")
    writer = EffectWriter(staged)
    changes = writer.apply(FileEffect(path="d/f", kind="deleted"), lambda: b"", is_staged=True)
    writer.prune()
    assert staged.link_target("d/l") == "f"
    with pytest.raises(OSError, match="not empty"):
        staged.delete("d")
    rebuilt = StagedWorld(FolderWorld(root))
    rebuilt.restage(changes, lambda digest: b"")
    assert rebuilt.link_target("d/l") == "f"


def test_a_link_made_as_it_was_in_a_removed_folder_is_there(staged: StagedWorld, root: Path) -> None:
    (root / "d" / "l").symlink_to(".")
    staged.delete("d", recursive=True)
    link(staged, "d/l", ".")
    assert staged.link_target("d/l") == "."
    assert [(proposal.path, proposal.kind) for proposal in staged.proposals()] == [("d/f", "deleted")]
    staged.commit()
    assert [each.name for each in (root / "d").iterdir()] == ["l"]


def test_a_deleted_folder_is_committed_with_the_links_in_it(staged: StagedWorld, root: Path) -> None:
    (root / "d" / "l").symlink_to("../a")
    (root / "d" / "deep").mkdir()
    (root / "d" / "deep" / "far").symlink_to("/etc/passwd")
    changes = staged.delete("d", recursive=True)
    assert sorted(change.path for change in changes) == ["d/deep/far", "d/f", "d/l"]
    staged.commit()
    assert not (root / "d").exists()
    assert (root / "a").read_text() == "a\n"


@pytest.mark.promise("P03")
@pytest.mark.parametrize(
    ("place", "target", "source", "destination"),
    [
        ("a/b/c/link", "../../x", "a/b/c", "c"),  # would lead out of the workspace
        ("a/b/link", "../repo.git/hooks", "a/b", "b"),  # would lead into a bare repository
    ],
)
def test_a_move_of_a_folder_does_not_turn_a_symlink_in_it(
    tmp_path: Path, place: str, target: str, source: str, destination: str
) -> None:
    world = FolderWorld(tmp_path)
    for part in ("objects", "refs", "hooks"):
        (tmp_path / "repo.git" / part).mkdir(parents=True)
    (tmp_path / "repo.git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / "a" / "file").write_text("text")
    world.make_link(place, target)
    with pytest.raises(PathRefused, match="symlink"):
        world.move(source, destination)
    assert os.readlink(tmp_path / place) == target
    assert not (tmp_path / destination).exists()


def test_a_folder_with_symlinks_that_stay_inside_can_be_moved(tmp_path: Path) -> None:
    world = FolderWorld(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "absolute").symlink_to("/tmp")  # the person's own
    world.make_link("a/b/link", "../x")
    world.move("a", "c")
    assert os.readlink(tmp_path / "c" / "b" / "link") == "../x"


async def test_a_folder_that_is_moved_in_the_overlay_keeps_its_symlinks(
    staged: StagedWorld, root: Path
) -> None:
    (root / "d" / "l").symlink_to("../a")
    link(staged, "d/new", "f")
    kept: dict[str, bytes] = {}

    async def keep(content: bytes) -> str:
        kept[digest_bytes(content)] = content
        return digest_bytes(content)

    toolset = WorldToolset(staged.base, staged, keep=keep)
    arguments: JsonObject = {"source": "d", "destination": "g"}
    call = Call(id=CallId("1"), operation="world.move", arguments=arguments)
    changes = (await toolset.perform(call, is_staged=True)).changes
    staged.commit()
    assert not (root / "d").exists()
    assert {each.name: os.readlink(each) for each in (root / "g").iterdir() if each.is_symlink()} == {
        "l": "../a",
        "new": "f",
    }
    assert {change.after for change in changes if change.after} <= kept.keys()


def test_a_folder_is_not_moved_where_a_symlink_in_it_cannot_be_proposed(
    staged: StagedWorld, root: Path
) -> None:
    (root / "d" / "out").symlink_to("/etc/passwd")
    with pytest.raises(PathRefused, match="'d/out'"):
        staged.move("d", "g")
    assert staged.proposals() == ()


def test_in_the_overlay_a_symlink_is_neither_deleted_nor_moved_instead_of_its_target(
    staged: StagedWorld,
) -> None:
    with pytest.raises(PathRefused, match="'old' is a symlink"):
        staged.delete("old")
    with pytest.raises(PathRefused, match="'old' is a symlink"):
        staged.move("old", "new")
    assert staged.proposals() == ()
