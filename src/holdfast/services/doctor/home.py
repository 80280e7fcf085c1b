"""Checks of Holdfast's data directory: permissions, disk space, log, configuration and policy."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from holdfast.config import read_config
from holdfast.core.errors import HoldfastError
from holdfast.policy import AUTO, load_policy
from holdfast.services.doctor.check_result import CheckResult
from holdfast.store import Home

LOW_DISK_BYTES = 1_000_000_000
CRITICAL_DISK_BYTES = 50_000_000
LARGE_HOME_BYTES = 20_000_000_000
_MAX_WALKED = 500_000
"""Files whose size is added up; more would keep the person waiting."""


def check_home(home: Home) -> Iterator[CheckResult]:
    """Check permissions, disk space, configuration and policy."""
    existing = nearest_existing(home)
    if not existing.is_dir():
        yield _bad(f"{existing} is not a folder", "move it away, or set HOLDFAST_HOME to a folder you own")
    elif existing == home.root:
        yield from _permissions(home)
    elif not os.access(existing, os.W_OK | os.X_OK):
        yield _bad(
            f"{home.root} cannot be created: {existing} is not writable",
            "set HOLDFAST_HOME to a folder you own",
        )
    else:
        yield CheckResult(
            part="home", state="ok", detail=f"{home.root} does not exist yet; the first session creates it"
        )
    yield _disk(existing)
    if existing == home.root and (size := _used_bytes(home.root)) > LARGE_HOME_BYTES:
        yield CheckResult(
            part="home",
            state="note",
            detail=f"{home.root} uses more than {size / 1e9:,.0f} GB",
            fix="see what could be deleted: holdfast prune --older-than 30d --dry-run",
        )
    if home.log.exists():
        yield CheckResult(
            part="log",
            state="note",
            detail=f"there are warnings or errors in {home.log}",
            fix="read it, report internal errors, and delete it",
        )
    yield from _configuration(home)


def nearest_existing(home: Home) -> Path:
    """The data directory, or its nearest existing parent."""
    return next(path for path in (home.root, *home.root.parents) if path.exists())


def _permissions(home: Home) -> Iterator[CheckResult]:
    mode = stat.S_IMODE(home.root.stat().st_mode)
    owner = home.root.stat().st_uid
    if owner != os.getuid():
        yield _bad(
            f"{home.root} belongs to user {owner}, not to you", "set HOLDFAST_HOME to a folder you own"
        )
    elif mode & 0o077:
        yield _bad(f"other users can read {home.root} (mode {mode:04o})", f"chmod 700 {home.root}")
    elif not os.access(home.root, os.W_OK | os.X_OK):
        yield _bad(f"{home.root} is not writable", "make it writable, or set HOLDFAST_HOME to another folder")
    else:
        yield CheckResult(part="home", state="ok", detail=f"{home.root}, private (mode {mode:04o})")
    for path in (home.database, home.config, home.grants, home.key_file, home.export_key_file):
        if path.exists() and path.stat().st_mode & 0o077:
            yield _bad(f"other users can read {path}", f"chmod 600 {path}")


def _disk(path: Path) -> CheckResult:
    free = shutil.disk_usage(path).free
    detail = f"{free / 1e9:,.1f} GB free at {path}"
    fix = "see what could be deleted: holdfast prune --older-than 30d --dry-run"
    if free < CRITICAL_DISK_BYTES:
        return CheckResult(part="disk", state="bad", detail=detail, fix=fix)
    return CheckResult(part="disk", state="note" if free < LOW_DISK_BYTES else "ok", detail=detail, fix=fix)


def _used_bytes(root: Path) -> int:
    """What the files of a folder use on disk, as far as it is walked."""
    used = count = 0
    for folder, _, names in os.walk(root):
        for name in names:
            count += 1
            if count > _MAX_WALKED:
                return used
            with suppress(OSError):
                used += os.lstat(os.path.join(folder, name)).st_blocks * 512
    return used


def _configuration(home: Home) -> Iterator[CheckResult]:
    try:
        configured = read_config(home)
    except HoldfastError as error:
        yield CheckResult(part="config", state="bad", detail=str(error), fix=error.hint or "fix the file")
        return
    source = str(home.config) if home.config.exists() else "defaults (holdfast init writes a file to edit)"
    yield CheckResult(part="config", state="ok", detail=source)
    try:
        name = configured.settings.policy
        policy = load_policy(name, search=(home.policies,)).name if name != AUTO else name
    except HoldfastError as error:
        yield CheckResult(
            part="policy", state="bad", detail=str(error), fix=error.hint or "holdfast policy test FILE"
        )
    else:
        where = configured.sources.get("policy", "default")
        yield CheckResult(part="policy", state="ok", detail=f"{policy} ({_short(where, home.root)})")


def _short(source: str, root: Path) -> str:
    return source.removeprefix(f"{root}/")


def _bad(detail: str, fix: str) -> CheckResult:
    return CheckResult(part="home", state="bad", detail=detail, fix=fix)
