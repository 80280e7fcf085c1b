"""Serve your MCP servers to another agent, with every call behind the gate.

  holdfast proxy                        over stdio, as an MCP client starts it
  holdfast proxy --http 0               over HTTP on this machine, with a token
  holdfast proxy --shell                with tools that run programs in the command sandbox
  holdfast install claude               write the configuration that starts it

The proxy serves the servers in mcp-servers.json in Holdfast's data directory. Every call is recorded in a session; see
`holdfast audit`. A call that needs approval waits for a file in $ESCALATION_DIR, or in the session's own folder.

With --shell the agent also gets `shell__run` and the like: programs run over the folder, which stays as it is, and `holdfast
proposals` shows what they changed once the agent has left.
"""

import argparse
import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.option_types import add_added_folders, add_wait_for
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
    client_files,
    format_for_client,
    open_pins,
)
from holdfast.models import key_variables
from holdfast.services import notify_about
from holdfast.session import Settings, expire_orphaned_escalations
from holdfast.store import Home
from holdfast.world import WorldPaths, open_folder

TRANSPORT = "proxy"
SETTINGS = GateSettings(call_seconds=86_400.0, max_repeats=1000)
"""Servers have their own time limits, and an agent that works for hours may repeat a call many times."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "--servers", metavar="FILE", help="default: mcp-servers.json in Holdfast's data directory"
    )
    parser.add_argument(
        "-w", "--workspace", metavar="DIR", default=".", help="the folder in which the servers run"
    )
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")
    parser.add_argument("-n", "--name", help="a name for the session")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on loopback; 0 picks a port")
    parser.add_argument(
        "--token-env", metavar="VARIABLE", help="read the token for --http from this variable"
    )
    add_added_folders(parser)
    add_wait_for(parser)
    parser.add_argument(
        "--shell", action="store_true", help="also offer tools that run programs in the command sandbox"
    )
    parser.add_argument(
        "--permission-prompt", action="store_true", help="also judge the built-in tools of Claude Code"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Open a session and serve until the client disconnects."""
    console, home = Console(), Home.default()
    settings, files = load_config(home), McpFiles(home.root)
    file = Path(arguments.servers) if arguments.servers else None
    async with open_runtime(settings, files.servers(file)) as runtime:
        await expire_orphaned_escalations(runtime.store, clock=SystemClock(), transport=TRANSPORT)
        folder = open_folder(Path(arguments.workspace), home.root)
        toolsets = McpFiles(home.root, pins=await open_pins(home, runtime.store)).toolsets(
            workspace=folder,
            paths=WorldPaths(folder, protected=(home.root,), guest_root=None),
            keys=key_variables(settings.model_requests),
            file=file,
            format_result=format_for_client,
            has_extras=True,
        )
        for toolset in toolsets:
            toolset.add_listener(lambda notification: _print_notification(notification, console))
        external_tools: list[Toolset] = [ExternalTools()] if arguments.permission_prompt else []
        escalation_folder = os.environ.get("ESCALATION_DIR")
        async with (
            closing_all(toolsets),
            runtime.gate(
                *toolsets,
                *external_tools,
                workspace=folder,
                transport=TRANSPORT,
                description="served to another agent",
                policy=arguments.policy,
                name=arguments.name,
                settings=msgspec.structs.replace(SETTINGS, escalation_seconds=arguments.wait_for),
                escalations=Path(escalation_folder) if escalation_folder else None,
                dirs=arguments.add_dir,
                closed_files=(
                    *client_files(folder, Path.home()),
                    *((file.absolute(),) if file is not None else ()),
                ),
                has_shell=arguments.shell,
            ) as gate,
            notify_about(runtime.live_sessions, settings.notify, home=home) as notifications,
        ):
            notifications.watch(gate.session, gate.follow)
            if arguments.shell and not any(tool.group == "shell" for tool in gate.tools()):
                console.say(
                    "there are no shell tools: the policy denies them, or no sandbox is available", "bad"
                )
                console.say("hint: holdfast doctor")
            proxy = Proxy(
                gate,
                servers=toolsets,
                trusted_clients=files.trusted_clients(),
                has_other_approvers=True,
                answers_permission_prompts=arguments.permission_prompt,
            )
            try:
                await _run_until_stopped(_serve(proxy, arguments, console))
            finally:
                await gate.end()
    return exit_codes.OK


@asynccontextmanager
async def open_runtime(settings: Settings, servers: Sequence[ServerSpec]) -> AsyncIterator[Runtime]:
    """Open the runtime. The secrets that these servers get are redacted from its record."""
    runtime = await Runtime.start(settings=settings, servers=servers)
    try:
        yield runtime
    finally:
        await runtime.close()


@asynccontextmanager
async def closing_all(toolsets: Sequence[McpToolset]) -> AsyncIterator[None]:
    """Stop all servers in parallel when the block exits."""
    try:
        yield
    finally:
        await asyncio.gather(*(toolset.close() for toolset in toolsets))


async def _run_until_stopped(serving: Coroutine[None, None, None]) -> None:
    """Serve until the client disconnects or SIGTERM arrives; both end the proxy normally."""
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


def _print_notification(notification: ServerNotification, console: Console) -> None:
    match notification:
        case ServerStarted():
            console.say(
                f"{notification.server}: {pluralize(notification.tools, 'tool')}, {notification.seconds:.1f} s",
                "dim",
            )
        case ServerFailed():
            console.say(f"{notification.server}: {notification.reason}", "bad")
        case ToolsPendingReview():
            names = ", ".join((*notification.changed, *notification.added)) or "all"
            console.say(f"{notification.server}: blocked until you review them: {names}", "ask")
            console.say(f"hint: holdfast mcp diff {notification.server}")
        case _:
            pass
