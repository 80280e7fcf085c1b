"""Shared fixtures of the MCP tests. Every server runs in its own process."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.project import Project
from tests.mcp.toolset_harness import OpenToolset, ToolsetHarness

from holdfast.mcp import McpToolset, Pins, ServerSpec


@pytest.fixture
async def open_toolset(tmp_path: Path) -> AsyncIterator[OpenToolset]:
    """Opens toolsets that are closed after the test."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    harnesses: list[ToolsetHarness] = []

    def open_one(spec: ServerSpec, **options: Any) -> ToolsetHarness:
        given: dict[str, Any] = {"workspace": workspace, "pins": Pins()} | options
        harness = ToolsetHarness(McpToolset(spec, **given))
        harnesses.append(harness)
        return harness

    yield open_one
    for harness in harnesses:
        await harness.toolset.close()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A data directory and a project folder for one test."""
    return Project(tmp_path)
