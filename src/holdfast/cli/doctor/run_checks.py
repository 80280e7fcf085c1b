"""Runs every check in turn. A check that cannot run is a failed result."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.cli.doctor.check_result import CheckResult
from holdfast.cli.doctor.event_loop import check_event_loop
from holdfast.cli.doctor.home import check_home, nearest_existing
from holdfast.cli.doctor.kernel import check_kernel
from holdfast.cli.doctor.sandboxes import check_commands, check_engines
from holdfast.cli.doctor.services import check_models, check_servers
from holdfast.cli.doctor.versions import check_versions
from holdfast.core.errors import HoldfastError
from holdfast.store import Home

Check = Callable[[Home], Awaitable[list[CheckResult]]]
_CHECKS: dict[str, Check] = {
    "model": check_models,
    "sandbox": check_engines,
    "commands": check_commands,
    "mcp": check_servers,
}


async def run_checks(home: Home, *, watches_loop: bool = False) -> AsyncGenerator[CheckResult, None]:
    """Run the checks, most basic first, and yield each result. `watches_loop` also measures the event loop."""
    for result in (*check_home(home), *check_versions(), *check_kernel()):
        yield result
    with _usable_home(home) as usable:
        extra: dict[str, Check] = {"event loop": check_event_loop} if watches_loop else {}
        for part, check in (_CHECKS | extra).items():
            for result in await _run_check(part, check, usable):
                yield result


@contextmanager
def _usable_home(home: Home) -> Iterator[Home]:
    """The data directory, or an empty temporary one where its path is not a folder, so that the other checks still run."""
    if nearest_existing(home).is_dir():
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-doctor-") as folder:
        yield Home(Path(folder) / "home")


async def _run_check(part: str, check: Check, home: Home) -> list[CheckResult]:
    try:
        return await check(home)
    except HoldfastError as error:
        return [
            CheckResult(
                part=part, state="bad", detail=str(error), fix=error.hint or f"holdfast explain {error.code}"
            )
        ]
    except OSError as error:
        fix = "check that you own it and can read it"
        return [CheckResult(part=part, state="bad", detail=f"the check failed: {error}", fix=fix)]
