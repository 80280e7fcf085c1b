"""Connections to PostgreSQL: opening them, the queries, and what errors mean."""

import asyncio
import re
import shlex
from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

import asyncpg

from holdfast.core.errors import InvalidInput, StoreUnavailable
from holdfast.store.contract import DatabaseLogin
from holdfast.store.postgres.types import register_arrays

SCHEMA = "holdfast"
"""The schema of all our tables, so that the database can hold other programs' tables too."""
DEFAULT_TENANT = "default"
ROLE = "holdfast_tenant"
"""The database role of everything but administration. It owns nothing, so row-level security counts for it."""
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 30.0
"""A partition gives no answer at all, so every wait needs a limit."""

LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a statement that was sent while the connection broke
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.TooManyConnectionsError,
    OSError,
    TimeoutError,
)
"""The connection is gone or of no use, and it is unknown whether the last statement was carried out."""

RETRIED = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Nothing was done, and the same statement may succeed now."""

_SETTINGS = {
    "search_path": SCHEMA,
    "application_name": "holdfast",
    # A client that vanished in mid-transaction must not keep its locks.
    "idle_in_transaction_session_timeout": "20000",
    "tcp_user_timeout": "20000",
    "jit": "off",  # compiling a statement takes longer than running it
    # What is acknowledged is on disk, whatever the server's default is.
    "synchronous_commit": "on",
}


TENANT_SETTING = "holdfast.tenant"
_CHECK = f"SELECT current_setting('{TENANT_SETTING}')"
"""Fails if a pooler in between dropped the settings of the connection."""
_ENTER = f"""
{_CHECK};
SELECT set_config('role', 'holdfast_tenant', false) WHERE CASE WHEN to_regrole('holdfast_tenant') IS NULL THEN false
    ELSE pg_has_role(to_regrole('holdfast_tenant'), 'MEMBER')
        AND has_table_privilege(to_regrole('holdfast_tenant'), to_regclass('holdfast.tenant'), 'SELECT') END
