"""Files of another user or group than the sandbox has: programs change them like any other."""

import os
from pathlib import Path

import pytest
from tests.commands.conftest import Shell, run_outside

from holdfast.commands import CommandRequest, CommandSandbox, StagedFile
from holdfast.commands.layers.search import search_workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A project whose files belong to a second group of the person; where the person is root, some to another user."""
    others = [group for group in os.getgroups() if group != os.getegid()]
    group = 12345 if os.geteuid() == 0 else next(iter(others), None)
    if group is None:
        pytest.skip("this user has one group only")
    folder = tmp_path / "workspace"
    (folder / "src" / "deep").mkdir(parents=True)
    for name in ("top", "src/a", "src/deep/b", "src/kept"):
        (folder / name).write_text(f"{name}\n")
    run_outside("git", "init", "-q", cwd=folder)
    run_outside("git", "add", "-A", cwd=folder)
    for path in folder.rglob("*"):
        os.chown(path, 12345 if os.geteuid() == 0 and path.name == "b" else -1, group)
    return folder


async def test_programs_change_files_of_other_owners_and_only_that_is_collected(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([])
    assert (await sandbox.collect()).effects == ()
    ran = await shell(
        "echo 1 >> top; echo 1 >> src/a; echo 1 >> src/deep/b; echo 1 > src/deep/new;"
        "git -c user.name=a -c user.email=a@x commit -qam first; git log --oneline | wc -l"
    )
    assert ran.output == "1\n"
    changes = await sandbox.collect()
    assert {each.path: each.kind for each in changes.effects} == {
        "top": "modified",
        "src/a": "modified",
        "src/deep/b": "modified",
        "src/deep/new": "created",
    }
    assert changes.not_collected == ()
    await sandbox.show([StagedFile(path="src/a", content=b"staged\n")])
    (workspace / "src" / "kept").write_text("by the person\n")
    await sandbox.show([StagedFile(path="src/a", content=b"staged\n")])
    ran = await shell("cat top src/a src/deep/b src/kept; ls src/deep; rm -r src/deep; mv src/a src/c")
    assert ran.output == "top\nstaged\nsrc/deep/b\nby the person\nb\n"
    assert {each.path: each.kind for each in (await sandbox.collect()).effects} == {
        "src/a": "deleted",
        "src/c": "created",
        "src/deep/b": "deleted",
    }


async def test_a_copy_follows_the_person_beside_a_running_program(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([])
    process = await sandbox.start(
        CommandRequest(argv=("sleep", "600"), environment={}), name="sleep", on_output=lambda _: None
    )
    (workspace / "src" / "kept").write_text("by the person\n")
    await sandbox.show([])
    assert (await shell("cat src/kept")).output == "by the person\n"
    assert (await sandbox.collect()).effects == ()
    await sandbox.stop(process)


def test_a_search_finds_what_belongs_to_others_and_counts_what_is_too_much(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = search_workspace(workspace)
    assert {"src", "src/deep", ".git"} <= set(found.foreign_folders)
    assert {"top", "src/a", "src/deep/b", "src/kept", ".git/HEAD"} <= set(found.foreign_files)
    assert not [path for path in found.foreign_files if path.startswith(".git/objects/")]
    monkeypatch.setattr("holdfast.commands.layers.search.MAX_FOREIGN_FILES", 2)
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "x").write_text("x")
    for path in (workspace / "node_modules", workspace / "node_modules" / "x"):
        os.chown(path, -1, (workspace / "src").stat().st_gid)
    few = search_workspace(workspace)
    assert "node_modules/x" not in few.foreign_files
    assert len(few.foreign_files) == 2
    assert few.left == len(found.foreign_files) + 1 - 2
