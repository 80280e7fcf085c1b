"""A commit is complete or rolled back, even if the process is killed in the middle."""

import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.core.errors import CommitConflict, JournalDamaged
from holdfast.world import FolderWorld, StagedWorld, UndoJournal
from holdfast.world.staging.commit import Step

PROGRAM = Path(__file__).with_name("crashing_commit.py")


def kills(folder: Path, *, stride: int) -> int:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(folder), str(stride)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_a_commit_killed_at_many_steps_is_whole_or_undone(tmp_path: Path) -> None:
    assert kills(tmp_path / "work", stride=9) > 10


@pytest.mark.soak
def test_a_commit_killed_at_any_step_is_whole_or_undone(tmp_path: Path) -> None:
    assert kills(tmp_path / "work", stride=1) > 75


def cut_off(folder: Path) -> tuple[FolderWorld, UndoJournal]:
    """A commit that was cut off after its first file."""
    (folder / "base").mkdir()
    world = FolderWorld(folder / "base")
    world.write("a", b"old a")
    world.write("b", b"old b")
    undo = UndoJournal(folder / "undo")
    steps = [
        Step(path=path, before=world.read(path), before_mode=0o644, after=b"new", after_mode=None)
        for path in ("a", "b")
    ]
    undo.begin(steps, ())
    world.write("a", b"new")
    return world, undo


def test_a_file_that_another_process_changed_is_left_and_reported(tmp_path: Path) -> None:
    world, undo = cut_off(tmp_path)
    world.write("b", b"somebody else")
    recovered = undo.recover(world)
    assert recovered is not None
    assert (recovered.restored, recovered.left) == (("a",), ("b",))
    assert (world.read("a"), world.read("b")) == (b"old a", b"somebody else")


def test_a_file_that_another_process_deleted_is_left_and_reported(tmp_path: Path) -> None:
    world, undo = cut_off(tmp_path)
    world.delete("b")
    recovered = undo.recover(world)
    assert recovered is not None
    assert (recovered.restored, recovered.left) == (("a",), ("b",))
    assert not world.exists("b")


def test_an_undo_journal_that_was_never_whole_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "undo").mkdir()
    (tmp_path / "undo" / ".commit.undo-0123abcd").write_bytes(b"half")
    assert UndoJournal(tmp_path / "undo").recover(FolderWorld(tmp_path / "base")) is None
    assert list((tmp_path / "undo").iterdir()) == []


def test_a_damaged_undo_journal_is_said_and_kept(tmp_path: Path) -> None:
    world, undo = cut_off(tmp_path)
    file = tmp_path / "undo" / "commit.undo"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(JournalDamaged):
        undo.recover(world)
    file.write_bytes(b"not json")
    with pytest.raises(JournalDamaged):
        undo.recover(world)
    assert file.exists()
    assert world.read("a") == b"new"


def test_no_commit_starts_while_an_earlier_one_is_not_rolled_back(tmp_path: Path) -> None:
    world, undo = cut_off(tmp_path)
    staged = StagedWorld(world, undo=undo)
    staged.write("c", b"1")
    with pytest.raises(CommitConflict):
        staged.commit()
    assert not world.exists("c")
    undo.recover(world)
    staged.commit()
    assert world.read("c") == b"1"
