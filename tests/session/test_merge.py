"""Merging a fork: its committed and staged files come to the parent's folder, all or nothing; conflicts are named."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import FakeClock
from holdfast.core.errors import CommitConflict, InvalidInput, QuotaExceeded, SessionNotFound
from holdfast.core.events import ForkChangesStaged, ProposalsCommitted
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings

STAGES = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "stage"})


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", clock=FakeClock(), settings=Settings(), servers=())
    yield started
    await started.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "docs").mkdir(parents=True)
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt").write_text("two\n")
    (folder / "docs" / "old.md").write_text("old\n")
    return folder


async def parent_and_fork(runtime: Runtime, project: Path) -> tuple[Session, Session]:
    parent = await runtime.create(policy=STAGES, needs_model=False, workspace=project)
    await parent.execute("1")
    return parent, await runtime.fork(parent.id, policy=STAGES, needs_model=False)


def files(folder: Path) -> dict[str, str]:
    return {
        str(each.relative_to(folder)): each.read_text()
        for each in sorted(folder.rglob("*"))
        if each.is_file()
    }


async def test_f05_a_merge_brings_committed_and_staged_files_to_the_parents_folder(
    runtime: Runtime, project: Path
) -> None:
    parent, fork = await parent_and_fork(runtime, project)
    await fork.execute("open('a.txt', 'w').write('ONE\\n')\nimport os\nos.remove('docs/old.md')")
    await fork.commit()
    await fork.execute("open('src/new.py', 'w').write('print(1)\\n')")
    plan = await runtime.plan_merge(fork.id)
    assert [(each.path, each.kind) for each in plan.proposals] == [
        ("a.txt", "modified"),
        ("docs/old.md", "deleted"),
        ("src/new.py", "created"),
    ]
    assert "-one\n+ONE\n" in plan.proposals[0].diff
    assert files(project) == {"a.txt": "one\n", "b.txt": "two\n", "docs/old.md": "old\n"}, (
        "a plan changes nothing"
    )
    await runtime.merge(fork.id)
    assert files(project) == {"a.txt": "ONE\n", "b.txt": "two\n", "src/new.py": "print(1)\n"}
    assert parent.proposals() == ()
    assert (await runtime.plan_merge(fork.id)).proposals == (), "and is not merged twice"


async def test_f05_a_file_that_changed_in_both_is_a_conflict_and_nothing_is_merged(
    runtime: Runtime, project: Path
) -> None:
    _, fork = await parent_and_fork(runtime, project)
    await fork.execute("for n in 'abc':\n    open(f'{n}.txt', 'w').write('fork\\n')")
    (project / "a.txt").write_text("mine\n")
    (project / "c.txt").mkdir()
    before = files(project)
    with pytest.raises(CommitConflict, match=r"a\.txt .it changed in the parent.; c\.txt") as raised:
        await runtime.merge(fork.id)
    assert raised.value.paths == ("a.txt", "c.txt")
    assert files(project) == before
    await runtime.merge(fork.id, "b.txt")
    assert files(project) == {**before, "b.txt": "fork\n"}


async def test_f05_a_change_that_is_staged_in_the_parent_is_a_conflict_unless_it_is_the_same(
    runtime: Runtime, project: Path
) -> None:
    parent = await runtime.create(policy=STAGES, needs_model=False, workspace=project)
    await parent.execute("open('a.txt', 'w').write('staged\\n')\nopen('b.txt', 'w').write('staged\\n')")
    fork = await runtime.fork(parent.id, policy=STAGES, needs_model=False)
    await fork.commit()
    await parent.execute("open('b.txt', 'w').write('other\\n')")
    with pytest.raises(CommitConflict, match=r"b\.txt .the parent has another change staged"):
        await runtime.merge(fork.id)
    await runtime.merge(fork.id, "a.txt")
    assert files(project)["a.txt"] == "staged\n"
    assert [each.path for each in parent.proposals()] == ["b.txt"]
    await parent.close()
    again = await runtime.resume(parent.id, policy=STAGES, needs_model=False)
    assert [each.path for each in again.proposals()] == ["b.txt"]


async def test_f05_what_was_merged_is_the_base_of_the_next_merge(runtime: Runtime, project: Path) -> None:
    _, fork = await parent_and_fork(runtime, project)
    await fork.execute("open('a.txt', 'w').write('first\\n')")
    await runtime.merge(fork.id)
    (project / "a.txt").write_text("first, then mine\n")
    await fork.execute("open('b.txt', 'w').write('second\\n')")
    await runtime.merge(fork.id)
    assert files(project) == {"a.txt": "first, then mine\n", "b.txt": "second\n", "docs/old.md": "old\n"}
    await fork.execute("open('b.txt', 'w').write('two\\n')")
    await runtime.merge(fork.id)
    assert files(project)["b.txt"] == "two\n", "what the fork takes back is taken back"


async def test_f05_a_fork_has_no_repository_and_a_merge_leaves_the_parents_alone(
    runtime: Runtime, project: Path
) -> None:
    (project / ".git").mkdir()
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    parent, fork = await parent_and_fork(runtime, project)
    assert not (runtime.home.workspace(fork.id) / ".git").exists()
    head = (project / ".git" / "HEAD").read_bytes()
    await fork.execute("open('a.txt', 'w').write('fork\\n')")
    plan = await runtime.merge(fork.id)
    assert [each.path for each in plan.proposals] == ["a.txt"]
    assert (project / ".git" / "HEAD").read_bytes() == head
    assert parent.id == plan.parent


async def test_f05_modes_empty_folders_and_binary_files_are_merged_and_unusual_files_are_named(
    runtime: Runtime, project: Path
) -> None:
    _, fork = await parent_and_fork(runtime, project)
    own = runtime.home.workspace(fork.id)
    (own / "a.txt").chmod(0o755)
    (own / "data.bin").write_bytes(bytes(range(256)) * 4000)
    (own / "empty").mkdir()
    (own / "docs" / "old.md").unlink()
    (own / "docs").rmdir()
    os.mkfifo(own / "pipe")
    os.symlink("/etc/passwd", own / "outside")
    plan = await runtime.merge(fork.id)
    assert plan.left == ("outside", "pipe")
    assert (project / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (project / "data.bin").read_bytes() == bytes(range(256)) * 4000
    assert (project / "empty").is_dir()
    assert not (project / "docs").exists()


def make_links(folder: Path, links: dict[str, str]) -> None:
    for name, target in links.items():
        os.symlink(target, folder / name)


async def test_f05_symlinks_are_merged_as_themselves(runtime: Runtime, project: Path) -> None:
    make_links(project, {"moved": "a.txt", "gone": "a.txt", "to-file": "a.txt"})
    _, fork = await parent_and_fork(runtime, project)
    own = runtime.home.workspace(fork.id)
    for name in ("moved", "gone", "to-file", "a.txt", "docs/old.md"):
        (own / name).unlink()
    (own / "docs").rmdir()
    make_links(
        own, {"moved": "b.txt", "new": "b.txt", "dangling": "nowhere", "a.txt": "b.txt", "docs": "other"}
    )
    (own / "to-file").write_text("a file\n")
    (own / "b.txt").write_text("two\n")
    (own / "other").mkdir()
    (own / "other" / "old.md").write_text("not the old one\n")
    plan = await runtime.merge(fork.id)
    assert plan.left == ()
    links = {path.name: os.readlink(path) for path in project.iterdir() if path.is_symlink()}
    assert links == {
        "moved": "b.txt",
        "new": "b.txt",
        "dangling": "nowhere",
        "a.txt": "b.txt",
        "docs": "other",
    }
    assert (project / "to-file").read_text() == "a file\n"
    assert (project / "b.txt").read_text() == "two\n"
    assert (project / "other" / "old.md").read_text() == "not the old one\n"
    assert not os.path.lexists(project / "gone")
    assert (await runtime.plan_merge(fork.id)).proposals == ()


async def test_f05_a_symlink_that_changed_in_both_is_a_conflict(runtime: Runtime, project: Path) -> None:
    make_links(project, {"link": "a.txt"})
    _, fork = await parent_and_fork(runtime, project)
    for folder, target in ((runtime.home.workspace(fork.id), "one"), (project, "two")):
        (folder / "link").unlink()
        make_links(folder, {"link": target})
    with pytest.raises(CommitConflict) as refused:
        await runtime.merge(fork.id)
    assert refused.value.paths == ("link",)
    assert os.readlink(project / "link") == "two"


async def test_f05_a_merge_that_fails_changes_nothing(tmp_path: Path, project: Path) -> None:
    settings = Settings(workspace_bytes=1000)
    runtime = await Runtime.start(home=tmp_path / "small", settings=settings, servers=())
    try:
        parent, fork = await parent_and_fork(runtime, project)
        await fork.execute("open('a.txt', 'w').write('x' * 600)")
        await fork.commit()
        (project / "mine.txt").write_text("y" * 600)
        parent.workspace.recount()
        before = files(project)
        with pytest.raises(QuotaExceeded):
            await runtime.merge(fork.id)
        assert files(project) == before
        assert parent.proposals() == ()
    finally:
        await runtime.close()


async def test_f05_a_merge_that_is_killed_before_its_commit_leaves_proposals(
    runtime: Runtime, project: Path
) -> None:
    parent, fork = await parent_and_fork(runtime, project)
    await fork.execute("open('a.txt', 'w').write('fork\\n')")
    await runtime.merge(fork.id)
    events = [entry.event for entry in await runtime.store.read(parent.id)]
    [staged] = [each for each in events if isinstance(each, ForkChangesStaged)]
    [committed] = [each for each in events if isinstance(each, ProposalsCommitted)]
    assert events.index(staged) < events.index(committed), "what is committed is on record before"
    await parent.close()
    (project / "a.txt").write_text("one\n")
    journal = await runtime.store.open(parent.id)
    await journal.append(staged)  # and here the process dies
    await journal.release()
    again = await runtime.resume(parent.id, policy=STAGES, needs_model=False)
    assert [each.path for each in again.proposals()] == ["a.txt"]
    await again.commit()
    assert files(project)["a.txt"] == "fork\n"


async def test_f05_only_what_was_shown_is_merged(runtime: Runtime, project: Path) -> None:
    _, fork = await parent_and_fork(runtime, project)
    await fork.execute("open('a.txt', 'w').write('shown\\n')")
    shown = await runtime.plan_merge(fork.id)
    await fork.execute("open('a.txt', 'w').write('other\\n')")
    with pytest.raises(CommitConflict, match="since the merge was shown"):
        await runtime.merge(fork.id, shown=shown)
    assert files(project)["a.txt"] == "one\n"
    await runtime.merge(fork.id, shown=await runtime.plan_merge(fork.id))
    assert files(project)["a.txt"] == "other\n"


async def test_f05_a_rewind_of_the_parent_takes_a_merge_back(runtime: Runtime, project: Path) -> None:
    parent, fork = await parent_and_fork(runtime, project)
    await fork.execute("open('a.txt', 'w').write('fork\\n')")
    await runtime.merge(fork.id)
    await parent.execute("2")
    await parent.rewind(1)
    assert files(project)["a.txt"] == "one\n"


async def test_f05_only_a_fork_can_be_merged_and_only_while_its_parent_exists(
    runtime: Runtime, project: Path
) -> None:
    parent, fork = await parent_and_fork(runtime, project)
    with pytest.raises(InvalidInput, match="is not a fork"):
        await runtime.merge(parent.id)
    other = await runtime.create(policy=STAGES, needs_model=False)
    with pytest.raises(InvalidInput, match="is not a fork of"):
        await other.merge(fork)
    await parent.close()
    await runtime.store.delete(parent.id)
    with pytest.raises(SessionNotFound, match="was deleted"):
        await runtime.merge(fork.id)
