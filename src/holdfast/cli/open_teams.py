"""Opens the broker of a roster with the runtime it needs, and serves it."""

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
    EXTERNAL_SENDER,
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
    """Open the broker of a roster and its member factory."""
    clock = SystemClock()
    runtime = await Runtime.start(home=home.root, settings=load_config(home), servers=())
    print_store_notices(runtime.store, Console())
    try:
        name = "default" if file == home.root / "teams.yaml" else digest(str(file))[:12]
        folder = home.root / "teams" / name

        async def open_session(session: SessionId, team: Team, toolsets: Sequence[Toolset]) -> Session:
            return await runtime.resume(
                session, model=team.model or None, policy=team.policy, toolsets=toolsets
            )

        factory = MemberFactory(
            roster=roster,
            folder=folder,
            home=home,
            store=runtime.store,
            clock=clock,
            open_policy=lambda policy: load_policy(policy, search=(home.policies,)),
            open_session=open_session,
            environ=os.environ,
        )
        broker = Broker(roster=roster, folder=folder, store=runtime.store, factory=factory, clock=clock)
        async with broker:
            yield broker, factory
    finally:
        await runtime.close()


async def serve_teams(
    broker: Broker, factory: MemberFactory, console: Console, *, caller: Caller, port: int | None
) -> None:
    """Report problems and deliver queued messages, then serve until the client disconnects or the process ends."""
    if caller.team != EXTERNAL_SENDER:
        broker.roster.team(caller.team)
    for problem in await broker.reconcile():
        console.say(f"note: {problem.pair}: {problem.what}", "ask")
    await broker.resume_pending()
    if port is None:
        await serve_stdio(broker, caller)
        return
    callers = Callers()
    tokens = {name: callers.add(Caller(team=name)) for name in (*broker.roster.teams, EXTERNAL_SENDER)}
    tokens["operator"] = callers.add(Caller(is_operator=True))
    async with serving_http(broker, callers, port=port) as url:
        factory.issue_token = lambda pair, session: callers.issue_token(
            url, Caller(team=pair.receiver, asking_session=session)
        )
        console.json({"url": url, "tokens": tokens})
        await asyncio.get_running_loop().create_future()
