"""Opening an engine. The one place that names one."""

from functools import partial
from typing import Any, Literal, get_args

from holdfast.core.errors import EngineMissing, InvalidInput
from holdfast.store import connect_database, database_login, engine_of, put_engine_setting, separate_tenants
from holdfast.worker.dispatch import Dispatch

Engine = Literal["pgqueuer", "procrastinate"]
ENGINES: tuple[Engine, ...] = get_args(Engine)
_EXTRAS = {"pgqueuer": "scale", "procrastinate": "scale-procrastinate"}


def open_dispatch(url: str, *, engine: str = "pgqueuer", heartbeat_seconds: float | None = None) -> Dispatch:
    """An engine over the store at an address: the one that `WorkStore.engine` names. Raises EngineMissing, InvalidInput."""
    options: dict[str, Any] = {} if heartbeat_seconds is None else {"heartbeat_seconds": heartbeat_seconds}
    library, connect = _library(engine), partial(connect_database, url)
    dispatch: Dispatch
    if engine == "procrastinate":
        dispatch = library.ProcrastinateDispatch(connect, login=database_login(url), **options)
    else:
        dispatch = library.PgqueuerDispatch(connect, **options)
    return dispatch


async def find_dispatch(url: str) -> Dispatch:
    """The engine of the store at an address. Raises EngineMissing, StoreUnavailable."""
    return open_dispatch(url, engine=await engine_of(url))


async def install_dispatch(url: str, *, engine: str | None = None) -> bool:
    """Create or upgrade the tables of an engine, by default the one that the store has. Returns whether there was something to do.

    Another engine than before is refused while jobs wait in that one. Raises InvalidInput, StoreUnavailable.
    """
    current = await engine_of(url)
    chosen = engine or current
    library = _library(chosen)
    if chosen != current and await _has_jobs(url, current):
        raise InvalidInput(
            f"jobs wait in the engine {current!r}", hint="let workers finish them first: holdfast queue"
        )
    is_new = bool(await library.install(partial(connect_database, url, is_admin=True)))
    await separate_tenants(url, library.TENANT_TABLES)
    if chosen != current:
        await put_engine_setting(url, chosen)
    return is_new or chosen != current


async def _has_jobs(url: str, engine: str) -> bool:
    connection = await connect_database(url, is_admin=True)
    try:
        table = _library(engine).TENANT_TABLES[0]
        is_there = await connection.fetchval("SELECT to_regclass($1) IS NOT NULL", table)
    finally:
        await connection.close()
    return is_there and bool(await open_dispatch(url, engine=engine).backlog())


def _library(engine: str) -> Any:  # Any: the module is loaded only where it is installed
    try:
        match engine:
            case "pgqueuer":
                import holdfast.worker.pgqueuer_dispatch as pgqueuer_library

                return pgqueuer_library
            case "procrastinate":
                import holdfast.worker.procrastinate_dispatch as procrastinate_library

                return procrastinate_library
            case _:
                raise InvalidInput(
                    f"there is no engine {engine!r}", hint=f"choose one of {', '.join(ENGINES)}"
                )
    except ModuleNotFoundError as problem:
        raise EngineMissing(
            f"workers need {problem.name!r}",
            hint=f"install it with: pip install 'holdfast[{_EXTRAS[engine]}]'",
        ) from problem
