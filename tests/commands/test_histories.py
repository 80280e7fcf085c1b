"""Random histories of commands and edits end byte for byte as they would in a plain copy."""

import contextlib
import os
import random
import shutil
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.commands.conftest import run_in, run_outside

from holdfast.commands import CommandSandbox, SandboxStatus, StagedFile, open_sandbox, probe_sandbox
from holdfast.core import LINK_MODE

FILES = (*(f"d{n % 3}/s{n % 2}/f{n}" for n in range(12)), "x", "d0/y", "d1/z", "odd name\n")
FOLDERS = ("d0", "d1", "d0/s0", "d1/s1", "d2", "new", "d0/new")
SCRIPTS = (
    "echo {r} > {f}",
    "rm -rf {f}",
    "rm -rf {d}",
    "mkdir -p {d}",
    "mv {f} {g}",
    "mv {d} {e}",
    "mkdir -p {d}; echo {r} > {d}/n{r}",
    "chmod +x {f}",
    "test -d {f} || chmod 600 {f}",
    "rm -rf {d}; mkdir -p {d}; echo {r} > {d}/o",
    "cp -r {d} {e}",
    "rm -rf {f}; mkdir -p {f}; echo 1 > {f}/i",
    "rm -rf {d}; echo file > {d}",
    "touch {f}",
    "ln {f} {g}",
    "cat {f} {g} > {f}.both",
    "ln -s $(basename {f}) {l}",
    "ln -sfn {f} {l}",
    "rm -f {l}",
    "rm -rf {f}; ln -s x {f}",
)
LINKS = ("link", "d0/link", "new/link")
SHORT, LONG = 80, 10_000
SHORT_STEPS, LONG_STEPS = 2, 5
PER_SANDBOX = 20
"""Histories that share one sandbox: each starts where the one before ended."""

Tree = dict[str, tuple[bytes, int]]


def tree(folder: Path) -> Tree:
    found = {}
    for top, folders, names in os.walk(folder):
        for name in (*names, *(each for each in folders if Path(top, each).is_symlink())):
            path = Path(top, name)
            found[str(path.relative_to(folder))] = content_of(path)
    return found


def content_of(path: Path) -> tuple[bytes, int]:
    if path.is_symlink():
        return os.fsencode(os.readlink(path)), LINK_MODE
    return path.read_bytes(), stat.S_IMODE(path.stat().st_mode)


def script(chance: random.Random) -> str:
    lines = [
        f"({chance.choice(SCRIPTS).format(**words(chance))}) 2>/dev/null"
        for _ in range(chance.randrange(1, 8))
    ]
    return "\n".join([*lines, "true"])


def words(chance: random.Random) -> dict[str, str]:
    """Names for a script. What cp makes of a folder copied into itself depends on the order of names on the disk."""
    folder = chance.choice(FOLDERS)
    other = chance.choice(
        [each for each in FOLDERS if not each.startswith(folder) and not folder.startswith(each)]
    )
    quoted = {
        "l": chance.choice(LINKS),
        "f": chance.choice(FILES),
        "g": chance.choice(FILES),
        "d": folder,
        "e": other,
    }
    return {"r": str(chance.randrange(99)), **{name: f"'{path}'" for name, path in quoted.items()}}


async def play(
    sandbox: CommandSandbox, workspace: Path, plain: Path, chance: random.Random, steps: int
) -> None:
    """Each step stages an edit, or runs a script, in the sandbox and in the plain copy; then all of it is compared."""
    staged: dict[str, StagedFile] = {}
    for _ in range(steps):
        await sandbox.show(list(staged.values()))
        text = script(chance)
        ran = await run_in(sandbox, text)
        assert ran.outcome.code == 0, ran.outcome
        run_outside("bash", "-c", text, cwd=plain)
        separate_links(plain)
        changes = await sandbox.collect()
        assert changes.not_collected == ()
        for effect in changes.effects:
            content = sandbox.read_changed(effect.path) if effect.kind != "deleted" else None
            staged[effect.path] = StagedFile(path=effect.path, content=content, mode=effect.mode)
        assert seen(workspace, staged) == tree(plain)
        if chance.random() < 0.4:
            commit(workspace, staged)
            staged.clear()
        if chance.random() < 0.4:
            edit(plain, staged, chance)


