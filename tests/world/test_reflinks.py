"""On a file system that shares blocks, a restore point and a restore need no second copy of the bytes."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.installed_programs import skip_loudly

from holdfast.core import FakeClock
from holdfast.store import Home, open_store
from holdfast.world import RestorePoints

MEGABYTE = 1 << 20
FILES = 20
FORMATS = {"xfs": ["mkfs.xfs", "-q"], "btrfs": ["mkfs.btrfs", "-q"]}


@pytest.fixture(params=FORMATS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of its own in a file, mounted for as long as the test runs."""
    make = FORMATS[request.param]
    if os.geteuid() != 0 or shutil.which(make[0]) is None:
        skip_loudly(f"{request.param} (root and {make[0]} are needed)")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(400 * MEGABYTE)
    subprocess.run([*make, str(image)], check=True, capture_output=True)
    mounted = subprocess.run(["mount", "-o", "loop", str(image), str(folder)], capture_output=True, text=True)
    if mounted.returncode != 0:
        skip_loudly(f"{request.param} ({mounted.stderr.strip()})")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def free_bytes(folder: Path) -> int:
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
    subprocess.run(["sync", "-f", str(folder)], check=True)
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


async def test_a_restore_point_and_a_fork_share_the_blocks_of_the_workspace(disk: Path) -> None:
    root, fork = disk / "ws", disk / "fork"
    root.mkdir()
    fork.mkdir()
    contents = {f"f{number}": os.urandom(MEGABYTE + number) for number in range(FILES)}
    contents["large"] = os.urandom(9 * MEGABYTE + 17)
    for name, content in contents.items():
        (root / name).write_bytes(content)
    store = await open_store(Home(disk / "home"), clock=FakeClock())
    try:
        empty = free_bytes(disk)
        points = RestorePoints(root, store=store)
        point = await points.make()
        assert empty - free_bytes(disk) < 8 * MEGABYTE, "29 MB were kept, and not copied"
        before_fork = free_bytes(disk)
        await RestorePoints(fork, store=store).restore(point.manifest)
        assert before_fork - free_bytes(disk) < 4 * MEGABYTE
        (root / "f3").write_bytes(b"changed")
        with (root / "large").open("r+b") as file:
            file.write(b"written in place")
        await points.restore(point.manifest)
        for folder in (root, fork):
            assert {path.name: path.read_bytes() for path in folder.iterdir()} == contents
    finally:
        await store.close()
