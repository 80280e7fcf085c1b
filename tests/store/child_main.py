"""Other processes on the same store, for tests that need them: `python -m tests.store.child_main ROLE HOME ...`.

Every role answers on stdout, a line at a time; a holder takes orders on stdin.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from tests.store.sample_events import opened, said

from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import HoldfastError, SessionHeld
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore


def say(*words: object) -> None:
    print(*words, flush=True)


async def hold(store: SqliteStore, session: str) -> None:
    """Hold a session, and append an event for each input line."""
    try:
        journal = await store.open(SessionId(session))
    except HoldfastError as problem:
        say(problem.code)
        return
    say("held")
    while line := await asyncio.to_thread(sys.stdin.readline):
        try:
            await journal.append(said(1, line.strip()))
            say("written")
        except HoldfastError as problem:
            say(problem.code)


async def create(store: SqliteStore, count: str) -> None:
    """Create sessions."""
    for _ in range(int(count)):
        say((await store.create(opened())).session)


async def fight(store: SqliteStore, session: str, me: str, count: str) -> None:
    """Take the lease, write and release it, again and again, in competition with other processes."""
    written = 0
    while written < int(count):
        try:
            journal = await store.open(SessionId(session))
        except SessionHeld:
            await asyncio.sleep(0.0005)
            continue
        try:
            await journal.append(said(written, f"{me}:{written}"))
            written += 1
            await journal.release()
        except HoldfastError as problem:
            say("refused", problem.code)
    say("wrote", written)


async def write(store: SqliteStore, session: str) -> None:
    """Append until the process is killed, and print the number of each durable event."""
    journal = await store.open(SessionId(session))
    number = len(journal.recorded)
    while True:
        await asyncio.gather(*(journal.append(said(1, str(number + n))) for n in range(1, 4)))
        number += 3
        say(number)


ROLES: dict[str, Callable[..., Awaitable[None]]] = {
    "hold": hold,
    "create": create,
    "fight": fight,
    "write": write,
}


async def main(role: str, home: str, *rest: str) -> None:
    store = await SqliteStore.start(Home(Path(home)), clock=SystemClock())
    await ROLES[role](store, *rest)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
