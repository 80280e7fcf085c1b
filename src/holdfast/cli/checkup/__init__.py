"""The checks of `holdfast doctor`, one module a thing to look at; each gives findings, and each finding a way out."""

from collections.abc import AsyncGenerator

from holdfast.cli.checkup.engines import check_engines
from holdfast.cli.checkup.finding import Finding
from holdfast.cli.checkup.home import check_home
from holdfast.cli.checkup.kernel import check_kernel
from holdfast.cli.checkup.models import check_models
from holdfast.cli.checkup.servers import check_servers
from holdfast.cli.checkup.versions import check_versions
from holdfast.store import Home

__all__ = ["Finding", "examine"]


async def examine(home: Home) -> AsyncGenerator[Finding, None]:
    """Every finding, in the order a person would look. The home comes first: later checks may put it in order."""
    for finding in (*check_home(home), *check_versions(), *check_kernel()):
        yield finding
    for check in (check_models, check_engines, check_servers):
        for finding in await check(home):
            yield finding
