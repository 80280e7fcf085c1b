"""The examination: every check, one after the other. One that cannot be made is a finding like any other."""

import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.cli.doctor.finding import CheckResult
from holdfast.cli.doctor.home import check_home, nearest_existing
from holdfast.cli.doctor.kernel import check_kernel
from holdfast.cli.doctor.sandboxes import check_engines
from holdfast.cli.doctor.services import check_models, check_servers
from holdfast.cli.doctor.versions import check_versions
from holdfast.core.errors import HoldfastError
from holdfast.store import Home

Check = Callable[[Home], Awaitable[list[CheckResult]]]
_CHECKS: dict[str, Check] = {"model": check_models, "sandbox": check_engines, "mcp": check_servers}


async def run_checks(home: Home) -> AsyncGenerator[CheckResult, None]:
    """Every finding, in the order a person would look."""
    for finding in (*check_home(home), *check_versions(), *check_kernel()):
        yield finding
    with _usable_home(home) as usable:
        for part, check in _CHECKS.items():
            for finding in await _run_check(part, check, usable):
                yield finding


@contextmanager
def _usable_home(home: Home) -> Iterator[Home]:
    """The home; or one that is not there yet, where something else is in its place: the rest can be looked at all the same."""
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
                part=part, state="bad", told=str(error), fix=error.hint or f"holdfast explain {error.code}"
            )
        ]
    except OSError as error:
        fix = "look whether it is yours and can be read"
        return [CheckResult(part=part, state="bad", told=f"cannot be looked at: {error}", fix=fix)]
