"""Serve your MCP servers to another agent, with every call going through the gate.

  holdfast proxy                        over stdio, as an MCP client's configuration starts it
  holdfast proxy --http 0               over HTTP on this machine, with a token
  holdfast install claude               write the configuration that starts it

The servers are those of mcp-servers.json in Holdfast's data directory. Calls are recorded in a session; see `holdfast audit`.
Calls that need approval wait for a file in $ESCALATION_DIR, or in the session's own folder.
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
SETTINGS = GateSettings(call_seconds=86_400.0, repeats=1000)
"""Servers have their own time limits. An agent that works for hours may repeat the same call often."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--servers", metavar="FILE", help="default: mcp-servers.json in the data directory")
    parser.add_argument(
        "-w", "--workspace", metavar="DIR", default=".", help="the folder the servers work in"
    )
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")
    parser.add_argument("-n", "--name", help="name the session")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")
    parser.add_argument("--token-env", metavar="VARIABLE", help="read the token of --http from this variable")
    parser.add_argument(
        "--permission-prompt", action="store_true", help="also decide about Claude Code's built-in tools"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Open the session, serve until the client leaves, and close everything."""
    console, home = Console(), Home.default()
    settings, files = load_config(home), McpFiles(home.root)
    file = Path(arguments.servers) if arguments.servers else None
    async with open_runtime(settings, files.servers(file)) as runtime:
        await expire_orphaned_escalations(runtime.store, clock=SystemClock(), transport=TRANSPORT)
        folder = open_folder(Path(arguments.workspace), home.root)
        toolsets = files.toolsets(
            workspace=folder,
            paths=WorldPaths(folder, protected=(home.root,), guest_root=None),
            keys=key_variables(settings.asking),
            file=file,
            present=present_wholly,
            has_extras=True,
        )
        for toolset in toolsets:
            toolset.follow(lambda news: _show(news, console))
        external: list[Toolset] = [ExternalTools()] if arguments.permission_prompt else []
        folder_override = os.environ.get("ESCALATION_DIR")
        async with (
            closing_all(toolsets),
            runtime.gate(
                *toolsets,
                *external,
                workspace=folder,
                transport=TRANSPORT,
                description="served to another agent",
                policy=arguments.policy,
                name=arguments.name,
                settings=SETTINGS,
                escalations=Path(folder_override) if folder_override else None,
            ) as gate_session,
        ):
            proxy = Proxy(
                gate_session,
                servers=toolsets,
                trusted_clients=files.trusted_clients(),
                can_ask_elsewhere=True,
                answers_permissions=arguments.permission_prompt,
            )
            try:
                await _serve_until_stopped(_serve(proxy, arguments, console))
            finally:
                await gate_session.end()
    return exit_codes.OK


@asynccontextmanager
async def open_runtime(settings: Settings, servers: Sequence[ServerSpec]) -> AsyncIterator[Runtime]:
    """A runtime for the block. The servers' secrets are kept out of its journals."""
    runtime = await Runtime.start(settings=settings, servers=servers)
    try:
        yield runtime
    finally:
        await runtime.close()


@asynccontextmanager
async def closing_all(toolsets: Sequence[McpToolset]) -> AsyncIterator[None]:
    """Close all servers concurrently at the end of the block."""
    try:
        yield
    finally:
        await asyncio.gather(*(toolset.close() for toolset in toolsets))


async def _serve_until_stopped(serving: Coroutine[None, None, None]) -> None:
    """Serve until the client leaves or SIGTERM arrives; both are a normal end."""
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
            console.say(f"{news.server}: tools that need your review: {names}", "ask")
            console.say(f"hint: holdfast mcp diff {news.server}")
        case _:
            pass
