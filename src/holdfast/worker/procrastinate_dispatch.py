"""procrastinate as the engine, for those who run it already: jobs in the database of the store, over psycopg.

What it must be helped with: nobody gives the jobs of a dead worker to another one, so every worker does that for all; a delay is
counted by the clock of the client, so delayed jobs are posted by a statement of ours; and `run` ends when the database restarts.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import procrastinate
from procrastinate.schema import SchemaManager
from procrastinate.worker import Worker

from holdfast.core import SessionId
from holdfast.core.errors import StoreUnavailable
from holdfast.store import DatabaseLogin
from holdfast.worker.dispatch import DEFAULT_QUEUE, Handler, NotNow, QueueStatus, check_places, check_tables

TASK = "session"
TENANT_TABLES = ("procrastinate_jobs", "procrastinate_events", "procrastinate_workers")
HEARTBEAT_SECONDS = 8.0
"""A job whose worker was silent for this long is given to another one. Longer than a lease outlives its worker."""
POLL_SECONDS = 1.0
_PAUSE_SECONDS = 0.5
_POST = """
SELECT procrastinate_defer_jobs_v1(array_agg(ROW($1::varchar, $2::varchar, 0, NULL, NULL, arguments,
    CASE WHEN $4::interval > interval '0' THEN now() + $4::interval END)::procrastinate_job_to_defer_v1))
FROM unnest($3::jsonb[]) AS a (arguments)
"""
_TAKE_BACK = """
SELECT procrastinate_retry_job_v2(job.id, now(), NULL, NULL, NULL) FROM procrastinate_jobs AS job
LEFT JOIN procrastinate_workers AS worker ON worker.id = job.worker_id
WHERE job.status = 'doing' AND (worker.id IS NULL OR worker.last_heartbeat < now() - $1::interval)
"""
_QUEUES = """
SELECT queue_name AS name, count(*) FILTER (WHERE status = 'todo') AS waiting,
    count(*) FILTER (WHERE status = 'doing') AS running, count(*) FILTER (WHERE status = 'failed') AS failed,
    coalesce(extract(epoch FROM now() - min(coalesce(scheduled_at, now())) FILTER (WHERE status = 'todo')), 0)::float8
        AS oldest_seconds
