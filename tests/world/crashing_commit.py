"""Commits under kill -9: run as a program with an empty folder and a stride, it kills a commit before each
of its system calls, or every so many.

A killed commit, once recovered, must have left the tree as it was before or as it is after, and nothing besides. Each
commit runs in a fork of this program, which has no threads. Prints the number of commits that were killed.
"""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.world import FolderWorld, StagedWorld, UndoJournal

CALLS = ("open", "write", "close", "rename", "replace", "unlink", "mkdir", "rmdir", "fsync", "fchmod")


def prepare(folder: Path) -> StagedWorld:
    """A small tree, and changes of every kind over it."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "base").mkdir(parents=True)
    base = FolderWorld(folder / "base")
    base.write("changed", b"old" * 10, mode=0o755)
    base.write("d/gone", b"gone")
    base.write("becomes-folder", b"file")
    base.write("kept", b"kept")
    base.write("mode", b"same", mode=0o644)
    staged = StagedWorld(base, undo=UndoJournal(folder / "undo"))
    staged.write("changed", b"new" * 20)
    staged.delete("d", recursive=True)
    staged.write("new/deep/file", b"new")
    staged.delete("becomes-folder")
    staged.write("becomes-folder/inner", b"inner")
    staged.write("mode", b"same", mode=0o755)
    return staged


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder, half-written files and empty folders included."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, b"" if path.is_dir() else path.read_bytes())
        for path in sorted(folder.rglob("*"))
    }


def kill_before(number: int) -> None:
    """Let this process die right before its n-th system call that could matter."""
    left = number

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*args, **options)

        return run

    for name in CALLS:
        setattr(os, name, deadly(getattr(os, name)))


def is_killed(folder: Path, number: int) -> bool:
    """Commit in a fork that dies at the n-th call; whether it came to that."""
    staged = prepare(folder)
    child = os.fork()
    if child == 0:
        kill_before(number)
        staged.commit()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main(folder: Path, stride: int) -> None:
    """Kill at every step, or at every so many; AssertionError where a tree is neither old nor new."""
    staged = prepare(folder)
    before = tree(folder / "base")
    staged.commit()
    after = tree(folder / "base")
    number, killed = 1, 0
    while is_killed(folder, number):
        world = FolderWorld(folder / "base")
        UndoJournal(folder / "undo").recover(world)
        assert tree(folder / "base") in (before, after), f"neither old nor new after call {number}"
        assert not any((folder / "undo").glob("*")), f"an undo journal is left after call {number}"
        assert UndoJournal(folder / "undo").recover(world) is None
        number += stride
        killed += 1
    assert tree(folder / "base") == after
    print(killed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
