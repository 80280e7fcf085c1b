"""Both ends of the Model Context Protocol: servers as toolsets, and the proxy for other agents.

Importing this package loads no protocol library; that happens when the first server is started.
"""

from holdfast.mcp.bearer import bearer_token
from holdfast.mcp.client.results import present_wholly
from holdfast.mcp.client.tool_definitions import Definition, Refusal
from holdfast.mcp.client.toolset import McpToolset, problems_of, start_servers
from holdfast.mcp.config.environment import secrets_of
from holdfast.mcp.config.files import Shelf
from holdfast.mcp.config.servers import ServerSpec, load_servers
from holdfast.mcp.contract import (
    Follower,
    Keeper,
    ListChanged,
    News,
    Progressed,
    ResourceChanged,
    ServerFailed,
    ServerStarted,
    ToolsHeld,
)
from holdfast.mcp.external_tools import SILENT_TOOLS, ForeignTools, written_out
from holdfast.mcp.install.agents import FileChange, Installation, plan
from holdfast.mcp.proxy.proxy import Proxy, serve_over_stdio
from holdfast.mcp.trust.argument_roles import Annotations, ToolRoles, kind_of, known_roles
from holdfast.mcp.trust.pins import Comparison, PinnedServer, Pins
from holdfast.mcp.trust.suggest_roles import Proposal, ask_model, propose_roles
from holdfast.process.supervised import Ward

__all__ = [
    "SILENT_TOOLS",
    "Annotations",
    "Comparison",
    "Definition",
    "FileChange",
    "Follower",
    "ForeignTools",
    "Installation",
    "Keeper",
    "ListChanged",
    "McpToolset",
    "News",
    "PinnedServer",
    "Pins",
    "Progressed",
    "Proposal",
    "Proxy",
    "Refusal",
    "ResourceChanged",
    "ServerFailed",
    "ServerSpec",
    "ServerStarted",
    "Shelf",
    "ToolRoles",
    "ToolsHeld",
    "Ward",
    "ask_model",
    "bearer_token",
    "kind_of",
    "known_roles",
    "load_servers",
    "plan",
    "present_wholly",
    "problems_of",
    "propose_roles",
    "secrets_of",
    "serve_over_stdio",
    "start_servers",
    "written_out",
]
