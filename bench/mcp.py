"""One tool call of an MCP server: direct, through the gate in process, through `holdfast proxy`, through fastmcp's proxy.

Peers: fastmcp==4.1.2
Every variant calls the same program, an echo server on the official SDK, in its own process. A few calls of each
variant alternate, so that load on the machine affects all of them alike.
"""

import asyncio
import importlib.util
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from holdfast.core import EXTERNAL, Call, SystemClock, call_id
from holdfast.core.events import SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.mcp import McpToolset, Pins, ServerSpec
from holdfast.policy import FixedPolicy
from holdfast.store import Home, Journal, MemoryStore, Store, open_store
from holdfast.world import WorldPaths

ROUNDS = int(os.environ.get("ROUNDS", "40"))
CALLS_PER_ROUND = 5
WARM_UP = 10
STARTS = int(os.environ.get("STARTS", "5"))
RECORD = "two durable appends alone"

ECHO = """\
import anyio, mcp_types
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

TOOL = mcp_types.Tool(name="echo", input_schema={"type": "object", "properties": {"text": {"type": "string"}}})

async def list_tools(context, params):
    return mcp_types.ListToolsResult(tools=[TOOL])

async def call_tool(context, params):
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=params.arguments["text"])])

async def main():
    server = Server("echo", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

anyio.run(main)
"""

FASTMCP = """\
import asyncio, sys
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

async def main():
    async with Client(StdioTransport(sys.executable, [sys.argv[1]])) as client:
        await create_proxy(client, name="echo").run_async("stdio", show_banner=False)

asyncio.run(main())
"""

_NOTHING = open(os.devnull, "w")  # noqa: SIM115 - for the life of the program
Way = Callable[[int], Awaitable[object]]


def main() -> None:
    """Print the table."""
    asyncio.run(_main())


async def _main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "echo.py").write_text(ECHO)
        (root / "fastmcp_proxy.py").write_text(FASTMCP)
        (root / "work").mkdir()
        async with AsyncExitStack() as stack:
            variants = await _open_variants(root, stack)
            figures = await _measure(variants)
        _print(figures)
        await _print_readiness(root)


async def _open_variants(root: Path, stack: AsyncExitStack) -> dict[str, Way]:
    variants: dict[str, Way] = {}
    direct = await stack.enter_async_context(_client(root, str(root / "echo.py")))
    variants["direct"] = lambda n: direct.call_tool("echo", {"text": f"{n}"})
    toolset = await stack.enter_async_context(_toolset(root, Pins()))
    await toolset.start()
    gate, journal, second = await stack.enter_async_context(_gate(root, toolset))
    unrecorded, _ = await _gate_over(root, toolset, MemoryStore(clock=SystemClock()))
    variants["in process, no gate"] = lambda n: toolset.perform(_call(n), is_staged=False)
    variants["in process, no record"] = lambda n: unrecorded.submit(_call(n))
    variants["in process, with record"] = lambda n: gate.submit(_call(n + 1_000_000))
    variants[RECORD] = lambda n: _append_last_two(journal, second)
    proxy = await stack.enter_async_context(_client(root, "-m", "holdfast", "proxy", *_configure(root)))
    await proxy.list_tools()
    variants["holdfast proxy"] = lambda n: proxy.call_tool("echo__echo", {"text": f"{n}"})
    if importlib.util.find_spec("fastmcp") is not None:
        peer = await stack.enter_async_context(
            _client(root, str(root / "fastmcp_proxy.py"), str(root / "echo.py"))
        )
        await peer.list_tools()
        variants["fastmcp proxy"] = lambda n: peer.call_tool("echo", {"text": f"{n}"})
    return variants


async def _measure(variants: dict[str, Way]) -> dict[str, list[float]]:
    number = 0
    for variant in variants.values():
        for _ in range(WARM_UP):
            number += 1
            await variant(number)
    figures: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(ROUNDS):
        for name, variant in variants.items():
            for _ in range(CALLS_PER_ROUND):
                number += 1
                started = time.perf_counter()
                await variant(number)
                figures[name].append((time.perf_counter() - started) * 1000)
    return figures


def _print(figures: dict[str, list[float]]) -> None:
    direct = statistics.median(figures["direct"])
    best = min(figures["direct"])
    print(f"{'variant':<28}{'p50 ms':>9}{'min ms':>9}{'p50 over direct':>17}{'min over direct':>17}")
    for name, times in figures.items():
        median, least = statistics.median(times), min(times)
        print(f"{name:<28}{median:>9.2f}{least:>9.2f}{median - direct:>+17.2f}{least - best:>+17.2f}")
    gate, record = (statistics.median(figures[name]) for name in ("in process, with record", RECORD))
    bare = statistics.median(figures["in process, no record"]) - direct
    print(f"the gate costs {bare:+.2f} ms over direct (goal 0.20), with its record {gate - direct:+.2f} ms")
    if "fastmcp proxy" not in figures:
        print(f"{'fastmcp proxy':<28}{'not installed':>18}")
    else:
        ours, theirs = (
            statistics.median(figures["holdfast proxy"]),
            statistics.median(figures["fastmcp proxy"]),
        )
        print(
            f"holdfast proxy takes {ours / theirs:.2f} times what fastmcp's does, and {ours - theirs:+.2f} ms;"
        )
        print(f"  two durable appends of the same events alone take {record:.2f} ms")


