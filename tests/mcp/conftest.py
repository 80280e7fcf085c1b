"""What the tests of MCP share: real servers, each in its own process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.bench import Bench, Opener
from tests.mcp.place import Place

from holdfast.mcp import McpToolset, Pins, ServerSpec


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opener]:
    """Opens toolsets that are closed when the test is over."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    benches: list[Bench] = []

    def open_one(spec: ServerSpec, **options: Any) -> Bench:
        given: dict[str, Any] = {"workspace": workspace, "pins": Pins()} | options
        bench = Bench(McpToolset(spec, **given))
        benches.append(bench)
        return bench

    yield open_one
    for bench in benches:
        await bench.toolset.close()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home and a folder of this test's own."""
    return Place(tmp_path)
