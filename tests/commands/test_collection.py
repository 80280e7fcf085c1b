"""What programs changed is collected right: deletions, renames, modes, links, swaps, huge and strange files."""

import asyncio
import hashlib
import os
import stat
from pathlib import Path

import pytest
from tests.commands.conftest import Shell, run_outside

from holdfast.commands import CollectedChanges, CommandRequest, CommandSandbox, StagedFile
from holdfast.core import LINK_MODE
from holdfast.core.errors import CommandError


def effects(changes: CollectedChanges) -> dict[str, str]:
    return {effect.path: effect.kind for effect in changes.effects}


def refused(changes: CollectedChanges) -> dict[str, str]:
    return {each.path: each.because for each in changes.not_collected}


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    for number in range(6):
        path = folder / f"d{number % 2}" / f"s{number % 3}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n")
    (folder / "link").symlink_to("d0/s0/f0")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    return folder


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("rm -r d0", {"d0/s0/f0": "deleted", "d0/s1/f4": "deleted", "d0/s2/f2": "deleted"}),
        ("rm -r d0/s0; mkdir d0/s0; echo new > d0/s0/g", {"d0/s0/f0": "deleted", "d0/s0/g": "created"}),
        (
            "rm -r d0; mkdir -p d0/s0; echo 0 > d0/s0/f0; echo x > d0/s0/h",
            {"d0/s0/h": "created", "d0/s1/f4": "deleted", "d0/s2/f2": "deleted"},
        ),
        (
            "mv d0 moved",
            {
                **{f"d0/{path}": "deleted" for path in ("s0/f0", "s1/f4", "s2/f2")},
                **{f"moved/{path}": "created" for path in ("s0/f0", "s1/f4", "s2/f2")},
            },
        ),
        ("mv d0/s0/f0 d0/s0/g", {"d0/s0/f0": "deleted", "d0/s0/g": "created"}),
        (
            "rm d0/s0/f0; mkdir d0/s0/f0; echo in > d0/s0/f0/in",
            {"d0/s0/f0": "deleted", "d0/s0/f0/in": "created"},
        ),
        ("rm -r d0/s0; echo file > d0/s0", {"d0/s0/f0": "deleted", "d0/s0": "created"}),
        ("chmod +x d0/s0/f0", {"d0/s0/f0": "modified"}),
        ("touch d0/s0/f0; echo 4 > d0/s1/f4; chmod 644 run.sh", {}),
        ("echo x > d0/s0/f0; echo 0 > d0/s0/f0", {}),
        ("ln d0/s0/f0 hard", {"hard": "created"}),
        ("mkdir -p empty/deep", {}),
        ("rm d0/s0/f0; echo 1 > d0/s0/f0", {"d0/s0/f0": "modified"}),
    ],
)
async def test_a_change_is_collected_as_what_it_is(
    sandbox: CommandSandbox, shell: Shell, script: str, expected: dict[str, str]
) -> None:
    await sandbox.show([])
    assert (await shell(script)).outcome.code == 0
    assert effects(await sandbox.collect()) == expected


async def test_set_user_id_is_dropped_from_a_mode(sandbox: CommandSandbox, shell: Shell) -> None:
    await sandbox.show([])
    await shell("cp run.sh s; chmod 6755 s; chmod 1700 run.sh")
    modes = {effect.path: effect.mode for effect in (await sandbox.collect()).effects}
    assert modes == {"s": 0o755, "run.sh": 0o700}


async def test_changes_are_relative_to_what_is_staged(sandbox: CommandSandbox, shell: Shell) -> None:
    staged = [
        StagedFile(path="made.txt", content=b"made"),
        StagedFile(path="kept/same.txt", content=b"same", mode=0o755),
        StagedFile(path="d0/s0/f0", content=None),
        StagedFile(path="d1/s1/f1", content=b"staged"),
    ]
    await sandbox.show(staged)
    assert (await sandbox.collect()).effects == ()
    await shell("rm made.txt; echo again > d0/s0/f0; echo 1 > d1/s1/f1")
    assert effects(await sandbox.collect()) == {
        "made.txt": "deleted",
        "d0/s0/f0": "created",
        "d1/s1/f1": "modified",
    }
    await sandbox.show(staged)
    assert (
        await shell("cat made.txt d1/s1/f1; stat -c %a kept/same.txt; ls d0/s0")
    ).output == "madestaged755\n"
    await shell("rm -r kept; mv d1/s1 d1/t1")
    assert effects(await sandbox.collect()) == {
        "kept/same.txt": "deleted",
        "d1/s1/f1": "deleted",
        "d1/t1/f1": "created",
    }