async def _print_readiness(root: Path) -> None:
    """The time until a server's tools are available: the official client and ours alternate, then the time to close ours."""
    bare, first, closed = [], [], []
    for number in range(STARTS):
        started = time.perf_counter()
        async with _client(root, str(root / "echo.py")) as client:
            await client.list_tools()
            bare.append(time.perf_counter() - started)
        started = time.perf_counter()
        async with _toolset(root, Pins(root / f"pins-{number}.json")) as toolset:
            await toolset.start()
            ready = time.perf_counter()
        first.append(ready - started)
        closed.append(time.perf_counter() - ready)
    started = time.perf_counter()
    async with _toolset(root, Pins(root / "pins-0.json")) as toolset:
        assert toolset.tools()
        known = time.perf_counter() - started
    theirs, ours = statistics.median(bare) * 1000, statistics.median(first) * 1000
    print(f"ready first time, official client {theirs:8.1f} ms")
    print(
        f"ready first time, ours            {ours:8.1f} ms (goal 500; {ours / theirs:.2f} times the client's)"
    )
    print(f"ready known server, ours          {known * 1000:8.1f} ms (goal 500)")
    print(f"closed, ours                      {statistics.median(closed) * 1000:8.1f} ms (goal 100)")


@asynccontextmanager
async def _toolset(root: Path, pins: Pins) -> AsyncIterator[McpToolset]:
    spec = ServerSpec(name="echo", command=sys.executable, args=(str(root / "echo.py"),))
    async with McpToolset(spec, workspace=root / "work", pins=pins) as toolset:
        yield toolset


@asynccontextmanager
async def _gate(root: Path, toolset: McpToolset) -> AsyncIterator[tuple[Gate, Journal, Journal]]:
    """A gate, its journal, and a second journal on the same disk."""
    home = Home(root / "home")
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    try:
        gate, journal = await _gate_over(root, toolset, store)
        _, second = await _gate_over(root, toolset, store)
        yield gate, journal, second
    finally:
        await store.close()


async def _gate_over(root: Path, toolset: McpToolset, store: Store) -> tuple[Gate, Journal]:
    policy = FixedPolicy(default="allow")
    opened = SessionOpened(
        principal=EXTERNAL,
        folder="/",
        workspace="/",
        policy=policy.name,
        policy_digest=policy.digest,
        model="",
    )
    journal = await store.create(opened)
    gate = Gate(
        journal=journal,
        policy=policy,
        toolsets=[toolset],
        paths=WorldPaths(root / "work"),
        clock=SystemClock(),
        settings=GateSettings(repeats=10**9),
    )
    return gate, journal


@asynccontextmanager
async def _client(root: Path, *arguments: str) -> AsyncIterator[Any]:
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters, stdio_client

    environment = {"HOLDFAST_HOME": str(root / "proxy-home")} | {
        name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ
    }
    server = StdioServerParameters(
        command=sys.executable, args=list(arguments), env=environment, cwd=root / "work"
    )
    async with Client(stdio_client(server, errlog=_NOTHING)) as client:
        yield client


def _configure(root: Path) -> list[str]:
    home = root / "proxy-home"
    home.mkdir(mode=0o700)
    entry: dict[str, object] = {"command": sys.executable, "args": [str(root / "echo.py")]}
    if "PYTHONPATH" in os.environ:
        entry["env"] = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    (home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"echo": entry}}))
    policy = home / "bench.yaml"
    policy.write_text('policy: bench\nrules: [{name: all, allow: "*"}]\ntools: {echo.echo: {text: none}}\n')
    roles = {"servers": {"echo": {"tools": [{"toolName": "echo", "args": {"text": ["none"]}}]}}}
    (home / "tool-annotations.json").write_text(json.dumps(roles))
    return ["-p", str(policy)]


async def _append_last_two(journal: Journal, second: Journal) -> None:
    """Append what the gate recorded for its last call to a separate journal."""
    for entry in journal.recorded[-2:]:
        await second.append(entry.event)


def _call(number: int) -> Call:
    return Call(id=call_id(1, number), operation="echo.echo", arguments={"text": f"{number}"})


if __name__ == "__main__":
    main()
