"""The probe: which tier of sandbox works on this machine, found by opening one, once a boot.

A list of features is not enough: AppArmor, a container or a file system can each refuse one step of a sandbox that the
kernel supports. The answer is kept until the next boot. A weaker tier is never taken silently: it comes with what is missing.
"""

import contextlib
import os
import tempfile
from pathlib import Path

import msgspec

import holdfast.process.landlock as landlock
from holdfast.commands.contract import CommandRequest, SandboxStatus, SandboxTier
from holdfast.commands.open import open_sandbox
from holdfast.commands.settings import SandboxSettings
from holdfast.core import Value, encode
from holdfast.core.errors import CommandError, StoreUnavailable
from holdfast.store import private_folder, replace_private

_FORMAT = 2
_MIN_LANDLOCK_FULL, _MIN_LANDLOCK_COPY = 3, 4
_SIGNALS_HELD = 6
_FOUND = "sandbox works"


class _Kept(Value):
    """A finding, with what it depends on."""

    format: int
    boot: str
    status: SandboxStatus


async def probe_sandbox(
    cache: Path, *, tier: SandboxTier | None = None, is_repeated: bool = False
) -> SandboxStatus:
    """Find the strongest tier that works, or try only the forced one. `cache` is on the file system of the layers.

    With `is_repeated` an earlier finding does not count, because the person may have changed the machine since.
    """
    file = cache / "sandbox.json"
    boot = _boot()
    if tier is None and not is_repeated:
        with contextlib.suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
            kept = msgspec.json.decode(file.read_bytes(), type=_Kept)
            if kept.format == _FORMAT and kept.boot == boot:
                return kept.status
    status = await _find(cache, tier)
    if tier is None:
        # A read-only data directory keeps nothing; the next process looks again.
        with contextlib.suppress(OSError, StoreUnavailable):
            private_folder(cache)
            replace_private(file, encode(_Kept(format=_FORMAT, boot=boot, status=status)))
    return status


async def _find(cache: Path, tier: SandboxTier | None) -> SandboxStatus:
    if tier == "none":
        return SandboxStatus(tier="none", kernel=os.uname().release)
    reason = "" if tier == "copy" else await _why_not(cache, _full())
    if tier != "copy" and not reason:
        return _full()
    status = _copy(reason)
    if tier != "full" and not (weaker := await _why_not(cache, status)):
        return status
    missing = (reason,) if tier == "full" else tuple(each for each in (reason, weaker) if each)
    return SandboxStatus(tier="none", kernel=os.uname().release, missing=missing, hint=_hint())


def _full() -> SandboxStatus:
    walls = ("user-namespace", "overlay", f"landlock-{landlock.version()}", "seccomp", "network-namespace")
    return SandboxStatus(tier="full", walls=walls, kernel=os.uname().release)


def _copy(reason: str) -> SandboxStatus:
    version = landlock.version()
    missing = [
        reason or "a full sandbox, which was not tested",
        "commands work on a copy of the workspace, at another path",
        "no dev servers: a program cannot listen on a port",
        "programs see that other processes exist, but cannot read them",
    ]
    if version < _SIGNALS_HELD:
        missing.append(
            "programs can send signals to other processes of yours (this needs Landlock 6, Linux 6.12)"
        )
    walls = (f"landlock-{version}", "seccomp", "copy")
    return SandboxStatus(
        tier="copy", walls=walls, kernel=os.uname().release, missing=tuple(missing), hint=_hint()
    )


def _hint() -> str:
    """The way to a full sandbox."""
    try:
        restricted = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").read_text(
            encoding="ascii"
        )
    except OSError:
        restricted = "0"
    if restricted.strip() == "1":
        return (
            "AppArmor takes the rights of user namespaces away (apparmor_restrict_unprivileged_userns=1);"
            " a profile allows them for this interpreter: holdfast doctor --apparmor"
        )
    try:
        allowed = Path("/proc/sys/user/max_user_namespaces").read_text(encoding="ascii").strip()
    except OSError:
        allowed = ""
    if allowed == "0":
        return "user namespaces are switched off; allow them with: sudo sysctl user.max_user_namespaces=10000"
    return "in a container, allow user namespaces and keep the data directory on a volume; then check: holdfast doctor"


async def _why_not(cache: Path, status: SandboxStatus) -> str:
    """Open a sandbox of a tier and run a program in it; returns what prevents it, or nothing."""
    if os.uname().sysname != "Linux":
        return f"namespaces and an overlay, which {os.uname().sysname} does not have"
    needed, kernel = (_MIN_LANDLOCK_FULL, "6.2") if status.tier == "full" else (_MIN_LANDLOCK_COPY, "6.7")
    if landlock.version() < needed:
        return f"Landlock {needed} (Linux {kernel})"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix="probe-") as folder:
            workspace = Path(folder, "workspace")
            workspace.mkdir()
            settings = SandboxSettings(toolchains=())
            sandbox = await open_sandbox(workspace, Path(folder, "state"), status=status, settings=settings)
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
        return "a sandbox that keeps what programs write"
    return ""


def _boot() -> str:
    """What a finding depends on: the boot, the kernel and the user."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{boot} {os.uname().release} {os.geteuid()}:{os.getegid()}"
