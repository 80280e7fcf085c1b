"""Git's own data is closed to every change that a guest can make, by every route. Reading stays as it is."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.world.test_restore import Blobs, everything

from holdfast.app import Runtime
from holdfast.core import Call, Change, FakeClock, Ok, PathTarget, Role, Tool, call_id
from holdfast.core.errors import PathRefused
from holdfast.policy import FixedPolicy, Request
from holdfast.session import Settings
from holdfast.world import FolderWorld, MemoryWorld, StagedWorld, World, WorldPaths

FILES = (
    "HEAD", "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "config", "config.worktree", "index", "index.lock", "packed-refs",
    "refs/heads/main", "refs/tags/v1", "refs/remotes/origin/HEAD", "objects/pack/p.pack", "objects/info/packs",
    "objects/info/alternates", "objects/info/http-alternates", "objects/ab/cd", "info/refs", "info/grafts", "info/exclude",
    "info/attributes", "info/sparse-checkout", "commondir", "gitdir", "hooks/pre-commit", "hooks/fsmonitor-watchman",
    "branches/x", "remotes/origin", "logs/HEAD", "logs/refs/heads/main", "shallow", "description", "common/x",
    "modules/sub/config", "modules/sub/hooks/x", "worktrees/w/gitdir", "worktrees/w/commondir", "worktrees/w/HEAD",
    "worktrees/w/locked", "worktrees/w/config.worktree", "sequencer/todo", "rebase-merge/git-rebase-todo",
)  # fmt: skip
"""What gitrepository-layout(5) lists in a repository, and what git keeps there while it works."""
PREFIXES = (".git", ".GIT", "sub/.git", "bare.git", "bare.git/inner/../.")


def git(folder: Path, *words: str) -> str:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a repository, a nested one, a bare one and the `.git` file of a worktree."""
    root = tmp_path / "work"
    (root / "sub").mkdir(parents=True)
    (root / "tree").mkdir()
    git(root, "init", "-q", ".")
    git(root, "init", "-q", "sub")
    git(root, "init", "-q", "--bare", "bare.git")
    (root / "tree" / ".git").write_text("gitdir: ../.git/worktrees/tree\n")
    (root / "mine").write_text("mine")
    return root


def direct(folder: Path) -> World:
    return FolderWorld(folder)


def staged(folder: Path) -> World:
    return StagedWorld(FolderWorld(folder))


ROUTES: dict[str, Callable[[World, str], object]] = {
    "write": lambda world, path: world.write(path, b"evil"),
    "append": lambda world, path: world.append(path, b"evil"),
    "make_folder": lambda world, path: world.make_folder(path),
    "delete": lambda world, path: world.delete(path, recursive=True),
    "move to": lambda world, path: world.move("mine", path),
    "move from": lambda world, path: world.move(path, "elsewhere"),
    "move folder": lambda world, path: world.move(path.rpartition("/")[0], "elsewhere"),
}


@pytest.mark.parametrize("kind", [direct, staged])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.promise("P03")
def test_f41_no_file_of_a_repository_can_be_changed(
    folder: Path, kind: Callable[[Path], World], route: str
) -> None:
    world, before = kind(folder), everything(folder)
    for path in (f"{prefix}/{name}" for prefix in PREFIXES for name in FILES):
        with pytest.raises((PathRefused, FileNotFoundError, NotADirectoryError)):
            ROUTES[route](world, path)
        if route in ("write", "append", "make_folder", "move to"):
            with pytest.raises(PathRefused):
                ROUTES[route](world, path)
    assert everything(folder) == before
    assert not isinstance(world, StagedWorld) or world.staged_paths() == ()


@pytest.mark.parametrize("kind", [direct, staged])
@pytest.mark.parametrize("path", [".git", "tree/.git", "new/.git", "sub", "tree", "bare.git"])
def test_f41_a_repository_and_its_parents_can_be_neither_moved_nor_removed(
    folder: Path, kind: Callable[[Path], World], path: str
) -> None:
    world, before = kind(folder), everything(folder)
    attempts: list[Callable[[], object]] = [
        lambda: world.delete(path, recursive=True),
        lambda: world.move(path, "elsewhere"),
    ]
    for attempt in attempts:
        try:
            attempt()
        except (PathRefused, FileNotFoundError):
            pass
        else:
            # The overlay does not see a repository that it cannot list; a commit leaves it in place.
            assert isinstance(world, StagedWorld)
            world.commit()
    assert {name: each for name, each in everything(folder).items() if ".git" in name} == {
        name: each for name, each in before.items() if ".git" in name
    }


def memory(folder: Path) -> World:
    return MemoryWorld({"mine": b"mine"})


@pytest.mark.parametrize("kind", [direct, staged, memory])
@pytest.mark.parametrize(
    "parts", [("HEAD", "objects/x", "refs/x"), ("refs/x", "objects/x", "HEAD"), ("commondir", "HEAD")]
)
@pytest.mark.parametrize("place", ["", "evil/"])
def test_f41_a_guest_cannot_build_a_repository_from_its_parts(
    tmp_path: Path, kind: Callable[[Path], World], parts: tuple[str, ...], place: str
) -> None:
    world = kind(tmp_path)
    world.write("mine", b"ref: refs/heads/main\n")
    *first, last = parts
    for part in first:
        world.write(place + part, b"x")
    for attempt in (
        lambda: world.write(place + last, b"x"),
        lambda: world.make_folder(place + last),
        lambda: world.move("mine", place + last),
    ):
        with pytest.raises(PathRefused):
            attempt()
    assert not world.exists(place + last)


