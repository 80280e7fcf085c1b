"""A long day of the proxy: servers that die, clients that leave in the middle, and nothing that piles up."""

import asyncio
import gc
import os
import random
from pathlib import Path

import mcp_types
import pytest
from mcp.client.client import Client
from tests.mcp.bench import Opener, spec_for
from tests.mcp.keeping import keeper_for

from holdfast.core import FakeClock
from holdfast.mcp import Proxy, format_for_client

ROUNDS = 40


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_servers_that_die_and_clients_that_leave_pile_nothing_up(
    opened: Opener, tmp_path: Path
) -> None:
    clock, chance = FakeClock(), random.Random(8)
    friendly = opened(spec_for("friendly"), format_result=format_for_client, has_extras=True, clock=clock)
    talkative = opened(spec_for("talkative"), format_result=format_for_client, has_extras=True, clock=clock)
    toolsets = [friendly.toolset, talkative.toolset]
    keeper = await keeper_for(toolsets, {})
    create_server = Proxy(keeper, servers=toolsets).create_server().server
    sizes: list[tuple[int, int]] = []
    for number in range(ROUNDS):
        era = chance.choice(["legacy", "2026-07-28"])
        async with Client(create_server, mode=era) as client:
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
            if chance.random() < 0.5:
                assert (await client.call_tool("friendly__die", {"code": 1})).is_error
                clock.advance(120)
        gc.collect()
        sizes.append((len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())))
    early, late = sizes[ROUNDS // 4], sizes[-1]
    assert late[0] <= early[0] + 2
    assert late[1] <= early[1] + 4