FROM procrastinate_jobs GROUP BY queue_name ORDER BY queue_name
"""
Connect = Callable[[], Awaitable[Any]]
"""Opens an asyncpg connection whose search path is the schema of the store. Any: asyncpg has no annotations."""


class ProcrastinateDispatch:
    """Jobs as rows of procrastinate's table."""

    def __init__(
        self, connect: Connect, *, login: DatabaseLogin, heartbeat_seconds: float = HEARTBEAT_SECONDS
    ) -> None:
        self._connect = connect
        self._login = login
        self._heartbeat_seconds = heartbeat_seconds
        for name in ("procrastinate", "psycopg.pool"):
            logging.getLogger(name).setLevel(
                logging.CRITICAL
            )  # they log tracebacks, and every failed attempt

    async def post(
        self,
        transaction: Any,
        sessions: Sequence[SessionId],
        *,
        queue: str = "",
        delay_seconds: float = 0.0,
    ) -> None:
        arguments = [json.dumps({"session": session}) for session in sessions]
        await transaction.execute(
            _POST, queue or DEFAULT_QUEUE, TASK, arguments, timedelta(seconds=delay_seconds)
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
                    await self._run_once(handler, places, list(dict.fromkeys(queues)), stopping)
                except Exception as problem:  # an outage ends it in many ways
                    check_tables(problem)
                await asyncio.wait((stopping,), timeout=_PAUSE_SECONDS)
        finally:
            stopping.cancel()

    async def cancel(self, session: SessionId) -> None:
        await self._execute(
            "DELETE FROM procrastinate_jobs WHERE args->>'session' = $1 AND status = 'todo'", session
        )

    async def backlog(self) -> int:
        return await self._count("todo", "doing")

    async def failed(self) -> int:
        return await self._count("failed")

    async def queues(self) -> Sequence[QueueStatus]:
        return [QueueStatus(**dict(row)) for row in await self._execute(_QUEUES)]

    async def retry_failed(self) -> int:
        again = "UPDATE procrastinate_jobs SET status = 'todo', scheduled_at = NULL WHERE status = 'failed' RETURNING id"
        return len(await self._execute(again))

    async def close(self) -> None:
        return None

    async def _count(self, *states: str) -> int:
        found = "SELECT count(*) AS number FROM procrastinate_jobs WHERE status::text = ANY ($1)"
        return int((await self._execute(found, list(states)))[0]["number"])

    async def _execute(self, statement: str, *arguments: object) -> Any:
        connection = await self._connect()
        try:
            return await connection.fetch(statement, *arguments)
        finally:
            await _close(connection)

    async def _run_once(
        self, handler: Handler, places: int, queues: list[str], stopping: "asyncio.Task[bool]"
    ) -> None:
        connector = procrastinate.PsycopgConnector(
            conninfo=self._login.url,
            kwargs={
                "options": " ".join(f"-c {name}={value}" for name, value in self._login.settings.items())
            },
            configure=self._enter,
            min_size=1,
            max_size=3,
            timeout=10,
            reconnect_timeout=1,
        )
        app = procrastinate.App(connector=connector)

        @app.task(name=TASK)
        async def session(session: str) -> None:
            try:
                await handler(SessionId(session))
            except NotNow as later:
                await self._post_again(SessionId(session), later.seconds)

        async with app.open_async():
            worker: Any = Worker(  # Any: its methods have no annotations
                app,
                queues=queues,
                concurrency=places,
                fetch_job_polling_interval=POLL_SECONDS,
                delete_jobs="successful",
                install_signal_handlers=False,
                update_heartbeat_interval=self._heartbeat_seconds / 4,
                stalled_worker_timeout=self._heartbeat_seconds,
            )
            stopping.add_done_callback(lambda _: worker.stop())
            if stopping.done():
                return
            taking_back = asyncio.create_task(self._take_back())
            try:
                await worker.run()
            finally:
                taking_back.cancel()
                with suppress(asyncio.CancelledError):
                    await taking_back

    async def _post_again(self, session: SessionId, delay_seconds: float) -> None:
        """Post a job again before this one counts as done: at worst it is given twice."""
        connection = await self._connect()
        try:
            queue = DEFAULT_QUEUE
            running = "SELECT queue_name FROM procrastinate_jobs WHERE args->>'session' = $1 AND status = 'doing' LIMIT 1"
            queue = await connection.fetchval(running, session) or queue
            await self.post(connection, [session], queue=queue, delay_seconds=delay_seconds)
        finally:
            await _close(connection)

    async def _take_back(self) -> None:
        """Give the jobs of dead workers to others."""
        silence = timedelta(seconds=self._heartbeat_seconds)
        while True:
            with suppress(Exception):  # an outage: the next look comes
                await self._execute(_TAKE_BACK, silence)
            await asyncio.sleep(self._heartbeat_seconds / 4)

    async def _enter(self, connection: Any) -> None:
        await connection.execute(self._login.enter)
        await connection.commit()


async def _close(connection: Any) -> None:
    try:
        async with asyncio.timeout(5):
            await connection.close()
    except Exception:  # a server that is gone; whatever it says, the connection is of no use
        connection.terminate()


async def install(connect: Connect) -> bool:
    """Create the tables of the engine. Returns whether there was something to do. Raises StoreUnavailable."""
    connection = await connect()
    try:
        if await connection.fetchval("SELECT to_regclass('procrastinate_jobs') IS NOT NULL"):
            if not await connection.fetchval("SELECT to_regproc('procrastinate_retry_job_v2') IS NOT NULL"):
                raise StoreUnavailable(
                    "the tables of procrastinate are of an older version",
                    hint="apply its migrations: procrastinate schema --migrations-path",
                )
            return False
        await connection.execute(SchemaManager.get_schema())
        return True
    finally:
        await _close(connection)
