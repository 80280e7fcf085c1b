"""The switchboard of a roster on this machine: opened with everything below it, and served."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SessionId, SystemClock, Toolset, digest
from holdfast.policy import load_policy
from holdfast.session import Session
from holdfast.store import Home
from holdfast.teams import (
    OUTSIDE,
    Broker,
    Caller,
    Callers,
    MemberFactory,
    Roster,
    Team,
    serve_stdio,
    serving_http,
)


@asynccontextmanager
async def open_broker(roster: Roster, file: Path, home: Home) -> AsyncIterator[tuple[Broker, MemberFactory]]:
    """The switchboard of a roster, and its staff."""
    clock = SystemClock()
    runtime = await Runtime.start(home=home.root, settings=load_config(home))
    print_store_notices(runtime.store, Console())
    try:
        name = "default" if file == home.root / "teams.yaml" else digest(str(file))[:12]
        folder = home.root / "teams" / name

        async def open_session(session: SessionId, team: Team, toolsets: Sequence[Toolset]) -> Session:
            return await runtime.resume(
                session, model=team.model or None, policy=team.policy, toolsets=toolsets
            )

        staff = MemberFactory(
            roster=roster,
            folder=folder,
            home=home,
            store=runtime.store,
            clock=clock,
            open_policy=lambda policy: load_policy(policy, search=(home.policies,)),
            open_session=open_session,
            environ=os.environ,
        )
        board = Broker(roster=roster, folder=folder, store=runtime.store, staff=staff, clock=clock)
        async with board:
            yield board, staff
    finally:
        await runtime.close()


async def serve_broker(
    board: Broker, staff: MemberFactory, console: Console, *, caller: Caller, port: int | None
) -> None:
    """Serve until the client leaves, or over HTTP until we are ended. What was lost is told, and what waits is delivered, first."""
    if caller.team != OUTSIDE:
        board.roster.team(caller.team)
    for finding in await board.discover():
        console.say(f"note: {finding.pair}: {finding.what}", "ask")
    await board.take_up()
    if port is None:
        await serve_stdio(board, caller)
        return
    callers = Callers()
    tokens = {name: callers.admit(Caller(team=name)) for name in (*board.roster.teams, OUTSIDE)}
    tokens["operator"] = callers.admit(Caller(is_operator=True))
    async with serving_http(board, callers, port=port) as url:
        staff.introduce = lambda pair, session: callers.introduce(
            url, Caller(team=pair.receiver, within=session)
        )
        console.json({"url": url, "tokens": tokens})
        await asyncio.get_running_loop().create_future()