"""
"""Gives up the rights of the login: a superuser would see the rows of all tenants. Where the role is missing, only the default
tenant exists, and its owner is under row-level security as well."""


def load_queries() -> dict[str, str]:
    """Load the statements of `sql/queries.sql` by name."""
    text = (resources.files(__package__) / "sql" / "queries.sql").read_text()
    parts = re.split(r"^-- name: (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {
        name: re.sub(r"^--.*\n", "", body, flags=re.MULTILINE).strip().rstrip(";")
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


_TENANT = re.compile(r"[a-z0-9][a-z0-9-]{0,38}")


def check_tenant(name: str) -> str:
    """Raise InvalidInput unless this can be the name of a tenant."""
    if not _TENANT.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be the name of a tenant", hint="use lower-case letters, digits and hyphens"
        )
    return name


def split_tenant(url: str) -> tuple[str, str]:
    """The address for the server, and the tenant that its parameter `tenant` names. Raises InvalidInput."""
    try:
        parts = urlsplit(url)
    except ValueError as problem:
        raise _not_an_address(url, problem) from None
    if "tenant=" not in parts.query:
        return url, DEFAULT_TENANT
    given = parse_qsl(parts.query, keep_blank_values=True)
    tenants = [value for name, value in given if name == "tenant"]
    others = urlencode([pair for pair in given if pair[0] != "tenant"], safe="/")
    return parts._replace(query=others).geturl(), check_tenant(tenants[-1]) if tenants else DEFAULT_TENANT


async def connect(
    url: str, *, command_seconds: float = COMMAND_SECONDS, is_admin: bool = False
) -> asyncpg.Connection:
    """Open a connection for one tenant, or for administration. Raises InvalidInput if the address makes no sense, and what
    asyncpg raises."""
    server, tenant = split_tenant(url)
    try:
        connection = await asyncpg.connect(
            server,
            timeout=CONNECT_SECONDS,
            command_timeout=command_seconds,
            server_settings={**_SETTINGS, TENANT_SETTING: tenant},
        )
    except ValueError as problem:
        raise _not_an_address(url, problem) from None
    register_arrays(connection)
    await _execute(connection, _CHECK if is_admin else _ENTER)
    return connection


async def _prepare(connection: asyncpg.Connection) -> None:
    register_arrays(connection)
    await _execute(connection, _ENTER)


async def _execute(connection: asyncpg.Connection, statements: str) -> None:
    """Run the first statements of a connection, which is of no use without them."""
    try:
        await connection.execute(statements)
    except BaseException:
        connection.terminate()
        raise


def login(url: str) -> DatabaseLogin:
    """How another library opens a connection for one tenant. Raises InvalidInput."""
    server, tenant = split_tenant(url)
    settings = {"search_path": SCHEMA, TENANT_SETTING: tenant, "application_name": "holdfast"}
    return DatabaseLogin(url=server, settings=settings, enter=_ENTER)


def shown(url: str) -> str:
    """The address without its password. It need not make sense: one with a stray `/` or `@` in its password does not."""
    head, is_given, _ = url.partition("password=")
    head = re.sub(r"(?<=://)([^:]*:).*(?=@)", r"\1***", head, flags=re.DOTALL)
    return f"{head}password=***" if is_given else head


def command_for(action: str, url: str) -> str:
    """The command that does something with a store, as a shell takes it."""
    return f"holdfast store {action} {shlex.quote(shown(url))}"


def explain(problem: BaseException, url: str) -> StoreUnavailable:
    """Translate an error of the server or of the connection for the user."""
    where = shown(url)
    match problem:
        case asyncpg.ProtocolViolationError() | asyncpg.UndefinedObjectError() if _is_of_a_pooler(problem):
            text = "is behind a connection pooler such as PgBouncer, which drops the settings of a connection"
            hint = "use the address of the PostgreSQL server itself; a process needs about six connections"
        case asyncpg.InvalidAuthorizationSpecificationError():
            text, hint = "refused the login", "check user and password in the address"
        case asyncpg.InvalidCatalogNameError():
            text, hint = "has no such database", f"create it, then run: {command_for('init', url)}"
        case asyncpg.UndefinedTableError() | asyncpg.InvalidSchemaNameError():
            text, hint = "has no Holdfast schema", command_for("init", url)
        case asyncpg.DiskFullError():
            text, hint = "has no disk space left", "free some space on its disk and try again"
        case asyncpg.ReadOnlySQLTransactionError():
            text, hint = "only allows reading: it is a standby", "use the address of the primary server"
        case asyncpg.PostgresError() if not isinstance(problem, LOST):
            text, hint = f"refused a statement: {problem}", "check the server's log"
        case _:
            detail = str(problem) or type(problem).__name__
            text, hint = (
                f"cannot be reached: {detail}",
                "check that the server runs and that the address is right",
            )
    return StoreUnavailable(f"the store {where!r} {text}", hint=hint)


def _is_of_a_pooler(problem: Exception) -> bool:
    """PgBouncer refuses settings at the start of a connection, or drops them silently if it is told to."""
    return "startup parameter" in str(problem) or TENANT_SETTING in str(problem)


Result = TypeVar("Result")
Work = Callable[[asyncpg.Connection], Awaitable[Result]]
OUTAGE_SECONDS = 30.0
"""How long a restart of the server may take before an operation gives up."""
_PAUSE_SECONDS = 0.2
MAX_CONNECTIONS = 4


class Database:
    """A few connections for everything but appends, which have one of their own."""

    def __init__(self, url: str, pool: asyncpg.Pool, outage_seconds: float, *, tenant: str) -> None:
        self.url = url
        self.tenant = tenant
        self.outage_seconds = outage_seconds
        self._pool = pool

    @classmethod
    async def open(cls, url: str, *, outage_seconds: float = OUTAGE_SECONDS) -> "Database":
        """Connect. Raises StoreUnavailable."""
        server, tenant = split_tenant(url)
        try:
            pool = await asyncpg.create_pool(
                server,
                min_size=1,
                max_size=MAX_CONNECTIONS,
                timeout=CONNECT_SECONDS,
                command_timeout=COMMAND_SECONDS,
                server_settings={**_SETTINGS, TENANT_SETTING: tenant},
                init=_prepare,
                reset=_keep,
            )
        except ValueError as problem:
            raise _not_an_address(url, problem) from None
        except (*LOST, asyncpg.PostgresError) as problem:
            raise explain(problem, url) from problem
        return cls(url, pool, outage_seconds, tenant=tenant)

    async def read(self, work: Work[Result]) -> Result:
        """Run statements that may be run again. They are, while the server restarts. Raises StoreUnavailable."""
        return await self._run(work, is_repeatable=True)

    async def write(self, work: Work[Result], *, is_repeatable: bool = False) -> Result:
        """Run statements in a transaction. If the connection is lost, they may have taken effect. Raises StoreUnavailable.

        What is repeatable finds out by itself whether it has taken effect already, and is run again.
        """

        async def transaction(connection: asyncpg.Connection) -> Result:
            async with connection.transaction():
                return await work(connection)

        return await self._run(transaction, is_repeatable=is_repeatable)

    async def _run(self, work: Work[Result], *, is_repeatable: bool) -> Result:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.outage_seconds
        while True:
            try:
                async with self._pool.acquire(timeout=COMMAND_SECONDS) as connection:
                    return await work(connection)
            except RETRIED:
                await asyncio.sleep(0)
            except LOST as problem:
                if not is_repeatable or loop.time() > deadline or self._pool.is_closing():
                    raise explain(problem, self.url) from problem
                await asyncio.sleep(_PAUSE_SECONDS)
            except asyncpg.UniqueViolationError:
                raise
            except asyncpg.PostgresError as problem:
                raise explain(problem, self.url) from problem

    async def close(self) -> None:
        """Close the connections, without waiting for a server that does not answer."""
        try:
            async with asyncio.timeout(5):
                await self._pool.close()
        except (*LOST, asyncpg.PostgresError):
            self._pool.terminate()


async def _keep(_: Any) -> None:
    """A connection that comes back needs no reset: we leave no settings, locks or cursors behind."""


def _not_an_address(url: str, problem: ValueError) -> InvalidInput:
    text = f"{shown(url)!r} is not the address of a PostgreSQL database"
    if isinstance(problem, asyncpg.ClientConfigurationError):
        return InvalidInput(f"{text}: {problem}", hint="for example: postgresql://user@host/database")
    # What Python says of a part that it cannot read quotes that part, which may be the password.
    return InvalidInput(text, hint="in a password, write @ as %40, / as %2F, ? as %3F, # as %23 and [ as %5B")


async def close_quickly(connection: asyncpg.Connection) -> None:
    """Close a connection, without waiting for a server that does not answer."""
    try:
        async with asyncio.timeout(5):
            await connection.close()
    except (*LOST, asyncpg.PostgresError):
        connection.terminate()


SQL = load_queries()
