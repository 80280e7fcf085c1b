"""The home: who can look inside, what is in it, and whether there is room."""

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from holdfast.cli.doctor.finding import CheckResult
from holdfast.config import read_config
from holdfast.core.errors import HoldfastError
from holdfast.policy import load_policy
from holdfast.store import Home

LOW_DISK_BYTES = 1_000_000_000
CRITICAL_DISK_BYTES = 50_000_000


def check_home(home: Home) -> Iterator[CheckResult]:
    """Permissions, disk, configuration and policy."""
    place = nearest_existing(home)
    if not place.is_dir():
        yield _bad(f"{place} is no folder", "move it away, or set HOLDFAST_HOME to a folder of your own")
    elif place == home.root:
        yield from _permissions(home)
    elif not os.access(place, os.W_OK | os.X_OK):
        yield _bad(
            f"{home.root} cannot be made: {place} cannot be written",
            "set HOLDFAST_HOME to a folder of your own",
        )
    else:
        yield CheckResult(
            part="home", state="ok", told=f"{home.root} is not there yet; the first session makes it"
        )
    yield _disk(place)
    if home.log.exists():
        yield CheckResult(
            part="log",
            state="note",
            told=f"the program had something to say: {home.log}",
            fix="read it, report what is a fault of ours, and delete it",
        )
    yield from _configuration(home)


def nearest_existing(home: Home) -> Path:
    """The home, or what is there of the way to it."""
    return next(place for place in (home.root, *home.root.parents) if place.exists())


def _permissions(home: Home) -> Iterator[CheckResult]:
    mode = stat.S_IMODE(home.root.stat().st_mode)
    owner = home.root.stat().st_uid
    if owner != os.getuid():
        yield _bad(
            f"{home.root} belongs to user {owner}, not to you", "set HOLDFAST_HOME to a folder of your own"
        )
    elif mode & 0o077:
        yield _bad(f"others can look into {home.root} (mode {mode:04o})", f"chmod 700 {home.root}")
    elif not os.access(home.root, os.W_OK | os.X_OK):
        yield _bad(f"{home.root} cannot be written", f"chmod 700 {home.root}")
    else:
        yield CheckResult(part="home", state="ok", told=f"{home.root}, yours alone (mode {mode:04o})")
    for path in (home.database, home.config, home.grants, home.root / "key"):
        if path.exists() and path.stat().st_mode & 0o077:
            yield _bad(f"others can read {path}", f"chmod 600 {path}")


def _disk(place: Path) -> CheckResult:
    free = shutil.disk_usage(place).free
    told = f"{free / 1e9:,.1f} GB free at {place}"
    fix = "holdfast prune --older-than 30d --dry-run shows what could go"
    if free < CRITICAL_DISK_BYTES:
        return CheckResult(part="disk", state="bad", told=told, fix=fix)
    return CheckResult(part="disk", state="note" if free < LOW_DISK_BYTES else "ok", told=told, fix=fix)


def _configuration(home: Home) -> Iterator[CheckResult]:
    try:
        configured = read_config(home)
    except HoldfastError as error:
        yield CheckResult(part="config", state="bad", told=str(error), fix=error.hint or "mend the file")
        return
    source = str(home.config) if home.config.exists() else "defaults (holdfast init writes a file to edit)"
    yield CheckResult(part="config", state="ok", told=source)
    try:
        policy = load_policy(configured.settings.policy, search=(home.policies,))
    except HoldfastError as error:
        yield CheckResult(
            part="policy", state="bad", told=str(error), fix=error.hint or "holdfast policy test FILE"
        )
    else:
        where = configured.sources.get("policy", "default")
        yield CheckResult(part="policy", state="ok", told=f"{policy.name} ({_short(where, home.root)})")


def _short(source: str, root: Path) -> str:
    return source.removeprefix(f"{root}/")


def _bad(told: str, fix: str) -> CheckResult:
    return CheckResult(part="home", state="bad", told=told, fix=fix)