async def test_what_cannot_be_proposed_is_said_with_the_reason(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    await sandbox.show([], hidden=["run.sh"])
    await shell(
        "mkfifo pipe; ln -s /etc/passwd out; ln -sf d1 link; truncate -s 1G sparse; truncate -s 50M large; echo blind > run.sh;"
        "python3 -c \"import socket; socket.socket(1).bind('sock')\"; touch $'bad\\xff'; echo ok > ok"
    )
    changes = await sandbox.collect()
    assert effects(changes) == {"ok": "created", "large": "created", "link": "modified"}
    said = refused(changes)
    assert said.keys() == {"pipe", "out", "sparse", "run.sh", "sock", "bad\\udcff"}
    assert "link to '/etc/passwd', which has an absolute target" in said["out"]
    assert "1,073,741,824 bytes" in said["sparse"]
    assert "hidden" in said["run.sh"]
    assert (workspace / "run.sh").read_text() == "#!/bin/sh\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("ln -s d0/s0 l; ln -s ../../run.sh d1/s1/up", {"l": "created", "d1/s1/up": "created"}),
        ("rm link", {"link": "deleted"}),
        ("ln -sfn d1 link", {"link": "modified"}),
        ("ln -sfn d1 link; ln -sfn d0/s0/f0 link; touch -h link", {}),
        ("rm link; echo file > link", {"link": "modified"}),
        ("rm run.sh; ln -s d0 run.sh", {"run.sh": "modified"}),
        ("rm -r d0; ln -s d1 d0", {"d0": "created"} | {f"d0/{each}": "deleted" for each in ("s0/f0", "s1/f4", "s2/f2")}),
        ("rm link; mkdir link; echo 1 > link/f", {"link": "deleted", "link/f": "created"}),
        ("mv link moved", {"link": "deleted", "moved": "created"}),
        ("echo through > link", {"d0/s0/f0": "modified"}),
    ],
)  # fmt: skip
async def test_links_are_collected_as_names(
    sandbox: CommandSandbox, shell: Shell, script: str, expected: dict[str, str]
) -> None:
    await sandbox.show([])
    assert (await shell(script)).outcome.code == 0
    changes = await sandbox.collect()
    assert effects(changes) == expected
    assert changes.not_collected == ()
    staged = [
        StagedFile(
            path=each.path,
            content=None if each.kind == "deleted" else sandbox.read_changed(each.path),
            mode=each.mode,
        )
        for each in changes.effects
    ]
    shown = (await shell("find . -type l -printf '%p %l\\n' -o -type f -print0 | sort -z")).output
    await sandbox.show(staged)
    assert (await shell("find . -type l -printf '%p %l\\n' -o -type f -print0 | sort -z")).output == shown
    assert (await sandbox.collect()).effects == ()


