"""Opens the broker of a roster with the runtime it needs, and serves it."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SessionId, SystemClock, Toolset, digest
from holdfast.policy import load_policy
from holdfast.services import notify_about
from holdfast.session import Session
from holdfast.store import Home
from holdfast.teams import (
    EXTERNAL_SENDER,
    OPERATOR,
    Broker,
    Caller,
    Callers,
    MemberFactory,
    Roster,
    SharedBroker,
    Team,
    TokenFile,
    give_tools,
    serve_stdio,
    serving_http,
)


def teams_folder(file: Path, home: Home) -> Path:
    """The folder of a roster's agent homes and tokens."""
    return home.root / "teams" / ("default" if file == home.root / "teams.yaml" else digest(str(file))[:12])


def token_file(roster: Roster, file: Path, home: Home) -> TokenFile:
    """The tokens of a roster: one for each team, for external callers and for the operator."""
    names = (*roster.teams, EXTERNAL_SENDER, OPERATOR)
    return TokenFile(teams_folder(file, home) / "tokens.json", names)


@asynccontextmanager
async def open_broker(roster: Roster, file: Path, home: Home) -> AsyncIterator[tuple[Broker, MemberFactory]]:
    """Open the broker of a roster and its member factory."""
    clock = SystemClock()
    settings = load_config(home)
    async with AsyncExitStack() as stack:
        runtime = await Runtime.start(home=home.root, settings=settings, servers=())
        stack.push_async_callback(runtime.close)
        print_store_notices(runtime.store, Console())
        notifications = await stack.enter_async_context(
            notify_about(runtime.live_sessions, settings.notify, home=home)
        )
        folder = teams_folder(file, home)

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
            on_open=lambda journal: notifications.watch(journal.session, journal.follow),
        )
        broker = Broker(roster=roster, folder=folder, store=runtime.store, factory=factory, clock=clock)
        give_tools(factory, broker)
        async with broker:
            yield broker, factory


@asynccontextmanager
async def open_shared_broker(
    roster: Roster, file: Path, home: Home, *, is_serving: bool = False
) -> AsyncIterator[SharedBroker]:
    """Open the broker of a roster, or join the process that has it. A server also delivers queued messages."""

    @asynccontextmanager
    async def lead() -> AsyncIterator[Broker]:
        async with open_broker(roster, file, home) as (broker, factory), serving_members(broker, factory):
            if is_serving:
                for problem in await broker.reconcile():
                    Console().say(f"note: {problem.pair}: {problem.what}", "ask")
                await broker.resume_pending()
            yield broker

    async with SharedBroker(teams_folder(file, home), lead) as shared:
        yield shared


async def serve_teams(
    shared: SharedBroker, console: Console, *, caller: Caller, port: int | None, kept: TokenFile
) -> None:
    """Serve until the client disconnects or the process ends."""
    if port is None:
        await serve_stdio(shared, caller)
        return
    async with serving_http(shared, Callers(kept), port=port) as url:
        console.json({"url": url, "tokens": kept.tokens()})
        await asyncio.get_running_loop().create_future()


@asynccontextmanager
async def serving_members(broker: Broker, factory: MemberFactory) -> AsyncIterator[None]:
    """Serve external members on loopback while the block runs, so that they can ask other teams."""
    if not any(team.member in ("claude", "acp") for team in broker.roster.teams.values()):
        yield
        return
    callers = Callers()
    async with serving_http(broker, callers) as url:
        factory.issue_token = lambda pair, session: callers.issue_token(
            url, Caller(team=pair.receiver, asking_session=session)
        )
        yield
