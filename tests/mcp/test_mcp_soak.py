"""A long run of the proxy: servers exit, clients disconnect during calls, and nothing leaks."""

import asyncio
import gc
import os
import random
from pathlib import Path

import mcp_types
import pytest
from mcp.client.client import Client
from tests.mcp.gate_client import open_gate_client
from tests.mcp.toolset_harness import OpenToolset, spec_for

from holdfast.core import FakeClock
from holdfast.mcp import Proxy, format_for_client

ROUNDS = 40


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_exiting_servers_and_disconnecting_clients_leak_nothing(
    open_toolset: OpenToolset, tmp_path: Path
) -> None:
    clock, random_choices = FakeClock(), random.Random(8)
    friendly = open_toolset(
        spec_for("friendly"), format_result=format_for_client, has_extras=True, clock=clock
    )
    notifying = open_toolset(
        spec_for("notifying"), format_result=format_for_client, has_extras=True, clock=clock
    )
    toolsets = [friendly.toolset, notifying.toolset]
    gate = await open_gate_client(toolsets, {})
    server = Proxy(gate, servers=toolsets).create_server().server
    sizes: list[tuple[int, int]] = []
    for number in range(ROUNDS):
        protocol = random_choices.choice(["legacy", "2026-07-28"])
        async with Client(server, mode=protocol) as client:
            await client.list_tools()
            for each in range(10):
                called = await client.call_tool("friendly__echo", {"text": f"{number}.{each}"})
                block = called.content[0]
                assert isinstance(block, mcp_types.TextContent)
                assert block.text == f"{number}.{each}"
            leaving = asyncio.create_task(
                client.call_tool("friendly__wait_forever", {"marker": str(tmp_path / f"m{number}")})
            )
            await client.list_resources()
            leaving.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            if random_choices.random() < 0.5:
                assert (await client.call_tool("friendly__die", {"code": 1})).is_error
                clock.advance(120)
        gc.collect()
        sizes.append((len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())))
    early, late = sizes[ROUNDS // 4], sizes[-1]
    assert late[0] <= early[0] + 2
    assert late[1] <= early[1] + 4