async def test_a_link_that_leads_out_is_refused_with_the_reason(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    (workspace / "absolute").symlink_to("/etc/hostname")
    await sandbox.show([])
    await shell(
        "ln -s ../x up; ln -s d0/../../x around; ln -s /tmp t; ln -sfn /etc/shadow absolute; ln -s .. d0/top"
    )
    changes = await sandbox.collect()
    assert effects(changes) == {"d0/top": "created"}
    assert refused(changes).keys() == {"up", "around", "t", "absolute"}
    assert "leads out of the workspace" in refused(changes)["up"]


async def test_staged_links_are_shown_beside_a_running_program(sandbox: CommandSandbox, shell: Shell) -> None:
    await sandbox.show([])
    process = await sandbox.start(
        CommandRequest(argv=("sleep", "600"), environment={}), name="sleep", on_output=lambda _: None
    )
    await sandbox.show([StagedFile(path="l", content=b"d0/s0/f0", mode=LINK_MODE)])
    assert (await shell("readlink l; cat l")).output == "d0/s0/f0\n0\n"
    await shell("ln -sfn d1 link")
    assert effects(await sandbox.collect()) == {"link": "modified"}
    await sandbox.show([StagedFile(path="l", content=b"d0/s0/f0", mode=LINK_MODE)])
    assert (await shell("readlink l link")).output == "d0/s0/f0\nd0/s0/f0\n"
    await sandbox.stop(process)


async def test_deep_trees_and_many_files_are_bounded(sandbox: CommandSandbox, shell: Shell) -> None:
    await sandbox.show([])
    ran = await shell(
        "python3 -c \"\nimport os\nfd=os.open('.',0)\n"
        "for i in range(400):\n  os.mkdir('d',dir_fd=fd);n=os.open('d',0,dir_fd=fd);os.close(fd);fd=n\n\"\n"
        "mkdir many; cd many; seq 6000 | xargs touch"
    )
    assert ran.outcome.code == 0
    changes = await sandbox.collect()
    assert len(changes.effects) + len(changes.not_collected) <= 5001
    assert "more than 5,000 changes" in refused(changes)["."]
    await sandbox.show([])
    assert (await shell("ls")).output.split() == ["d0", "d1", "link", "run.sh"]


async def test_odd_names_are_proposed_under_their_own_name(sandbox: CommandSandbox, shell: Shell) -> None:
    await sandbox.show([])
    await shell("touch -- $'a\\nb' ' ' '-rf' 'a\\b' $'x\\u202etxt'; mkdir '...'; touch '.../k'")
    assert effects(await sandbox.collect()).keys() == {"a\nb", " ", "-rf", "a\\b", "x\u202etxt", ".../k"}


async def test_content_that_changed_after_collection_is_refused(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await sandbox.show([])
    await shell("echo one > made")
    effect = (await sandbox.collect()).effects[0]
    assert effect.digest == hashlib.sha256(b"one\n").hexdigest()
    assert sandbox.read_changed("made") == b"one\n"
    await shell("echo two > made")
    with pytest.raises(CommandError, match="no longer"):
        sandbox.read_changed("made")
    with pytest.raises(CommandError, match="no longer"):
        sandbox.read_changed("d0/s0/f0")


async def test_the_program_cannot_forge_a_mark_of_the_overlay(
    sandbox: CommandSandbox, shell: Shell, tmp_path: Path
) -> None:
    await sandbox.show([])
    await shell(
        "python3 -c \"\nimport os\nos.mkdir('ox')\nfor n,v in (('opaque',b'y'),('redirect',b'/etc'),('whiteout',b'y')):\n"
        "  try: os.setxattr('ox','user.overlay.'+n,v)\n  except OSError: pass\n\"; mknod w c 0 0; mknod b b 8 0"
    )
    upper = next((tmp_path / "state").rglob("upper/ox"))
    marks = {name for name in os.listxattr(upper) if name.startswith("user.overlay.")}
    assert not marks & {"user.overlay.opaque", "user.overlay.redirect", "user.overlay.whiteout"}
    assert not [path for path in upper.parent.iterdir() if stat.S_ISCHR(path.lstat().st_mode)]


async def test_ignored_files_are_scratch_that_persists(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    run_outside("git", "init", "-q", cwd=workspace)
    (workspace / ".gitignore").write_text("build/\n*.log\n!keep.log\n/only-top\n")
    await sandbox.show([])
    await shell(
        "mkdir -p build d0/build __pycache__ d0/only-top; touch build/x d0/build/y a.log keep.log only-top d0/only-top/z"
        " __pycache__/c; git add -A >/dev/null 2>&1"
    )
    changes = await sandbox.collect()
    assert effects(changes).keys() == {"keep.log", "d0/only-top/z"}
    assert set(changes.scratch) == {".git/", "build/", "d0/build/", "a.log", "only-top", "__pycache__/"}
    await sandbox.show([])
    ran = await shell(
        "ls build/x d0/build/y a.log only-top __pycache__/c keep.log 2>&1 | grep -c 'cannot access'"
    )
    assert ran.output == "1\n"
    await sandbox.drop_scratch()
    await sandbox.show([])
    assert (await shell("ls -d build a.log d0/build 2>&1 | grep -c 'cannot access'")).output == "3\n"


@pytest.mark.parametrize("rule", ["/workspace/", "*"])
async def test_a_workspace_that_git_ignores_is_not_scratch_as_a_whole(
    sandbox: CommandSandbox, shell: Shell, workspace: Path, rule: str
) -> None:
    run_outside("git", "init", "-q", cwd=workspace.parent)
    (workspace.parent / ".gitignore").write_text(f"{rule}\n")
    await sandbox.show([])
    await shell("mkdir -p build; touch build/x made.txt")
    changes = await sandbox.collect()
    assert effects(changes) == {"made.txt": "created"}
    assert changes.scratch == ("build/",)


async def test_a_tracked_file_is_never_scratch(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    (workspace / "build").mkdir()
    (workspace / "build" / "tracked").write_text("t\n")
    (workspace / ".gitignore").write_text("build/\n*.cfg\n")
    (workspace / "x.cfg").write_text("x\n")
    for words in (["init", "-q"], ["add", "-f", "build/tracked", "x.cfg"]):
        run_outside("git", *words, cwd=workspace)
    await sandbox.show([])
    await shell("echo changed > build/tracked; echo changed > x.cfg; touch y.cfg")
    changes = await sandbox.collect()
    assert effects(changes) == {"build/tracked": "modified", "x.cfg": "modified"}
    assert changes.scratch == ("y.cfg",)


async def test_a_folder_swapped_for_a_link_during_collection_leaks_nothing(
    sandbox: CommandSandbox, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("HOST SECRET")
    secret = hashlib.sha256(b"HOST SECRET").hexdigest()
    await sandbox.show([])
    swap = (
        f"import os\nos.mkdir('d'); open('d/f','w').write('mine'); os.symlink({str(tmp_path / 'outside')!r}, 's'); print('up', flush=True)\n"
        "while True:\n  os.rename('d','d2'); os.rename('s','d'); os.rename('d','s'); os.rename('d2','d')"
    )
    started = asyncio.Event()
    request = CommandRequest(argv=("python3", "-c", swap), environment={})
    process = await sandbox.start(request, name="swap", on_output=lambda _: started.set())
    await started.wait()
    for _ in range(30):
        changes = await sandbox.collect()
        assert secret not in {effect.digest for effect in changes.effects}
    await sandbox.stop(process)


async def test_an_empty_folder_in_the_place_of_a_deleted_file_stays(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await shell("rm run.sh; mkdir -p run.sh/empty")
    changes = await sandbox.collect()
    assert [(each.path, each.kind) for each in changes.effects] == [("run.sh", "deleted")]
    await sandbox.show([StagedFile(path="run.sh", content=None)])
    assert (await shell("ls run.sh")).output == "empty\n"
    assert (await sandbox.collect()).effects == ()


async def test_a_file_whose_deletion_is_rejected_shows_where_an_empty_folder_took_its_place(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await sandbox.show([])
    await shell("rm run.sh; mkdir -p run.sh/empty")
    assert effects(await sandbox.collect()) == {"run.sh": "deleted"}
    await sandbox.show([])
    assert (await shell("cat run.sh")).output == "#!/bin/sh\n"
    assert effects(await sandbox.collect()) == {}


async def test_a_file_made_as_it_was_in_a_folder_that_was_removed_is_reported_when_it_goes(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await sandbox.show([])
    await shell("rm -r d0; mkdir -p d0/s0; echo 0 > d0/s0/f0")
    assert effects(await sandbox.collect()) == {"d0/s1/f4": "deleted", "d0/s2/f2": "deleted"}
    await shell("rm -r d0")
    assert effects(await sandbox.collect()) == {"d0/s0/f0": "deleted"}


async def test_a_folder_stays_removed_when_the_file_in_its_place_is_deleted(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await shell("rm -r d0; echo file > d0")
    changes = await sandbox.collect()
    deleted = [StagedFile(path=each.path, content=None) for each in changes.effects]
    assert "d0" in [each.path for each in deleted]
    await sandbox.show(deleted)
    assert (await shell("ls")).output == "d1\nlink\nrun.sh\n"


async def test_a_file_in_a_folder_that_came_back_stays(sandbox: CommandSandbox, shell: Shell) -> None:
    deleted = [StagedFile(path=path, content=None) for path in ("d0", "d0/s0/f0", "d0/s1/f4", "d0/s2/f2")]
    await sandbox.show([*deleted[:1], *deleted[2:], StagedFile(path="d0/s0/f0", content=b"new\n")])
    await shell("echo more > d0/s0/more")
    assert effects(await sandbox.collect()) == {"d0/s0/more": "created"}


async def test_two_names_of_one_file_are_two_files_for_the_next_command(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    await shell("echo 1 > a; ln a b")
    await sandbox.collect()
    staged = [StagedFile(path=name, content=b"1\n", mode=0o644) for name in ("a", "b")]
    await sandbox.show(staged)
    await shell("echo 2 > a")
    assert effects(await sandbox.collect()) == {"a": "modified"}


async def test_an_empty_folder_of_the_base_stays_removed_below_a_folder_that_was_moved_over_it(
    sandbox: CommandSandbox, shell: Shell, workspace: Path
) -> None:
    (workspace / "d0/s0/f0").unlink()
    (workspace / "d0/s0/empty").mkdir()
    await shell("rm -r d0; mkdir -p new/s0; echo 1 > new/s0/g; mv new d0")
    staged = [
        StagedFile(path=effect.path, content=None if effect.kind == "deleted" else b"1\n", mode=effect.mode)
        for effect in (await sandbox.collect()).effects
    ]
    await sandbox.show(staged)
    await shell("echo 1 > d0/s0/empty")
    assert effects(await sandbox.collect()) == {"d0/s0/empty": "created"}
