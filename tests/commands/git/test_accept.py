"""Commits made in the sandbox reach the person's repository as objects and one ref, and nothing else does."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from tests.commands.conftest import run_in
from tests.commands.git.repositories import commit_file, git, make_repository, snapshot

from holdfast.commands import CommandSandbox, SandboxStatus, open_sandbox
from holdfast.commands.git import (
    AcceptedCommits,
    CommitProposal,
    HostGit,
    accept_commits,
    propose_commits,
)
from holdfast.core.errors import CommandError

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann", "GIT_COMMITTER_EMAIL": "ann@example.com",
}  # fmt: skip


class Work:
    """A sandbox over a repository, and the two steps of accepting its commits."""

    def __init__(self, sandbox: CommandSandbox, workspace: Path, scratch: Path) -> None:
        self.sandbox = sandbox
        self.workspace = workspace
        self.scratch = scratch
        self.git = HostGit()

    async def run(self, script: str, folder: str = ".") -> str:
        environment = " ".join(f"{name}='{value}'" for name, value in IDENTITY.items())
        ran = await run_in(self.sandbox, f"export {environment}; cd {folder} && {script}")
        assert ran.outcome.code == 0, ran.output
        return ran.output

    async def propose(self, folder: str = ".", source: str = "HEAD") -> tuple[CommitProposal, bytes]:
        found = await propose_commits(
            self.sandbox,
            self.git,
            workspace=self.workspace,
            scratch=self.scratch,
            session="s1",
            folder=folder,
            source=source,
        )
        assert found is not None
        return found

    async def accept(self, proposal: CommitProposal, bundle: bytes, replaces: str = "") -> AcceptedCommits:
        return await accept_commits(self.git, proposal, bundle, workspace=self.workspace, replaces=replaces)


WorkIn = Callable[[Path], Awaitable[Work]]


@pytest.fixture
async def work_in(tmp_path: Path, status: SandboxStatus) -> AsyncIterator[WorkIn]:
    """Opens a sandbox over a workspace; it is closed at the end of the test."""
    opened: list[CommandSandbox] = []
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    async def start(workspace: Path) -> Work:
        sandbox = await open_sandbox(workspace, tmp_path / "state", status=status)
        opened.append(sandbox)
        await sandbox.show([])
        return Work(sandbox, workspace, scratch)

    yield start
    assert list(scratch.iterdir()) == []
    for sandbox in opened:
        await sandbox.close()


async def test_commits_are_offered_and_accepted_as_one_ref(tmp_path: Path, work_in: WorkIn) -> None:
    workspace = make_repository(tmp_path / "project")
    before = snapshot(workspace)
    work = await work_in(workspace)
    await work.run(
        "echo two > a.txt && git commit -qam second && mkdir d && echo x > d/b && git add d && git commit -qm third"
    )
    assert await work.run("git log --format=%s") == "third\nsecond\nfirst\n"
    assert snapshot(workspace) == before
    proposal, bundle = await work.propose()
    assert snapshot(workspace) == before
    assert proposal.ref == "refs/heads/holdfast/s1"
    assert [(each.subject, each.author) for each in proposal.offered.commits] == [
        ("third", "Ann <ann@example.com>"), ("second", "Ann <ann@example.com>"),
    ]  # fmt: skip
    assert [(each.path, each.kind, each.mode) for each in proposal.offered.files] == [
        ("a.txt", "written", "100644"), ("d/b", "written", "100644"),
    ]  # fmt: skip
    accepted = await work.accept(proposal, bundle)
    assert accepted.after == git(workspace, "rev-parse", "holdfast/s1")
    assert git(workspace, "log", "--format=%s", "holdfast/s1") == "third\nsecond\nfirst"
    assert git(workspace, "status", "--porcelain") == ""
    added = snapshot(workspace).keys() - before.keys()
    assert {name for name in added if not name.startswith(".git/objects/pack/pack-")} == {
        ".git/refs/heads/holdfast/s1", ".git/logs/refs/heads/holdfast/s1",
    }  # fmt: skip
    assert all(snapshot(workspace)[name] == content for name, content in before.items())
    git(workspace, "fsck", "--strict")


async def test_without_new_commits_there_is_nothing_to_offer(tmp_path: Path, work_in: WorkIn) -> None:
    workspace = make_repository(tmp_path / "project")
    work = await work_in(workspace)
    assert (
        await propose_commits(work.sandbox, work.git, workspace=workspace, scratch=work.scratch, session="s1")
        is None
    )
    with pytest.raises(CommandError, match="no commit"):
        await work.propose(source="missing")
    with pytest.raises(CommandError, match="not a branch"):
        await work.propose(source="--upload-pack=x")


async def test_rebase_stash_and_branches_work_and_a_rewritten_branch_replaces_what_was_accepted(
    tmp_path: Path, work_in: WorkIn
) -> None:
    workspace = make_repository(tmp_path / "project")
    work = await work_in(workspace)
    await work.run(
        "git switch -qc feature && echo b > b && git add b && git commit -qm b && echo c > c && git add c && git commit -qm c"
    )
    accepted = await work.accept(*await work.propose(source="feature"))
    await work.run(
        "echo dirty >> a.txt && git stash -q && git rebase -q --root && git commit -q --amend -m changed && git stash pop -q"
    )
    assert (await work.run("git status --porcelain")).strip() == "M a.txt"
    proposal, bundle = await work.propose()
    with pytest.raises(CommandError, match="commits that are not in the proposal") as refused:
        await work.accept(proposal, bundle)
    assert refused.value.hint == "rename it first: git branch -m holdfast/s1 NEW-NAME"
    moved = await work.accept(proposal, bundle, replaces=accepted.after)
    assert moved.before == accepted.after
    assert git(workspace, "log", "-1", "--format=%s", "holdfast/s1") == "changed"
    assert git(workspace, "branch", "--show-current") == "main"


async def test_a_branch_that_is_checked_out_or_in_the_way_is_not_touched(
    tmp_path: Path, work_in: WorkIn
) -> None:
    workspace = make_repository(tmp_path / "project")
    work = await work_in(workspace)
    await work.run("git commit -q --allow-empty -m more")
    proposal, bundle = await work.propose()
    git(workspace, "switch", "-qc", "holdfast/s1")
    with pytest.raises(CommandError, match="checked out"):
        await work.accept(proposal, bundle)
    git(workspace, "branch", "-m", "holdfast")
    with pytest.raises(CommandError, match="update-ref failed"):
        await work.accept(proposal, bundle)
    with pytest.raises(CommandError, match="not the one that was proposed"):
        await work.accept(proposal, bundle + b"x")


async def test_hooks_and_configuration_made_inside_stay_inside(tmp_path: Path, work_in: WorkIn) -> None:
    workspace = make_repository(tmp_path / "project")
    hook = workspace / ".git/hooks/reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    git(workspace, "config", "core.fsmonitor", f"touch '{tmp_path}/ran'; false")
    git(workspace, "config", "core.hooksPath", str(hook.parent))
    before = snapshot(workspace)
    work = await work_in(workspace)
    await work.run(
        "git config user.name evil && printf '#!/bin/sh\\n' > .git/hooks/post-checkout && git tag inside"
        " && git config --unset core.hooksPath; git config --unset core.fsmonitor; git commit -q --allow-empty -m more"
    )
    await work.accept(*await work.propose())
    assert not (tmp_path / "ran").exists()
    after = snapshot(workspace)
    assert all(after[name] == content for name, content in before.items())
    assert not any("post-checkout" in name or "inside" in name for name in after)


async def test_a_linked_worktree_gives_its_commits_to_the_common_repository(
    tmp_path: Path, work_in: WorkIn
) -> None:
    main = make_repository(tmp_path / "main")
    git(main, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    before = snapshot(main)
    work = await work_in(tmp_path / "side")
    await work.run("echo two > a.txt && git commit -qam second")
    assert snapshot(main) == before
    await work.accept(*await work.propose())
    assert git(main, "log", "--format=%s", "holdfast/s1") == "second\nfirst"
    assert git(tmp_path / "side", "branch", "--show-current") == "side"


async def test_a_submodule_and_a_nested_repository_keep_their_commits_apart(
    tmp_path: Path, work_in: WorkIn
) -> None:
    library = make_repository(tmp_path / "library")
    workspace = make_repository(tmp_path / "project")
    git(workspace, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(library), "lib")
    git(workspace, "commit", "-qm", "add lib")
    make_repository(workspace / "nested" / "deep")
    work = await work_in(workspace)
    for folder in ("lib", "nested/deep"):
        await work.run(f"echo x > new && git add new && git commit -qm 'in {folder}'", folder)
        proposal, bundle = await work.propose(f"{folder}/.")
        assert proposal.repository == folder
        await work.accept(proposal, bundle)
        assert git(workspace / folder, "log", "-1", "--format=%s", "holdfast/s1") == f"in {folder}"
    assert git(workspace, "for-each-ref", "refs/heads/holdfast") == ""


async def test_a_repository_that_exists_only_inside_cannot_be_accepted(
    tmp_path: Path, work_in: WorkIn
) -> None:
    workspace = tmp_path / "project"
    workspace.mkdir()
    work = await work_in(workspace)
    await work.run("git init -q && git commit -q --allow-empty -m first")
    with pytest.raises(CommandError, match="no git repository"):
        await work.propose()


async def test_a_changed_proposal_is_not_what_is_accepted(tmp_path: Path, work_in: WorkIn) -> None:
    workspace = make_repository(tmp_path / "project")
    work = await work_in(workspace)
    await work.run("git commit -q --allow-empty -m more")
    proposal, bundle = await work.propose()
    other = commit_file(workspace, "b.txt", "b\n", "person")
    await work.accept(msgspec.structs.replace(proposal, repository="."), bundle)
    assert git(workspace, "rev-parse", "HEAD") == other
