"""Runs every check in turn. A check that cannot run is a failed result."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from holdfast.core.errors import HoldfastError
from holdfast.services.doctor.check_result import CheckResult
from holdfast.store import Home

Check = Callable[[Home], Awaitable[list[CheckResult]]]
"""One check of a data directory, or several that belong together."""


async def run_checks(
    home: Home, *, extra: Mapping[str, Check] = MappingProxyType({})
) -> AsyncGenerator[CheckResult, None]:
    """Run the checks, most basic first, then those in `extra`, and yield each result."""
    # Here, because these load everything that they check, and the other services need none of it.
    from holdfast.services.doctor.connections import check_models, check_notifications, check_servers
    from holdfast.services.doctor.home import check_home, nearest_existing
    from holdfast.services.doctor.kernel import check_kernel
    from holdfast.services.doctor.sandboxes import check_commands, check_engines
    from holdfast.services.doctor.shared_store import check_store
    from holdfast.services.doctor.versions import check_versions

    for result in (*check_home(home), *check_versions(), *check_kernel()):
        yield result
    checks: dict[str, Check] = {
        "store": check_store,
        "model": check_models,
        "sandbox": check_engines,
        "commands": check_commands,
        "mcp": check_servers,
        "notify": check_notifications,
    }
    with _usable_home(home, is_folder=nearest_existing(home).is_dir()) as usable:
        for part, check in (checks | dict(extra)).items():
            for result in await _run_check(part, check, usable):
                yield result


@contextmanager
def _usable_home(home: Home, *, is_folder: bool) -> Iterator[Home]:
    """The data directory, or an empty temporary one where its path is not a folder, so that the other checks still run."""
    if is_folder:
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
