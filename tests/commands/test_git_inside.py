"""git works inside, in clones, linked worktrees, submodules and nested repositories, and touches nothing outside."""

import os
from pathlib import Path

import pytest
from tests.commands.conftest import Open, Shell, run_in, run_outside

from holdfast.commands import CommandRequest, CommandSandbox, SandboxStatus, open_sandbox
from holdfast.commands.layers.git_folder import outside_git_folder

COMMIT = ("git", "-c", "user.name=Person", "-c", "user.email=p@example.com", "commit", "-q", "-m", "first")
WORK = "git checkout -q -b work && echo more > more.txt && git add -A && git -c user.name=A -c user.email=a@x commit -q -m second && git log --oneline | wc -l && git status --short | wc -l"


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    run_outside("git", "init", "-q", "-b", "main", cwd=folder)
    (folder / "file.txt").write_text("file\n")
    run_outside("git", "add", "-A", cwd=folder)
    run_outside(*COMMIT, cwd=folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return repository(tmp_path / "workspace")


async def test_a_commit_inside_changes_nothing_outside(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    before = contents(workspace)
    await sandbox.show([])
    ran = await shell(f"{WORK}; git stash list; git rebase -q main; git log -1 --format=%s")
    assert ran.output.split() == ["2", "0", "second"]
    changes = await sandbox.collect()
    assert [effect.path for effect in changes.effects] == ["more.txt"]
    assert changes.scratch == (".git/",)
    assert contents(workspace) == before


async def test_a_linked_worktree_works_and_its_repository_stays(
    tmp_path: Path, status: SandboxStatus
) -> None:
    main = repository(tmp_path / "main")
    run_outside("git", "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "side", cwd=main)
    before = contents(main)
    sandbox = await open_sandbox(tmp_path / "tree", tmp_path / "state", status=status)
    try:
        ran = await run_in(sandbox, WORK)
        assert ran.output.split() == ["2", "0"]
        await sandbox.show([])
        assert (await run_in(sandbox, "git log --oneline | wc -l")).output.strip() == "2"
        await sandbox.drop_scratch()
        assert (await run_in(sandbox, "git log --oneline | wc -l")).output.strip() == "1"
    finally:
        await sandbox.close()
    assert contents(main) == before


async def test_submodules_and_nested_repositories_work(
    sandbox: CommandSandbox, shell: Shell, workspace: Path, tmp_path: Path
) -> None:
    other = repository(tmp_path / "other")
    run_outside(
        "git", "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other), "sub", cwd=workspace
    )
    repository(workspace / "nested")
    await sandbox.show([])
    assert (await shell(f"cd sub && {WORK}")).output.split() == ["2", "0"]
    assert (await shell(f"cd nested && {WORK}")).output.split() == ["2", "0"]
    changes = await sandbox.collect()
    assert [effect.path for effect in changes.effects] == ["nested/more.txt", "sub/more.txt"]


async def test_credentials_in_the_configuration_are_not_shown(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    with (workspace / ".git" / "config").open("a") as config:
        config.write(
            '[remote "origin"]\n\turl = https://person:SECRET-1@example.com/x.git\n[credential]\n\thelper = !echo SECRET-2\n'
        )
        config.write(
            '[http "https://example.com/"]\n\textraheader = AUTHORIZATION: SECRET-3\n[url "https://SECRET-4@h/"]\n\tinsteadOf = h:\n'
        )
    await sandbox.show([])
    ran = await shell("cat .git/config; git remote -v; git config --list")
    assert "SECRET" not in ran.output
    assert "https://example.com/x.git" in ran.output
    await shell("git config user.name Inside")
    await sandbox.show([])
    assert (await shell("git config user.name")).output == "Inside\n"


async def test_credentials_of_nested_repositories_are_not_shown(open_here: Open, workspace: Path) -> None:
    secret = '[remote "origin"]\n\turl = https://person:SECRET@example.com/x.git\n'
    for folder in ("nested", "a/b/deep"):
        run_outside("git", "init", "-q", folder, cwd=workspace)
        with (workspace / folder / ".git" / "config").open("a") as config:
            config.write(secret)
    (workspace / "nested" / ".git" / "config.worktree").write_text(secret)
    sandbox = await open_here()
    await sandbox.show([])
    ran = await run_in(
        sandbox, "cat */.git/config* a/b/deep/.git/config; git -C nested remote get-url origin"
    )
    assert "SECRET" not in ran.output
    assert ran.output.endswith("https://example.com/x.git\n")
    await run_in(sandbox, "rm -rf nested")
    await sandbox.collect()
    await sandbox.show([])
    assert "SECRET" not in (await run_in(sandbox, "cat nested/.git/config")).output


async def test_credentials_of_bare_and_of_later_repositories_are_not_shown(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([])
    secret = '[remote "origin"]\n\turl = https://person:SECRET@example.com/x.git\n'
    run_outside("git", "init", "-q", "--bare", "mirror/bare.git", cwd=workspace)
    run_outside("git", "init", "-q", "later", cwd=workspace)
    for config in ("mirror/bare.git/config", "later/.git/config"):
        with (workspace / config).open("a") as file:
            file.write(secret)
    read = "cat mirror/bare.git/config later/.git/config; git -C mirror/bare.git remote get-url origin"
    while True:
        await sandbox.show([])
        ran = await shell(read)
        if "SECRET" not in ran.output:  # the search is repeated after twenty times its own duration
            break
    assert ran.output.endswith("https://example.com/x.git\n")
    assert (await sandbox.collect()).effects == ()
    process = await sandbox.start(
        CommandRequest(argv=("sleep", "600"), environment={}), name="sleep", on_output=lambda _: None
    )
    await shell("echo '[a]' >> mirror/bare.git/config")
    assert [each.path for each in (await sandbox.collect()).effects] == ["mirror/bare.git/config"]
    await sandbox.show([])
    assert "SECRET" not in (await shell(read)).output
    await sandbox.stop(process)


async def test_a_cleaned_configuration_is_not_a_change(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    with (workspace / ".git" / "config").open("a") as config:
        config.write('[remote "origin"]\n\turl = https://person:SECRET@example.com/x.git\n')
    await sandbox.show([])
    await shell("true")
    assert (await sandbox.collect()).scratch == ()
    await shell("git config user.name Inside")
    assert (await sandbox.collect()).scratch == (".git/",)


async def test_a_removed_git_folder_stays_removed(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    with (workspace / ".git" / "config").open("a") as config:
        config.write('[remote "origin"]\n\turl = https://person:SECRET@example.com/x.git\n')
    await sandbox.show([])
    await shell("rm -rf .git")
    await sandbox.show([])
    assert (await shell("ls -A | grep .git")).output == ""


def test_a_git_file_that_names_a_folder_of_others_shows_nothing(tmp_path: Path) -> None:
    workspace, private = tmp_path / "workspace", tmp_path / "private"
    for folder in (workspace, private / "objects", private / "refs"):
        folder.mkdir(parents=True)
    (private / "HEAD").write_text("ref: refs/heads/main\n")
    (private / "config").write_text("[core]\n")
    (workspace / ".git").write_text(f"gitdir: {private}\n")
    assert outside_git_folder(workspace) is None
    (private / "commondir").write_text(".\n")
    (private / "gitdir").write_text("/elsewhere/.git\n")
    assert outside_git_folder(workspace) is None
    (private / "gitdir").write_text(f"{workspace}/.git\n")
    assert outside_git_folder(workspace) == Path(os.path.realpath(private))
