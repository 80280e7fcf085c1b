"""The compiled component on disk: found, proven to be ours, or built once.

It is native code that workers run as it lies there, so it is kept outside every workspace, readable by its owner
alone, and opened only when its HMAC says that this installation wrote it. A stranger's file is never loaded.

What makes one compiled component another: sources, versions and processor. Its name says all of it.

The folder that a component is built in: one builder at a time in a cache, and nothing stays of one that was killed.
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
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TextIO

from holdfast.core.errors import EngineMissing, GuestError

GUEST = Path(__file__).parent / "inside"
WIT = GUEST / "sandbox.wit"
_FORMAT = "1"
"""Counts what the other ingredients do not show, such as the settings of the compiler."""


@cache
def version_of(distribution: str) -> str:
    """The version of `wasmtime` or `componentize-py` that is installed."""
    from importlib import metadata  # a tenth of a second on a cold disk, and no worker needs it

    return metadata.version(distribution)


def component_name() -> str:
    """A name under which only the same component can lie."""
    ingredients = hashlib.sha256()
    for part in (
        _FORMAT,
        version_of("wasmtime"),
        version_of("componentize-py"),
        platform.machine(),
        _processor(),
    ):
        ingredients.update(part.encode() + b"\0")
    for source in sorted([*GUEST.glob("*.py"), WIT]):
        ingredients.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return f"python-{ingredients.hexdigest()[:24]}"


def _processor() -> str:
    """What the compiler may make use of: native code for one processor may not run on another."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())


_PREFIX = "build-"


@contextmanager
def opened_workshop(cache: Path, *, on_wait: Callable[[], None]) -> Iterator[Path]:
    """An empty folder of one's own, once nobody else builds; says so where it has to wait."""
    with _lock_of(cache) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        _clear(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=_PREFIX) as workshop:
            yield Path(workshop)


def sweep(cache: Path) -> None:
    """Remove what a builder that was killed has left, unless another is at work."""
    with _lock_of(cache) as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _clear(cache)


def _lock_of(cache: Path) -> TextIO:
    return (cache / "build.lock").open("w")


def _clear(cache: Path) -> None:
    # INVARIANT: the lock is held, so nobody works there.
    for left in cache.glob(f"{_PREFIX}*"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)


Progress = Callable[[str], None]

_CHUNK_BYTES = 1 << 20
_PACKAGES = ("wasmtime", "componentize_py")
_BUILDER = "import sys; sys.path[:0] = sys.argv[3:]; from holdfast.guests.wasi.build_main import main; main(*sys.argv[1:3])"


def check_installed() -> None:
    """EngineMissing where this machine cannot run the engine."""
    missing = [package for package in _PACKAGES if importlib.util.find_spec(package) is None]
    if missing:
        raise EngineMissing(
            f"the wasi sandbox needs {' and '.join(missing)}",
            hint="holdfast doctor says how to install it.",
        )
    if sys.platform != "linux":
        raise EngineMissing(
            f"the wasi sandbox runs on Linux, this is {sys.platform}", hint="Use --sandbox python here."
        )


async def opened(*, key: bytes, cache: Path, progress: Progress) -> int:
    """A descriptor of the proven component, built first where there is none. The caller closes it."""
    name = component_name()
    found = await asyncio.to_thread(open_proven, cache, name, key)
    if found is None:
        await _build(key=key, cache=cache, name=name, progress=progress)
        found = await asyncio.to_thread(open_proven, cache, name, key)
    if found is None:
        raise GuestError(
            f"the sandbox component in {str(cache)!r} was built and is not there",
            hint="See whether another program cleans this folder; then try again.",
        )
    return found


def is_built(*, cache: Path) -> bool:
    """Whether a component for this machine lies in the cache; it is proven only when it is opened."""
    return image_path(cache, component_name()).exists()


def image_path(cache: Path, name: str) -> Path:
    """Where the compiled component lies."""
    return cache / f"{name}.cwasm"


def proof_path(cache: Path, name: str) -> Path:
    """Where its HMAC lies."""
    return cache / f"{name}.hmac"


def open_proven(cache: Path, name: str, key: bytes) -> int | None:
    """A descriptor of the component if it is there and ours, else None. What was proven is what the descriptor reads."""
    try:
        descriptor = os.open(image_path(cache, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        proof = proof_path(cache, name).read_bytes()
        if hmac.compare_digest(proof, proof_of(descriptor, name, key)):
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def proof_of(descriptor: int, name: str, key: bytes) -> bytes:
    """HMAC-SHA256 over the name and the content, in hex."""
    mac = hmac.new(key, b"wasi component\0" + name.encode() + b"\0", "sha256")
    offset = 0
    while chunk := os.pread(descriptor, _CHUNK_BYTES, offset):
        mac.update(chunk)
        offset += len(chunk)
    return mac.hexdigest().encode()


def search_paths() -> list[str]:
    """Where a bare interpreter finds Holdfast and the engine, however this process found them."""
    roots = []
    for package in ("holdfast", "msgspec", *_PACKAGES):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.origin is not None
        roots.append(str(Path(spec.origin).parent.parent))
    return list(dict.fromkeys(roots))


async def _build(*, key: bytes, cache: Path, name: str, progress: Progress) -> None:
    """Build in a process of its own: half a minute of one core that can be cancelled, and no memory of it left here."""
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
        builder.stdin.write(key.hex().encode())  # by pipe: arguments and environment can be read by others
        builder.stdin.close()
        complaints = asyncio.ensure_future(builder.stderr.read())
        async for line in builder.stdout:
            progress(line.decode().rstrip())
        status = await builder.wait()
        if status < 0:
            raise GuestError(
                f"the sandbox component could not be built: its builder was ended by {signal.Signals(-status).name}",
                hint="It takes about a gigabyte of memory for half a minute; see whether the machine has it, and try again.",
            )
        if status != 0:
            told = (await complaints).decode(errors="replace").strip().splitlines()
            raise GuestError(
                f"the sandbox component could not be built: {told[-1] if told else f'exit status {status}'}",
                hint="Run `holdfast sandbox build` to see the whole story.",
            )
        await complaints
    finally:
        if builder.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                builder.kill()
            await builder.wait()
        if builder.returncode:
            await asyncio.to_thread(sweep, cache)