def test_f41_reading_stays_as_it_is(folder: Path) -> None:
    for world in (direct(folder), staged(folder)):
        assert world.read(".git/HEAD").startswith(b"ref:")
        assert world.read("bare.git/HEAD").startswith(b"ref:")
        with pytest.raises(PathRefused):
            world.read(".git/config")


def test_f41_a_proposal_from_elsewhere_is_not_committed(folder: Path) -> None:
    world, before = StagedWorld(FolderWorld(folder)), everything(folder)
    for path in (".git/commondir", ".git/HEAD", "bare.git/config", "tree/.git"):
        innocent = Change(path="a.txt", kind="created", after="1", is_staged=True)
        is_readable = path not in ("bare.git/config", "tree/.git")
        before_it = world.base.fingerprint(path) or None if is_readable else None
        evil = Change(path=path, kind="modified", before=before_it, after="1", is_staged=True)
        world.restage([innocent, evil], lambda _: b"evil")
        with pytest.raises(PathRefused):
            world.commit()
        assert everything(folder) == before


@pytest.mark.parametrize("role", ["write-path", "delete-path"])
@pytest.mark.parametrize("prefix", [".git", "sub/.git", "bare.git", "{root}/.git", "{root}/bare.git"])
@pytest.mark.promise("P03")
def test_f41_the_policy_denies_every_path_of_a_repository_to_any_tool(
    folder: Path, role: Role, prefix: str
) -> None:
    paths = WorldPaths(folder, guest_root=None)
    for name in FILES:
        location = paths.locate(f"{prefix.replace('{root}', str(folder))}/{name}")
        call = Call(id=call_id(1, 1), operation="any.tool", arguments={})
        target = PathTarget(role=role, argument="path", location=location)
        request = Request(call=call, tool=Tool(name="any.tool", roles={}), targets=(target,))
        decision = FixedPolicy(default="allow").judge(request)
        assert (decision.verdict, decision.rule) == ("deny", "structural-protected-path"), name


@pytest.mark.parametrize("is_new", [True, False])
async def test_f41_a_restore_point_brings_no_repository(tmp_path: Path, is_new: bool) -> None:
    blobs, source, target = Blobs(), tmp_path / "source", tmp_path / "target"
    for name in (".git/hooks/pre-commit", "a/.git/commondir", ".holdfast/policy.yaml", "b/HEAD", "b/objects/x",
                 "b/refs/x", "b/config", "plain.txt"):  # fmt: skip
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text("evil")
    point = await blobs.points(source).make()
    target.mkdir()
    if not is_new:
        (target / ".git").mkdir()
        (target / ".git" / "HEAD").write_text("mine")
    points = blobs.points(target)
    if is_new:
        await points.fill(point.manifest)
    else:
        restored = await points.restore(point.manifest)
        assert restored.protected == (".git", ".holdfast", "a/.git", "b")
    files = {str(each.relative_to(target)) for each in target.rglob("*") if each.is_file()}
    assert files == ({"plain.txt"} if is_new else {"plain.txt", ".git/HEAD"})
    again = await points.make()
    assert again.changes == ()
    (target / "plain.txt").write_text("changed")
    last = await points.make()
    assert [change.path for change in last.changes] == ["plain.txt"]


@pytest.mark.promise("P03")
async def test_f41_git_status_runs_nothing_after_the_attack(tmp_path: Path, folder: Path) -> None:
    marker = tmp_path / "ran"
    evil = (
        f"[core]\n\trepositoryformatversion = 0\n\tfsmonitor = touch {marker}; false\n\tworktree = {folder}\n"
    )
    runtime = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings())
    try:
        policy = FixedPolicy(default="allow")
        session = await runtime.create(workspace=folder, policy=policy, needs_model=False)
        for code in (
            f"open('evil/config', 'w').write({evil!r})",
            "open('.git/commondir', 'w').write('../evil')",
            "open('evil/HEAD', 'w').write('ref: refs/heads/main\\n')",
            "open('evil/objects/x', 'w').write('')",
            "open('evil/refs/x', 'w').write('')",
            "open('evil/commondir', 'w').write('../.git')",
            "open('.git/config.worktree', 'w').write('x')",
        ):
            await session.execute(code)
        last = await session.execute("open('.git/commondir', 'w').write('../evil')")
        assert not isinstance(last, Ok)
    finally:
        await runtime.close()
    for place in (folder, folder / "evil"):
        git(place, "status")
    assert not marker.exists()
    # The attack works if the files are there, so the test would notice it.
    (folder / ".git" / "commondir").write_text("../evil")
    (folder / "evil" / "refs").mkdir(exist_ok=True)
    (folder / "evil" / "objects").mkdir(exist_ok=True)
    git(folder, "status")
    assert marker.exists()
