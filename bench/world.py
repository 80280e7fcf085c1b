"""Files of a world against plain file system calls, and restore points against copying and git.

In the same run: plain calls, a copy of the folder, git (as installed), and llm-wasm-sandbox in its own environment
(`bench/_wasm_peer.py`). BENCH_WORLD_MB is the size of the large workspace (default 1024); its 10,000 files are created
once, in the temporary folder. A copy is complete when it is on disk, as our restore points are.
"""

import asyncio
import itertools
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench._world_peers import Git, Plain, Sandbox, copy
from holdfast.core import SystemClock
from holdfast.store import Home, open_store
from holdfast.world import FolderWorld, RestorePoints, StagedWorld, UndoJournal, WorldPaths
from holdfast.world.paths.open_beneath import open_by_walk

FILES = 1000
LARGE_FILES = 10_000
ROUNDS = 5
CONTENT = b"0123456789abcdef" * 64

Work = Callable[[], object]


def main() -> None:
    """Print both tables."""
    folder = Path(tempfile.mkdtemp(prefix="bench-world-"))
    try:
        small_files(folder)
        asyncio.run(large_workspace(folder))
    finally:
        shutil.rmtree(folder)


class Line(NamedTuple):
    """One operation: plain, peer and ours. `before` runs before each of ours and is not timed."""

    label: str
    plain: Work | None
    peer: Callable[[], float | None] | None
    ours: Work
    before: Work | None = None


def small_files(folder: Path) -> None:
    """One thousand files of 1 KiB: the cost of an operation."""
    for name in ("plain", "ours", "walk"):
        (folder / name).mkdir()
    names = [f"d{number % 10}/f{number}" for number in range(FILES)]
    plain, peer = Plain(folder / "plain", names), Sandbox(folder / "peer", names)
    world, walking = FolderWorld(folder / "ours"), FolderWorld(folder / "walk", opener=open_by_walk)
    staged, paths = StagedWorld(world, undo=UndoJournal(folder / "undo")), WorldPaths(folder / "ours")
    number = itertools.count()

    def changed() -> bytes:
        return CONTENT + str(next(number)).encode()

    def each(operation: Callable[[str], object]) -> Work:
        return lambda: [operation(name) for name in names]

    def stage() -> None:
        staged.reject()
        content = changed()
        for name in names:
            staged.write(name, content)

    print(f"{'':32}{'plain':>12}{'llm-wasm':>12}{'holdfast':>12}{'to plain':>10}{'to peer':>9}")
    for line in (
        Line(
            "write 1,000 files",
            lambda: plain.write(CONTENT),
            lambda: peer.write(CONTENT),
            each(lambda name: world.write(name, CONTENT)),
        ),
        Line(
            "the same, each in one step",
            lambda: plain.replace(CONTENT),
            None,
            each(lambda name: world.write(name, CONTENT)),
        ),
        Line(
            "the same, by walk",
            lambda: plain.replace(CONTENT),
            None,
            each(lambda name: walking.write(name, CONTENT)),
        ),
        Line("read 1,000 files", plain.read, peer.read, each(world.read)),
        Line("the same, by walk", plain.read, None, each(walking.read)),
        Line("list 1,000 files", plain.list, peer.list, world.list),
        Line("fingerprint of all", plain.fingerprint, None, world.fingerprint),
        Line("locate 1,000 paths", plain.locate, None, each(paths.locate)),
        Line("search a word", lambda: plain.search(b"nowhere"), None, lambda: world.search("nowhere")),
        Line("search an expression", None, None, lambda: world.search("nowhere[0-9]")),
        Line("stage 1,000 changes", lambda: plain.stage(changed()), None, stage),
        Line(
            "commit 1,000 changes, durable",
            lambda: plain.commit(changed()),
            None,
            staged.commit,
            stage,
        ),
    ):
        _print_small(line)
    peer.close()


async def large_workspace(folder: Path) -> None:
    """Ten thousand files of 1 GB in total: the cost of a restore point."""
    size = int(os.environ.get("BENCH_WORLD_MB", "1024")) << 20
    root = folder / "large"
    block = os.urandom(size // LARGE_FILES - 8)
    for number in range(LARGE_FILES):
        path = root / f"d{number % 100}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "big") + block)
    os.sync()
    await asyncio.sleep(0.1)  # as between two turns: a file that was just written does not count as unchanged
    title = f"{LARGE_FILES:,} files, {size >> 20} MB"
    print(f"\n{title:33}{'copy':>12}{'git':>12}{'holdfast':>12}{'to copy':>10}{'to git':>9}")
    home = Home(folder / "home")
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    copies = itertools.count()

    def copy_all() -> None:
        copy(root, folder / f"copy-{next(copies)}")

    try:
        points = RestorePoints(root, store=store)
        git = Git(root, folder / "shadow.git")
        first = await _row("first point", copy_all, git.save, points.make)
        await _row("nothing changed", copy_all, git.save, points.make)
        changed = root / "d7" / "f7"
        changed.write_bytes(b"changed")
        await _row("one file changed", copy_all, git.save, points.make)

        def copy_back() -> None:
            shutil.rmtree(root)
            copy(folder / "copy-0", root)

        changed.write_bytes(b"and again")
        await _row("bring one file back", None, None, lambda: points.restore(first.manifest))
        changed.write_bytes(b"and again")
        await _row("the same by git and by copy", copy_back, git.restore, None)
        (folder / "fork").mkdir()
        fork = RestorePoints(folder / "fork", store=store)
        await _row(
            "fork",
            lambda: shutil.copytree(folder / "copy-0", folder / "copy-fork"),
            lambda: git.fork(folder / "git-fork"),
            lambda: fork.fill(first.manifest),
        )
        await _row("first point of the fork", None, None, fork.make)
    finally:
        await store.close()


async def _row(
    label: str, by_copy: Work | None, by_git: Work | None, by_us: Callable[[], Awaitable[Any]] | None
) -> Any:
    figures: list[float | None] = []
    for work in (by_copy, by_git):
        start = time.perf_counter()
        if work is not None:
            await asyncio.to_thread(work)
        figures.append((time.perf_counter() - start) * 1000 if work else None)
    start = time.perf_counter()
    answer = await by_us() if by_us else None
    figures.append((time.perf_counter() - start) * 1000 if by_us else None)
    copied, git, ours = figures
    shown = f"{_ms(copied):>12}{_ms(git):>12}{_ms(ours):>12}{_ratio(ours, copied):>10}{_ratio(ours, git):>9}"
    print(f"{label:<33}{shown}", flush=True)
    return answer


def _print_small(line: Line) -> None:
    plain = None if line.plain is None else _milliseconds(line.plain, None)
    peer = None if line.peer is None else _median([line.peer() for _ in range(ROUNDS)])
    ours = _milliseconds(line.ours, line.before)
    shown = f"{_ms(plain):>12}{_ms(peer):>12}{_ms(ours):>12}{_ratio(ours, plain):>10}{_ratio(ours, peer):>9}"
    print(f"{line.label:<32}{shown}", flush=True)


def _milliseconds(work: Work, before: Work | None) -> float:
    times = []
    for _ in range(ROUNDS):
        if before is not None:
            before()
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _median(figures: list[float | None]) -> float | None:
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else None


def _ms(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:,.1f} ms"


def _ratio(ours: float | None, other: float | None) -> str:
    return "-" if ours is None or other is None else f"{ours / other:.2f}"


if __name__ == "__main__":
    main()
