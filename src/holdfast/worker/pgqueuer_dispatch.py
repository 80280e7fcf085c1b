"""pgqueuer as the engine: jobs in the database of the store, claimed with heartbeats.

What it must be configured to do, each found by losing jobs: a failed job is deleted unless it is held, a handler that is cancelled
counts as done, `run` ends when the database restarts, and places must be at least twice the batch.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

from pgqueuer import AsyncpgDriver, Job, Queries, QueueManager, RetryRequested

from holdfast.core import SessionId
from holdfast.store import register_enum
from holdfast.worker.dispatch import DEFAULT_QUEUE, Handler, NotNow, QueueStatus, check_places, check_tables

ENTRYPOINT = "session"
TENANT_TABLES = ("pgqueuer", "pgqueuer_log")
"""Its tables with rows of sessions. The others have numbers of jobs by queue, or nothing."""
HEARTBEAT_SECONDS = 8.0
"""A job whose worker was silent for this long is given to another one. Longer than a lease outlives its worker: otherwise the
next worker would find the session held."""
_PAUSE_SECONDS = 0.5
_QUEUES = """
SELECT entrypoint, count(*) FILTER (WHERE status = 'queued') AS waiting,
    count(*) FILTER (WHERE status = 'picked') AS running, count(*) FILTER (WHERE status = 'failed') AS failed,
    coalesce(extract(epoch FROM now() - min(execute_after) FILTER (WHERE status = 'queued')), 0)::float8 AS oldest_seconds
FROM pgqueuer GROUP BY entrypoint ORDER BY entrypoint
"""
Connect = Callable[[], Awaitable[Any]]
"""Opens an asyncpg connection whose search path is the schema of the store. Any: asyncpg has no annotations."""


class PgqueuerDispatch:
    """Jobs as rows of pgqueuer's table."""

    def __init__(self, connect: Connect, *, heartbeat_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._connect = connect
        self._heartbeat = timedelta(seconds=heartbeat_seconds)
        logging.getLogger("pgqueuer").setLevel(logging.CRITICAL)  # it logs tracebacks with our payloads

    async def post(
        self,
        transaction: Any,
        sessions: Sequence[SessionId],
        *,
        queue: str = "",
        delay_seconds: float = 0.0,
    ) -> None:
        queries = Queries(AsyncpgDriver(transaction))
        delay = timedelta(seconds=delay_seconds) if delay_seconds else None
        count = len(sessions)
        entrypoints = [_entrypoint(queue or DEFAULT_QUEUE)] * count
        await queries.enqueue(
            entrypoints, [session.encode() for session in sessions], [0] * count, [delay] * count
        )

    async def run(
        self,
        handler: Handler,
        *,
        places: int,
        stop: asyncio.Event,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
    ) -> None:
        check_places(places)
        stopping = asyncio.create_task(stop.wait())
        try:
            while not stop.is_set():
                try:
                    await self._run_once(handler, places, queues, stopping)
                except Exception as problem:  # an outage ends it in many ways
                    check_tables(problem)
                await asyncio.wait((stopping,), timeout=_PAUSE_SECONDS)
        finally:
            stopping.cancel()

    async def cancel(self, session: SessionId) -> None:
        async with _Opened(self._connect) as connection:
            await connection.execute(
                "DELETE FROM pgqueuer WHERE payload = $1 AND status = 'queued'", session.encode()
            )

    async def backlog(self) -> int:
        return await self._count("queued", "picked")

    async def failed(self) -> int:
        return await self._count("failed")

    async def queues(self) -> Sequence[QueueStatus]:
        async with _Opened(self._connect) as connection:
            rows = await connection.fetch(_QUEUES)
        return [
            QueueStatus(
                name=row["entrypoint"].removeprefix(f"{ENTRYPOINT}:")
                if ":" in row["entrypoint"]
                else DEFAULT_QUEUE,
                waiting=row["waiting"],
                running=row["running"],
                failed=row["failed"],
                oldest_seconds=row["oldest_seconds"],
            )
            for row in rows
        ]

    async def retry_failed(self) -> int:
        async with _Opened(self._connect) as connection:
            queries = Queries(AsyncpgDriver(connection))
            failed = await connection.fetch("SELECT id FROM pgqueuer WHERE status = 'failed'")
            if failed:
                await queries.requeue_jobs([row["id"] for row in failed])
            return len(failed)

    async def close(self) -> None:
        return None

    async def _count(self, *states: str) -> int:
        async with _Opened(self._connect) as connection:
            found = "SELECT count(*) FROM pgqueuer WHERE status::text = ANY ($1)"
            return int(await connection.fetchval(found, list(states)))

    async def _run_once(
        self, handler: Handler, places: int, queues: Sequence[str], stopping: "asyncio.Task[bool]"
    ) -> None:
        async with _Opened(self._connect) as connection:
            await register_enum(connection, "pgqueuer_status")
            manager = _Manager(Queries(AsyncpgDriver(connection)))

            async def session(job: Job) -> None:
                try:
                    await handler(SessionId((job.payload or b"").decode()))
                except NotNow as later:
                    raise RetryRequested(delay=timedelta(seconds=later.seconds)) from None

            for queue in dict.fromkeys(queues):
                manager.entrypoint(_entrypoint(queue), on_failure="hold")(session)
            connection.add_termination_listener(lambda _: manager.shutdown.set())
            stopping.add_done_callback(lambda _: manager.shutdown.set())
            await manager.run(
                dequeue_timeout=timedelta(seconds=min(5.0, self._heartbeat.total_seconds() / 2)),
                batch_size=max(1, min(places // 2, 50)),
                max_concurrent_tasks=places,
                heartbeat_timeout=self._heartbeat,
            )


class _Manager(QueueManager):
    async def verify_structure(self) -> None:
        """The first claim fails if a table is missing. To look for each column took most of the start of a worker."""


def _entrypoint(queue: str) -> str:
    return ENTRYPOINT if queue == DEFAULT_QUEUE else f"{ENTRYPOINT}:{queue}"


class _Opened:
    """A connection for the duration of a block."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect

    async def __aenter__(self) -> Any:
        self._connection = await self._connect()
        return self._connection

    async def __aexit__(self, *_: object) -> None:
        try:
            async with asyncio.timeout(5):
                await self._connection.close()
        except Exception:  # a server that is gone; whatever it says, the connection is of no use
            self._connection.terminate()


async def install(connect: Connect) -> bool:
    """Create or upgrade the tables of the engine. Returns whether there was something to do."""
    async with _Opened(connect) as connection:
        queries = Queries(AsyncpgDriver(connection))
        if not await queries.schema_is_installed():
            await queries.install(create_schema=False)
            return True
        return bool((await queries.apply_upgrade()).statements)
