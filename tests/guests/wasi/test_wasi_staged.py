"""Staging: the guest works on a copy, the workspace does not change, and the changes can become proposals."""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.guests.wasi.running import KEY, run

from holdfast.core import Answer, EscalationId, JsonObject, Parked, Returned, digest_bytes
from holdfast.guests import Guest, RunRequest
from holdfast.guests.wasi import WorkerPool, wasi_engine
from holdfast.guests.wasi.workspace_copy import CHANGED_MEANWHILE, StagedView


@pytest_asyncio.fixture(loop_scope="module")
async def staged(cache: Path, workspace: Path, tmp_path: Path, workers: WorkerPool) -> AsyncIterator[Guest]:
    """A guest on a staged view of the workspace."""
    (workspace / "a").mkdir()
    (workspace / "a" / "note").write_text("old")
    (workspace / "gone").write_text("gone")
    engine = wasi_engine(
        key=KEY, cache=cache, workspace=workspace, staged_view=tmp_path / "view", workers=workers
    )
    yield engine.guest()
    await engine.close()


async def test_changes_are_staged_and_the_workspace_is_untouched(
    staged: Guest, workspace: Path, tmp_path: Path
) -> None:
    ended = await run(
        staged, "import os\nopen('a/note', 'w').write('new')\nos.remove('gone')\nopen('more', 'w').write('!')"
    )
    assert ended.error == ""
    assert [
        (change.kind, change.path, change.before, change.after, change.is_staged) for change in ended.changes
    ] == [
        ("modified", "a/note", digest_bytes(b"old"), digest_bytes(b"new"), True),
        ("deleted", "gone", digest_bytes(b"gone"), None, True),
        ("created", "more", None, digest_bytes(b"!"), True),
    ]
    assert (workspace / "a" / "note").read_text() == "old"
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "gone"]
    assert (tmp_path / "view" / "a" / "note").read_text() == "new"


async def test_the_next_run_sees_the_workspace_and_not_what_was_proposed(
    staged: Guest, workspace: Path
) -> None:
    await run(
        staged,
        "import os\nopen('a/note', 'w').write('new')\nos.remove('gone')\nos.mkdir('b')\nopen('b/x', 'w').close()",
    )
    (workspace / "fresh").write_text("fresh")
    ended = await run(staged, "sorted(os.listdir('.')) + [open('a/note').read(), open('fresh').read()]")
    assert ended.value == ["a", "fresh", "gone", "old", "fresh"]
    assert ended.changes == ()


async def test_a_change_with_reset_times_does_not_outlive_its_run(staged: Guest) -> None:
    await run(
        staged,
        "import os\nt = os.stat('gone')\nopen('gone', 'r+').write('evil')\nos.utime('gone', ns=(t.st_atime_ns, t.st_mtime_ns))",
    )
    assert (await run(staged, "open('gone').read()")).value == "gone"


async def test_a_file_that_changed_in_the_workspace_meanwhile_cannot_be_committed(
    staged: Guest, workspace: Path
) -> None:
    async def meanwhile(operation: str, arguments: JsonObject) -> Answer:
        (workspace / "a" / "note").write_text("changed by another program")
        return Returned()

    ended = await run(staged, "open('a/note', 'a').write('mine')\ndesk.ask()", meanwhile)
    assert [(change.path, change.before) for change in ended.changes] == [("a/note", CHANGED_MEANWHILE)]


def test_a_folder_that_became_a_symlink_is_a_symlink_in_the_view(tmp_path: Path) -> None:
    base, folder = tmp_path / "base", tmp_path / "view"
    (base / "x").mkdir(parents=True)
    view = StagedView(base=base, folder=folder)
    view.refresh()
    (base / "x").rmdir()
    (base / "x").symlink_to(tmp_path)
    view.refresh()
    assert (folder / "x").is_symlink()


