"""The transport table: one row and one connector module are all that a transport needs."""

from importlib import import_module

import pytest
from tests.mcp.toolset_harness import OpenToolset

from holdfast.core.errors import InvalidConfig
from holdfast.mcp import load_servers
from holdfast.mcp.config import transports
from holdfast.mcp.config.transports import STDIO, URL_TRANSPORTS, ServerTransport

MEMORY = ServerTransport(name="memory", module="tests.mcp.memory_transport", schemes=("memory",))


@pytest.mark.parametrize("transport", [STDIO, *URL_TRANSPORTS], ids=lambda each: each.name)
def test_every_transport_has_a_connector(transport: ServerTransport) -> None:
    assert callable(import_module(transport.module).connect)


async def test_a_row_and_a_connector_add_a_transport(
    open_toolset: OpenToolset, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = {"mcpServers": {"greeting": {"url": "memory://here"}}}
    with pytest.raises(InvalidConfig, match="must start with https:// or http://"):
        load_servers(document)
    monkeypatch.setattr(transports, "URL_TRANSPORTS", (*URL_TRANSPORTS, MEMORY))
    (spec,) = load_servers(document)
    harness = open_toolset(spec)
    assert await harness.call("greet") == "hello"
    assert harness.toolset.supervisor_pid is None
