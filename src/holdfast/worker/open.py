"""Opening an engine. The one place that names one."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from holdfast.core.errors import EngineMissing
from holdfast.store import connect_database, separate_tenants
from holdfast.worker.dispatch import Dispatch


def open_dispatch(url: str, *, heartbeat_seconds: float | None = None) -> Dispatch:
    """The engine of the store at an address. Raises EngineMissing."""
    engine = _engine()
    options = {} if heartbeat_seconds is None else {"heartbeat_seconds": heartbeat_seconds}
    dispatch: Dispatch = engine.PgqueuerDispatch(_connector(url), **options)
    return dispatch


async def install_dispatch(url: str) -> bool:
    """Create or upgrade the tables of the engine. Returns whether there was something to do."""
    engine = _engine()
    is_new = bool(await engine.install(partial(connect_database, url, is_admin=True)))
    await separate_tenants(url, engine.TENANT_TABLES)
    return is_new


def _connector(url: str) -> Callable[[], Awaitable[Any]]:
    return partial(connect_database, url)


def _engine() -> Any:  # Any: the module is loaded only where it is installed
    try:
        import holdfast.worker.pgqueuer_dispatch as engine
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"workers need {problem.name!r}", hint="install it with: pip install 'holdfast[scale]'"
        ) from problem
    return engine
