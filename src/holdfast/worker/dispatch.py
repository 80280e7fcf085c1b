"""The contract of an engine: it carries "this session has something to do" to some worker, at least once.

It carries nothing else. What there is to do is in the journal and in the requests of the store, so a job that comes twice,
late or in vain does no harm: the worker opens the session, finds out, and does it or not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from holdfast.core import SessionId, Value
from holdfast.core.errors import InvalidInput, StoreUnavailable

DEFAULT_QUEUE = "default"
Handler = Callable[[SessionId], Awaitable[None]]
"""Does what a session has to do. Raises NotNow if it cannot yet."""


class QueueStatus(Value):
    """The jobs of one queue."""

    name: str
    waiting: int = 0
    running: int = 0
    failed: int = 0
    oldest_seconds: float = 0.0
    """How long the oldest job waits."""


class NotNow(Exception):  # not an error, and nobody but an engine catches it
    """The job is to be given again, after a while, to any worker."""

    def __init__(self, seconds: float = 0.0) -> None:
        super().__init__(f"again in {seconds} s")
        self.seconds = seconds


def check_places(places: int) -> None:
    """Raise InvalidInput if a worker has too few places: engines claim jobs in batches of at least half of them."""
    if places < 2:
        raise InvalidInput("a worker needs at least 2 places", hint="use --places 2")


_WRONG_SCHEMA = frozenset({"42P01", "42703", "42704", "42883"})
"""What PostgreSQL says of a table, a column, a type and a function that does not exist."""


def check_tables(problem: BaseException) -> None:
    """Raise StoreUnavailable if an engine failed because its tables are missing or older than it: no wait repairs that."""
    seen: BaseException | None = problem
    while seen is not None:
        if getattr(seen, "sqlstate", None) in _WRONG_SCHEMA:
            raise StoreUnavailable(
                f"the queue has no tables, or those of an older version: {str(seen).splitlines()[0]}",
                hint="create or upgrade them: holdfast store migrate",
            ) from problem
        seen = seen.__cause__


class Dispatch(Protocol):
    """An engine. Every implementation passes `tests/worker/test_dispatch.py`."""

    async def post(
        self,
        transaction: object,
        sessions: Sequence[SessionId],
        *,
        queue: str = "",
        delay_seconds: float = 0.0,
    ) -> None:
        """Post a job for each session in a transaction of the store: they exist if and only if the transaction is committed.

        Only workers that serve their queue get them; without a name it is the default queue.
        Jobs of one session are not merged: one that is posted while another is about to end must not be lost.
        """
        ...

    async def run(
        self,
        handler: Handler,
        *,
        places: int,
        stop: asyncio.Event,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
    ) -> None:
        """Give jobs of some queues to the handler, at most `places` at once, until `stop` is set and the last handler has returned.

        Raises InvalidInput if there are fewer than two places, and StoreUnavailable if the tables of the engine are missing.

        A job whose worker dies is given to another one. An outage of the database only delays jobs.
        """
        ...

    async def cancel(self, session: SessionId) -> None:
        """Remove the jobs of a session that no worker has taken."""
        ...

    async def backlog(self) -> int:
        """The number of jobs that no worker has finished."""
        ...

    async def failed(self) -> int:
        """The number of jobs whose handler failed with an error. They are kept for an operator and not given again."""
        ...

    async def queues(self) -> Sequence[QueueStatus]:
        """Every queue that has jobs, by name."""
        ...

    async def retry_failed(self) -> int:
        """Give the jobs that failed again, and return how many there were."""
        ...

    async def close(self) -> None:
        """Release what this process holds. Idempotent."""
        ...
