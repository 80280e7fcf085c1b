"""The compiled component on disk: CPython for WASI with our package `inside` in it, built once and verified before each use.

Workers execute the file as native code. It is therefore stored outside every workspace, readable only by its owner, and opened only
if its HMAC shows that this installation wrote it. Its file name depends on everything that goes into it: sources, versions and
processor. `build_main` builds it in a separate process.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import hmac
import importlib.util
import os
import platform
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TextIO

from holdfast.core.errors import EngineMissing, GuestError

ReportProgress = Callable[[str], None]

INSIDE = Path(__file__).parent / "inside"
"""The package that is built into the component."""
WIT = INSIDE / "sandbox.wit"
_FORMAT = "1"
"""Counts changes that the other parts of the name do not show, such as settings of the compiler."""
_BUILD_PREFIX = "build-"
_CHUNK_BYTES = 1 << 20
_PACKAGES = ("wasmtime", "componentize_py")
_BUILDER = "import sys; sys.path[:0] = sys.argv[3:]; from holdfast.guests.wasi.build_main import main; main(*sys.argv[1:3])"


def check_installed() -> None:
    """Raises EngineMissing if this machine cannot run the engine."""
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise EngineMissing(
            f"the wasi sandbox needs {' and '.join(missing)}",
            hint="Run `holdfast doctor` to see how to install it.",
        )
    if sys.platform != "linux":
        raise EngineMissing(
            f"the wasi sandbox runs only on Linux, not on {sys.platform}", hint="Use --sandbox python here."
        )


@cache
def version_of(distribution: str) -> str:
    """The installed version of `wasmtime` or `componentize-py`."""
    from importlib import metadata  # takes a tenth of a second on a cold disk, and workers do not need it

    return metadata.version(distribution)


def component_name() -> str:
    """The name of the component that the installed sources and versions make on this processor."""
    parts = hashlib.sha256()
    for part in (
        _FORMAT,
        version_of("wasmtime"),
        version_of("componentize-py"),
        platform.machine(),
        _processor(),
    ):
        parts.update(part.encode() + b"\0")
    for source in sorted([*INSIDE.glob("*.py"), WIT]):
        parts.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"python-{parts.hexdigest()[:24]}"


def image_path(cache: Path, name: str) -> Path:
    """Where the compiled component is stored."""
    return cache / f"{name}.cwasm"


def hmac_path(cache: Path, name: str) -> Path:
    """Where its HMAC is stored."""
    return cache / f"{name}.hmac"


def is_built(*, cache: Path) -> bool:
    """Whether the cache has a component for this machine. It is verified only when it is opened."""
    return image_path(cache, component_name()).exists()


def open_verified(cache: Path, name: str, key: bytes) -> int | None:
    """A descriptor of the component if it exists and its HMAC is right, else None. It reads exactly what was verified."""
    try:
        descriptor = os.open(image_path(cache, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        stored = hmac_path(cache, name).read_bytes()
        if hmac.compare_digest(stored, compute_hmac(descriptor, name, key)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


async def open_or_build(*, key: bytes, cache: Path, progress: ReportProgress) -> int:
    """A descriptor of the verified component, built first if there is none. The caller closes it."""
    name = component_name()
    descriptor = await asyncio.to_thread(open_verified, cache, name, key)
    if descriptor is None:
        await _build(key=key, cache=cache, name=name, progress=progress)
        descriptor = await asyncio.to_thread(open_verified, cache, name, key)
    if descriptor is None:
        raise GuestError(
            f"the sandbox component was built in {str(cache)!r} and has disappeared",
            hint="Check whether another program cleans this folder; then try again.",
        )
    return descriptor


def compute_hmac(descriptor: int, name: str, key: bytes) -> bytes:
    """The HMAC-SHA256 of the name and the content, in hex."""
    mac = hmac.new(key, b"wasi component\0" + name.encode() + b"\0", "sha256")
    offset = 0
    while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
        mac.update(chunk)
        offset += len(chunk)
    return mac.hexdigest().encode()


@contextlib.contextmanager
def build_folder(cache: Path, *, on_wait: Callable[[], None]) -> Iterator[Path]:
    """An empty folder for one builder. Only one process builds in a cache; `on_wait` is called if another one does."""
    with _build_lock(cache) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        _remove_build_folders(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=_BUILD_PREFIX) as folder:
            yield Path(folder)


def remove_leftovers(cache: Path) -> None:
    """Remove the folder of a builder that was killed, unless another builder is running."""
    with _build_lock(cache) as lock, contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove_build_folders(cache)


def search_paths() -> list[str]:
    """The paths on which a bare interpreter finds Holdfast and the engine, wherever this process found them."""
    roots = []
    for package in ("holdfast", "msgspec", *_PACKAGES):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        roots.append(str(Path(spec.origin).parent.parent))
    return list(dict.fromkeys(roots))


async def _build(*, key: bytes, cache: Path, name: str, progress: ReportProgress) -> None:
    """Build in a separate process: it takes one core for half a minute, can be cancelled, and returns its memory."""
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    command = [sys.executable, "-I", "-c", _BUILDER, str(cache), name, *search_paths()]
    builder = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={},
    )
    assert builder.stdin is not None
    assert builder.stdout is not None
    assert builder.stderr is not None
    try:
        builder.stdin.write(key.hex().encode())  # by pipe: other processes can read arguments and environment
        builder.stdin.close()
        errors = asyncio.ensure_future(builder.stderr.read())
        async for line in builder.stdout:
            progress(line.decode().rstrip())
        status = await builder.wait()
        if status < 0:
            raise GuestError(
                f"the sandbox component could not be built: its builder was ended by {signal.Signals(-status).name}",
                hint="The build needs about a gigabyte of memory for half a minute. Free some memory and try again.",
            )
        if status != 0:
            lines = (await errors).decode(errors="replace").strip().splitlines()
            raise GuestError(
                f"the sandbox component could not be built: {lines[-1] if lines else f'exit status {status}'}",
                hint="Run `holdfast sandbox build` to see the whole output.",
            )
        await errors
    finally:
        if builder.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                builder.kill()
            await builder.wait()
        if builder.returncode:
            await asyncio.to_thread(remove_leftovers, cache)


def _processor() -> str:
    """The features that the compiler may use; native code for one processor may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


def _build_lock(cache: Path) -> TextIO:
    return (cache / "build.lock").open("w")


def _remove_build_folders(cache: Path) -> None:
    # INVARIANT: the caller holds the lock, so no builder uses these folders.
    for folder in cache.glob(f"{_BUILD_PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
