"""The Model Context Protocol (MCP): servers as toolsets, and the proxy that serves other agents.

Importing this package does not load the MCP library. That happens when the first server starts.
"""

from holdfast.mcp.bearer import bearer_token
from holdfast.mcp.client.results import format_for_client
from holdfast.mcp.client.tool_definitions import RefusedTool, ToolDefinition
from holdfast.mcp.client.toolset import McpToolset, health_problems, start_servers
from holdfast.mcp.config.files import McpFiles, open_pins
from holdfast.mcp.config.secrets import secrets_of
from holdfast.mcp.config.servers import ServerSpec, load_servers
from holdfast.mcp.contract import (
    GateClient,
    ListChanged,
    Listener,
    Progressed,
    ResourceChanged,
    ServerFailed,
    ServerNotification,
    ServerStarted,
    ToolsPendingReview,
)
from holdfast.mcp.external_tools import UNJUDGED_TOOLS, ExternalTools, with_default_path
from holdfast.mcp.install.agents import FileChange, Installation, client_files, plan
from holdfast.mcp.loopback import HOST, serve_on_loopback
from holdfast.mcp.proxy.proxy import Proxy, serve_over_stdio
from holdfast.mcp.trust.argument_roles import Annotations, ToolRoles, kind_of, known_roles
from holdfast.mcp.trust.pins import Comparison, PinnedServer, Pins
from holdfast.mcp.trust.suggest_levels import LevelSuggestion, suggest_levels
from holdfast.mcp.trust.suggest_roles import (
    RoleSuggestion,
    refine_with_model,
    resembled_server,
    suggest_roles,
)

__all__ = [
    "HOST",
    "UNJUDGED_TOOLS",
    "Annotations",
    "Comparison",
    "ExternalTools",
    "FileChange",
    "GateClient",
    "Installation",
    "LevelSuggestion",
    "ListChanged",
    "Listener",
    "McpFiles",
    "McpToolset",
    "PinnedServer",
    "Pins",
    "Progressed",
    "Proxy",
    "RefusedTool",
    "ResourceChanged",
    "RoleSuggestion",
    "ServerFailed",
    "ServerNotification",
    "ServerSpec",
    "ServerStarted",
    "ToolDefinition",
    "ToolRoles",
    "ToolsPendingReview",
    "bearer_token",
    "client_files",
    "format_for_client",
    "health_problems",
    "kind_of",
    "known_roles",
    "load_servers",
    "open_pins",
    "plan",
    "refine_with_model",
    "resembled_server",
    "secrets_of",
    "serve_on_loopback",
    "serve_over_stdio",
    "start_servers",
    "suggest_levels",
    "suggest_roles",
    "with_default_path",
]
