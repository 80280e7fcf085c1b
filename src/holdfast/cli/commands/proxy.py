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
import signal
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.config import load_config
from holdfast.core import SystemClock, Toolset, pluralize
from holdfast.gate import GateSettings
from holdfast.mcp import (
    ExternalTools,
    McpFiles,
    McpToolset,
    Proxy,
    ServerFailed,
    ServerNotification,
    ServerSpec,
    ServerStarted,
    ToolsPendingReview,
    present_wholly,
)
from holdfast.models import key_variables
from holdfast.session import Settings, expire_orphaned_escalations
from holdfast.store import Home
from holdfast.world import WorldPaths, open_folder

TRANSPORT = "proxy"
SETTINGS = GateSettings(call_seconds=86_400.0, max_repeats=1000)
"""Servers have time limits of their own. An agent that works for hours may well ask the same again and again."""


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
    console, home = Console(), Home.default()
    settings, shelf = load_config(home), McpFiles(home.root)
    file = Path(arguments.servers) if arguments.servers else None
    async with running(settings, shelf.servers(file)) as runtime:
        await expire_orphaned_escalations(runtime.store, clock=SystemClock(), transport=TRANSPORT)
        folder = open_folder(Path(arguments.workspace), home.root)
        toolsets = shelf.toolsets(
            workspace=folder,
            paths=WorldPaths(folder, protected=(home.root,), guest_root=None),
            keys=key_variables(settings.asking),
            file=file,
            present=present_wholly,
            has_extras=True,
        )
        for toolset in toolsets:
            toolset.follow(lambda news: _show(news, console))
        foreign: list[Toolset] = [ExternalTools()] if arguments.permission_prompt else []
        elsewhere = os.environ.get("ESCALATION_DIR")
        async with (
            closing(toolsets),
            runtime.gate(
                *toolsets,
                *foreign,
                workspace=folder,
                transport=TRANSPORT,
                description="served to another agent",
                policy=arguments.policy,
                name=arguments.name,
                settings=SETTINGS,
                escalations=Path(elsewhere) if elsewhere else None,
            ) as keeper,
        ):
            proxy = Proxy(
                keeper,
                servers=toolsets,
                trusted_clients=shelf.trusted_clients(),
                can_ask_elsewhere=True,
                answers_permissions=arguments.permission_prompt,
            )
            try:
                await _until_told(_serve(proxy, arguments, console))
            finally:
                await keeper.end()
    return exit_codes.OK


@asynccontextmanager
async def running(settings: Settings, servers: Sequence[ServerSpec]) -> AsyncIterator[Runtime]:
    """The runtime of the person's home, closed when the block is left. What the servers are handed is kept out of its record."""
    runtime = await Runtime.start(settings=settings, servers=servers)
    try:
        yield runtime
    finally:
        await runtime.close()


@asynccontextmanager
async def closing(toolsets: Sequence[McpToolset]) -> AsyncIterator[None]:
    """End every server when the block is left, all at once."""
    try:
        yield
    finally:
        await asyncio.gather(*(toolset.close() for toolset in toolsets))


async def _until_told(serving: Coroutine[None, None, None]) -> None:
    """Serve until the client leaves, or until we are asked to stop, which is an orderly end too."""
    task = asyncio.create_task(serving)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await asyncio.wait({task})
        if not task.cancelled():
            task.result()
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _serve(proxy: Proxy, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.http is None:
        await proxy.serve_stdio()
        return
    token = os.environ.get(arguments.token_env, "") if arguments.token_env else ""
    async with proxy.serving_http(port=arguments.http, token=token) as (address, used):
        console.json({"url": address, "headers": {"Authorization": f"Bearer {used}"}})
        await asyncio.get_running_loop().create_future()


def _show(news: ServerNotification, console: Console) -> None:
    match news:
        case ServerStarted():
            console.say(f"{news.server}: {pluralize(news.tools, 'tool')}, {news.seconds:.1f} s", "dim")
        case ServerFailed():
            console.say(f"{news.server}: {news.reason}", "bad")
        case ToolsPendingReview():
            names = ", ".join((*news.changed, *news.added)) or "all"
            console.say(f"{news.server}: held until you have seen them: {names}", "ask")
            console.say(f"hint: holdfast mcp diff {news.server}")
        case _:
            pass
