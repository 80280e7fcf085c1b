"""The probe: which tier of sandbox stands on this machine, found by opening one, once a boot.

A list of features is not enough: AppArmor, a container or a file system can each refuse one step of a sandbox that the
kernel supports. The answer is kept until the next boot. A weaker tier is never taken silently: it comes with what is missing.
"""

import contextlib
import os
import platform
import tempfile
from pathlib import Path

import msgspec

import holdfast.process.landlock as landlock
from holdfast.commands.contract import CommandRequest, SandboxStatus, SandboxTier
from holdfast.commands.full.open import open_full_sandbox
from holdfast.commands.settings import SandboxSettings
from holdfast.core import Value, encode
from holdfast.core.errors import CommandError

_FORMAT = 1
_MIN_LANDLOCK_FULL = 3
_FOUND = "sandbox works"


class _Kept(Value):
    """A finding, with what it depends on."""

    format: int
    boot: str
    status: SandboxStatus


async def probe_sandbox(cache: Path, *, tier: SandboxTier | None = None) -> SandboxStatus:
    """Find the strongest tier that stands, or try only the forced one. `cache` is on the file system of the layers."""
    file = cache / "sandbox.json"
    boot = _boot()
    if tier is None:
        with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
            if kept.format == _FORMAT and kept.boot == boot:
                return kept.status
    status = await _find(cache, tier)
    if tier is None:
        with contextlib.suppress(OSError):
            cache.mkdir(parents=True, exist_ok=True)
            new = file.with_suffix(f".{os.getpid()}")
            new.write_bytes(encode(_Kept(format=_FORMAT, boot=boot, status=status)))
            new.replace(file)
    return status


async def _find(cache: Path, tier: SandboxTier | None) -> SandboxStatus:
    if tier == "none":
        return SandboxStatus(tier="none", kernel=platform.release())
    reason = await _why_not_full(cache)
    if not reason:
        return _full()
    return SandboxStatus(tier="none", kernel=platform.release(), missing=(reason,), hint="holdfast doctor")


def _full() -> SandboxStatus:
    walls = ("user-namespace", "overlay", f"landlock-{landlock.version()}", "seccomp", "network-namespace")
    return SandboxStatus(tier="full", walls=walls, kernel=platform.release())


async def _why_not_full(cache: Path) -> str:
    """Open a full sandbox and run a program in it; returns what stands in the way, or nothing."""
    if platform.system() != "Linux":
        return f"namespaces and an overlay, which {platform.system()} does not have"
    if landlock.version() < _MIN_LANDLOCK_FULL:
        return "Landlock 3 (Linux 6.2)"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="probe-") as folder:
            workspace = Path(folder, "workspace")
            workspace.mkdir()
            sandbox = await open_full_sandbox(
                workspace, Path(folder, "state"), settings=SandboxSettings(toolchains=()), status=_full()
            )
            try:
                output: list[bytes] = []
                script = f"echo {_FOUND} > probe && cat probe"
                request = CommandRequest(argv=("/bin/sh", "-c", script), environment={}, timeout_seconds=20.0)
                await sandbox.run(request, on_output=output.append)
                changes = await sandbox.collect()
            finally:
                await sandbox.close()
    except (CommandError, OSError) as error:
        return str(error)
    if b"".join(output).decode(errors="replace").strip() != _FOUND or [e.path for e in changes.effects] != [
        "probe"
    ]:
        return "an overlay that keeps what programs write"
    return ""


def _boot() -> str:
    """What a finding depends on: the boot, the kernel and the user."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{boot} {platform.release()} {os.geteuid()}:{os.getegid()}"
