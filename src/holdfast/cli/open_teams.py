"""Opening and serving the message broker of a team roster."""

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
    """Open the broker of a roster with its runtime, and the factory of its members."""
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

        members = MemberFactory(
            roster=roster,
            folder=folder,
            home=home,
            store=runtime.store,
            clock=clock,
            open_policy=lambda policy: load_policy(policy, search=(home.policies,)),
            open_session=open_session,
            environ=os.environ,
        )
        broker = Broker(roster=roster, folder=folder, store=runtime.store, staff=members, clock=clock)
        async with broker:
            yield broker, members
    finally:
        await runtime.close()


async def serve_broker(
    broker: Broker, members: MemberFactory, console: Console, *, caller: Caller, port: int | None
) -> None:
    """Report what a crash lost, deliver queued messages, then serve until the client leaves (stdio) or the process ends (HTTP)."""
    if caller.team != OUTSIDE:
        broker.roster.team(caller.team)
    for finding in await broker.discover():
        console.say(f"note: {finding.pair}: {finding.what}", "ask")
    await broker.take_up()
    if port is None:
        await serve_stdio(broker, caller)
        return
    callers = Callers()
    tokens = {name: callers.admit(Caller(team=name)) for name in (*broker.roster.teams, OUTSIDE)}
    tokens["operator"] = callers.admit(Caller(is_operator=True))
    async with serving_http(broker, callers, port=port) as url:
        members.introduce = lambda pair, session: callers.introduce(
            url, Caller(team=pair.receiver, within=session)
        )
        console.json({"url": url, "tokens": tokens})
        await asyncio.get_running_loop().create_future()
