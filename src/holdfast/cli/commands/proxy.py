"""Serve your MCP servers to another agent, every call behind the gate.

  holdfast proxy                        over stdio, as an MCP client's configuration starts it
  holdfast proxy --http 0               over HTTP on this machine, with a token
  holdfast install claude               writes the configuration that starts it

The servers are those of mcp-servers.json in the home of Holdfast. Whatever happens is in a session like any other; see
`holdfast audit`. Calls that need a person wait for a file in $ESCALATION_DIR, or in the session's own folder.
"""

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    CallId,
    Escalation,
    EscalationId,
    Ok,
    Principal,
    Response,
    SystemClock,
    Tool,
    Toolset,
    call_id,
    sanitise_name,
)
from holdfast.core.events import MessagePosted, SessionOpened, TurnEnded
from holdfast.gate import Gate, GateSettings, Rendezvous, Results
from holdfast.mcp import (
    ForeignTools,
    McpToolset,
    News,
    Proxy,
    ServerFailed,
    ServerStarted,
    Shelf,
    ToolsHeld,
    present_wholly,
    secrets_of,
)
from holdfast.policy import load_policy
from holdfast.store import EmbeddedStore, Home, Journal
from holdfast.world import WorldPaths, open_folder

TURN = 1
"""A proxied session is one turn of a foreign agent: it begins when the client connects and ends when it leaves."""
REPEATS = 1000
"""A client's day is one turn here, so asking the same again is no sign of a loop until much later."""


class GateKeeper:
    """The gate as the proxy is handed it."""

    def __init__(self, gate: Gate, *, calls: int = 0) -> None:
        self._gate = gate
        self._calls = calls

    def tools(self) -> tuple[Tool, ...]:
        """What a client may be shown."""
        return self._gate.tools()

    def next_call(self) -> CallId:
        """The id of the next call."""
        self._calls += 1
        return call_id(TURN, self._calls)

    async def submit(self, call: Call) -> Answer:
        """Judge and carry out a call."""
        return await self._gate.submit(call)

    async def wait(self, escalation: EscalationId) -> None:
        """Return when the escalation is settled."""
        await self._gate.wait(escalation)

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        """What waits under this id."""
        return next((each for each in self._gate.escalations.waiting() if each.id == escalation), None)

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        """Record an answer."""
        await self._gate.resolve(escalation, response, principal=principal, transport=transport)


def configure(parser: argparse.ArgumentParser) -> None:
    """What is served, to whom, and under which policy."""
    parser.add_argument("--servers", metavar="FILE", help="default: mcp-servers.json in the home of Holdfast")
    parser.add_argument("-w", "--workspace", metavar="DIR", default=".", help="where the servers work")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")
    parser.add_argument("-n", "--name", help="a name for the session")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")
    parser.add_argument("--token-env", metavar="VARIABLE", help="take the token of --http from this variable")
    parser.add_argument(
        "--permission-prompt", action="store_true", help="also answer for Claude Code's built-in tools"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Open the session, serve until the client leaves, close everything."""
    console = Console()
    async with AsyncExitStack() as stack:
        home = Home.default()
        home.prepare()
        clock = SystemClock()
        store = await EmbeddedStore.start(home, clock=clock)
        stack.push_async_callback(store.close)
        folder = open_folder(Path(arguments.workspace), home.root)
        policy = load_policy(arguments.policy, search=(home.policies,))
        opened = SessionOpened(
            principal=EXTERNAL,
            folder=os.getcwd(),
            workspace=str(folder),
            policy=arguments.policy,
            policy_digest=policy.digest,
            model="",
            name=sanitise_name(arguments.name) if arguments.name else None,
            description="served to another agent",
        )
        journal = await store.create(opened)
        stack.push_async_callback(journal.release)
        shelf = Shelf(home.root)
        paths = WorldPaths(folder, protected=(home.root,), guest_root=None)
        file = Path(arguments.servers) if arguments.servers else None
        toolsets = shelf.toolsets(
            workspace=folder, paths=paths, file=file, present=present_wholly, has_extras=True
        )
        await stack.enter_async_context(closing(toolsets))
        for toolset in toolsets:
            toolset.follow(lambda news: _show(news, console))
        foreign: list[Toolset] = [ForeignTools()] if arguments.permission_prompt else []
        gate = Gate(
            journal=journal,
            policy=policy,
            toolsets=[*toolsets, *foreign],
            paths=paths,
            clock=clock,
            settings=GateSettings(call_seconds=86_400.0, repeats=REPEATS),
            results=Results(
                secrets=tuple(one for each in toolsets for one in secrets_of(each.spec, os.environ))
            ),
        )
        await begin(journal)
        stack.push_async_callback(end, journal)
        escalations = Path(os.environ.get("ESCALATION_DIR") or home.escalations(journal.session))
        rendezvous = Rendezvous(escalations, gate=gate, journal=journal)
        await rendezvous.open()
        stack.push_async_callback(rendezvous.close)
        proxy = Proxy(
            GateKeeper(gate),
            servers=toolsets,
            trusted_clients=shelf.trusted_clients(),
            can_ask_elsewhere=True,
            answers_permissions=arguments.permission_prompt,
        )
        await _serve(proxy, arguments, console)
    return exits.OK


@asynccontextmanager
async def closing(toolsets: Sequence[McpToolset]) -> AsyncIterator[None]:
    """End every server when the block is left, all at once."""
    try:
        yield
    finally:
        await asyncio.gather(*(toolset.close() for toolset in toolsets))


async def begin(journal: Journal) -> None:
    """The one turn of a proxied session begins."""
    await journal.append(
        MessagePosted(turn=TURN, text="served to another agent", principal=EXTERNAL, transport="proxy")
    )


async def end(journal: Journal) -> None:
    """It ends when the client has left."""
    await journal.append(TurnEnded(turn=TURN, outcome=Ok()))


async def _serve(proxy: Proxy, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.http is None:
        await proxy.serve_stdio()
        return
    token = os.environ.get(arguments.token_env, "") if arguments.token_env else ""
    async with proxy.serving_http(port=arguments.http, token=token) as (address, used):
        console.json({"url": address, "headers": {"Authorization": f"Bearer {used}"}})
        await asyncio.get_running_loop().create_future()


def _show(news: News, console: Console) -> None:
    match news:
        case ServerStarted():
            console.say(f"{news.server}: {news.tools} tools, {news.seconds:.1f} s", "dim")
        case ServerFailed():
            console.say(f"{news.server}: {news.reason}", "bad")
        case ToolsHeld():
            names = ", ".join((*news.changed, *news.added)) or "all"
            console.say(f"{news.server}: held until you have seen them: {names}", "ask")
            console.say(f"hint: holdfast mcp diff {news.server}")
        case _:
            pass