def test_a_view_has_no_hard_links_and_only_regular_files(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "file").write_text("x")
    (base / "file").chmod(0o640)
    (base / "link").symlink_to("/etc/passwd")
    os.mkfifo(base / "fifo")
    view = StagedView(base=base, folder=tmp_path / "view")
    assert sorted(view.refresh()) == ["file", "link"]
    copied = (tmp_path / "view" / "file").stat()
    assert (copied.st_nlink, copied.st_mode & 0o777) == (1, 0o640)
    assert (tmp_path / "view" / "link").readlink() == Path("/etc/passwd")


def test_a_view_replaces_a_file_by_a_folder_and_back(tmp_path: Path) -> None:
    base, folder = tmp_path / "base", tmp_path / "view"
    base.mkdir()
    (base / "x").write_text("file")
    view = StagedView(base=base, folder=folder)
    view.refresh()
    (base / "x").unlink()
    (base / "x").mkdir()
    (base / "x" / "y").write_text("inner")
    view.refresh()
    assert (folder / "x" / "y").read_text() == "inner"
    (base / "x" / "y").unlink()
    (base / "x").rmdir()
    (base / "x").write_text("file again")
    view.refresh()
    assert (folder / "x").read_text() == "file again"


def test_an_unchanged_file_is_not_copied_again(tmp_path: Path) -> None:
    base, folder = tmp_path / "base", tmp_path / "view"
    base.mkdir()
    (base / "x").write_text("x")
    view = StagedView(base=base, folder=folder)
    assert view.refresh() == view.refresh()


def test_a_view_has_the_staged_changes_and_follows_them(tmp_path: Path) -> None:
    base, folder = tmp_path / "base", tmp_path / "view"
    (base / "d").mkdir(parents=True)
    (base / "d" / "in").write_text("in")
    (base / "x").write_text("base")
    staged: dict[str, bytes | None] = {"x": b"staged", "n/e/w": b"new", "d/in": None, "d": b"a file now"}
    view = StagedView(base=base, folder=folder, staged=lambda: staged)
    view.refresh()
    assert {path: (folder / path).read_text() for path in view.refresh()} == {
        "x": "staged",
        "n/e/w": "new",
        "d": "a file now",
    }
    assert view.digest_before("x") == digest_bytes(b"staged")
    staged.clear()
    assert view.digest_before("x") == CHANGED_MEANWHILE
    assert sorted(view.refresh()) == ["d/in", "x"]
    assert (folder / "x").read_text() == "base"
    assert not (folder / "n").exists()


@pytest.mark.parametrize("swapped", ["above/base/sub", "above/base", "above"])
def test_a_folder_that_is_swapped_for_a_symlink_while_it_is_copied_leads_nowhere(
    tmp_path: Path, swapped: str
) -> None:
    base, outside = tmp_path / "above" / "base", tmp_path / "outside"
    (base / "sub").mkdir(parents=True)
    (base / "sub" / "file").write_text("mine")
    shutil.copytree(tmp_path / swapped, outside)

    def swap() -> dict[str, bytes | None]:
        """Called between the look at the base and the copying."""
        if not (tmp_path / swapped).is_symlink():
            (tmp_path / swapped).rename(tmp_path / "away")
            (tmp_path / swapped).symlink_to(outside)
        return {}

    view = StagedView(base=base, folder=tmp_path / "view", staged=swap)
    view.refresh()
    assert not (tmp_path / "view" / "sub" / "file").exists()


async def test_code_that_runs_while_variables_are_saved_has_ended_before_the_next_scan(
    staged: Guest,
) -> None:
    code = """
class Late:
    def __reduce__(self):
        for _ in range(300000): pass
        open('late.txt', 'w').close()
        return (int, ())
late = Late()
"""
    assert (await run(staged, code)).status == "ok"
    ended = await run(staged, "import os\nsorted(os.listdir('.'))")
    assert ended.value == ["a", "gone"]
    assert ended.changes == ()