def separate_links(plain: Path) -> None:
    """Two names of one file or symlink become two, as they do in the world."""
    for name in tree(plain):
        path = plain / name
        if path.lstat().st_nlink > 1:
            shutil.copy(path, plain / "separate", follow_symlinks=False)
            (plain / "separate").rename(path)


def seen(workspace: Path, staged: dict[str, StagedFile]) -> Tree:
    """Base plus staged, as a plain tree."""
    whole = tree(workspace)
    for path, file in staged.items():
        if file.content is None:
            whole.pop(path, None)
        else:
            whole[path] = (file.content, 0o644 if file.mode is None else file.mode)
    return whole


def commit(workspace: Path, staged: dict[str, StagedFile]) -> None:
    for path in sorted(path for path, file in staged.items() if file.content is None):
        # A file may stand where a folder was in between: then there is nothing to delete below it.
        if not is_folder(workspace / path):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                (workspace / path).unlink()
    for path, file in staged.items():
        if file.content is None:
            continue
        if is_folder(workspace / path):
            shutil.rmtree(workspace / path)
        (workspace / path).unlink(missing_ok=True)
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        if file.mode == LINK_MODE:
            (workspace / path).symlink_to(os.fsdecode(file.content))
            continue
        (workspace / path).write_bytes(file.content)
        (workspace / path).chmod(0o644 if file.mode is None else file.mode)


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def edit(plain: Path, staged: dict[str, StagedFile], chance: random.Random) -> None:
    """An edit by the agent's own tools: a file that exists, or a new one in its own folder."""
    path = chance.choice([*tree(plain), f"edited/{chance.randrange(5)}"])
    if (plain / path).is_symlink():
        return
    if chance.random() < 0.3 and (plain / path).exists():
        (plain / path).unlink()
        staged[path] = StagedFile(path=path, content=None)
        return
    content = f"edited {chance.randrange(1000)}\n".encode()
    if (plain / "edited").is_file():
        return
    (plain / path).parent.mkdir(parents=True, exist_ok=True)
    (plain / path).write_bytes(content)
    mode = stat.S_IMODE((plain / path).stat().st_mode)
    staged[path] = StagedFile(path=path, content=content, mode=mode)


def replace(plain: Path, workspace: Path) -> None:
    """Make the workspace what the plain copy is. The folder itself stays: a sandbox holds it."""
    for path in workspace.iterdir():
        shutil.rmtree(path) if is_folder(path) else path.unlink()
    shutil.copytree(plain, workspace, symlinks=True, dirs_exist_ok=True)


async def histories(folder: Path, status: SandboxStatus, *, count: int, steps: int, seed: int) -> None:
    for group in range(0, count, PER_SANDBOX):
        place = folder / str(group)
        workspace, plain = place / "workspace", place / "plain"
        for name in FILES[:12]:
            (workspace / name).parent.mkdir(parents=True, exist_ok=True)
            (workspace / name).write_text(f"{name}\n")
        shutil.copytree(workspace, plain)
        sandbox = await open_sandbox(workspace, place / "state", status=status)
        try:
            for number in range(group, min(group + PER_SANDBOX, count)):
                chance = random.Random(f"{seed}-{number}")
                try:
                    await play(sandbox, workspace, plain, chance, steps)
                except AssertionError as error:
                    error.add_note(f"history {number} of seed {seed}")
                    raise
                replace(plain, workspace)
                await sandbox.drop_scratch()
        finally:
            await sandbox.close()
        shutil.rmtree(place)


@pytest.fixture
async def memory_path(tmp_path: Path) -> AsyncIterator[Path]:
    """A folder in memory, where a sandbox stands there: thousands of small files are slow on a disk."""
    try:
        folder = Path(tempfile.mkdtemp(dir="/dev/shm", prefix="holdfast-histories-"))
    except OSError:
        yield tmp_path
        return
    try:
        found = await probe_sandbox(folder)
        yield folder if found.tier == "full" else tmp_path
    finally:
        shutil.rmtree(folder)


@pytest.mark.timeout(300)
async def test_short_histories_end_as_a_plain_copy_would(memory_path: Path, status: SandboxStatus) -> None:
    await histories(memory_path, status, count=SHORT, steps=SHORT_STEPS, seed=7)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_long_histories_end_as_a_plain_copy_would(memory_path: Path, status: SandboxStatus) -> None:
    await histories(
        memory_path, status, count=LONG, steps=LONG_STEPS, seed=random.SystemRandom().randrange(1 << 32)
    )