async def test_a_folder_with_a_name_that_is_not_utf8_can_be_listed(staged: Guest, workspace: Path) -> None:
    (workspace / os.fsdecode(b"\xff")).write_text("x")
    (workspace / os.fsdecode(b"folder\xfe")).mkdir()
    (workspace / "ü").write_text("x")
    ended = await run(staged, "import os\nsorted(os.listdir('.'))")
    assert (ended.error, ended.value) == ("", ["a", "gone", "ü"])
    assert ended.changes == ()
    assert len(os.listdir(workspace)) == 5


DIES = {
    "exception in with": "with open('a/note', 'w') as f:\n    f.write('half' * 9999)\n    1 / 0",
    "exception, file open": "f = open('a/note', 'w')\nf.write('half' * 9999)\n1 / 0",
    "exception, append": "f = open('a/note', 'a')\nf.write('half' * 9999)\n1 / 0",
    "exception, append and read": "f = open('a/note', 'a+')\nf.write('half' * 9999)\n1 / 0",
    "exception, bytes": "f = open('/workspace/a/note', 'wb', buffering=0)\nf.write(b'half')\n1 / 0",
    "exception, Path.open": "from pathlib import Path\nf = Path('a/note').open('w')\nf.write('half')\n1 / 0",
    "exception in a function": "def save():\n    f = open('a/note', 'w')\n    f.write('half')\n    1 / 0\nsave()",
    "time limit": "with open('a/note', 'w') as f:\n    f.write('half' * 9999)\n    while True: pass",
    "output limit": "with open('a/note', 'w') as f:\n    f.write('half')\n    print('x' * 9999999)",
    "exit": "import os\nf = open('a/note', 'w')\nf.write('half' * 9999)\nos._exit(1)",
}


@pytest.mark.parametrize("code", DIES.values(), ids=DIES)
async def test_f03_a_run_that_dies_stages_no_half_of_a_file(staged: Guest, code: str) -> None:
    ended = await run(staged, f"open('whole', 'w').write('whole')\n{code}", seconds=2)
    assert ended.status in ("error", "limit", "lost")
    assert [change.path for change in ended.changes] == ["whole"]
    assert ended.error.endswith("Not written, because the run ended before they were closed: a/note.")
    after = await run(staged, "open('a/note').read()")
    assert (after.error, after.value, after.changes) == ("", "old", ())


async def test_f03_a_file_whose_exception_was_caught_is_staged_as_python_leaves_it(staged: Guest) -> None:
    code = "try:\n    with open('x', 'w') as f:\n        f.write('half')\n        1 / 0\nexcept ZeroDivisionError:\n    pass\n"
    ended = await run(staged, code)
    assert [(change.path, change.after) for change in ended.changes] == [("x", digest_bytes(b"half"))]
    other = await run(staged, f"{code}int('x')")
    assert [(change.path, change.after) for change in other.changes] == [("x", digest_bytes(b"half"))]


async def test_f03_a_file_that_nobody_closed_is_whole_when_the_run_ends(staged: Guest) -> None:
    for mode in ("w", "a", "a+", "w+", "x"):
        ended = await run(staged, f"f = open('x{mode}', {mode!r})\nf.write('all of it')")
        assert [change.after for change in ended.changes] == [digest_bytes(b"all of it")]
    after = await run(staged, "f.write('more')")
    assert after.status == "error"
    assert "closed file" in after.error


async def test_f03_a_file_that_waits_half_written_is_staged_once_it_is_closed(staged: Guest) -> None:
    async def park(operation: str, arguments: JsonObject) -> Answer:
        return Parked(escalation=EscalationId("e1"))

    parked = await run(staged, "f = open('x', 'w')\nf.write('one')\nf.flush()\ndesk.ask()\nf.close()", park)
    assert (parked.status, parked.changes) == ("parked", ())
    assert parked.snapshot is not None
    ended = await staged.resume(parked.snapshot, Returned(), RunRequest(code=""), park)
    assert [(change.path, change.after) for change in ended.changes] == [("x", digest_bytes(b"one"))]
