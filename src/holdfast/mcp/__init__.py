"""Both ends of the Model Context Protocol: servers as toolsets, and the proxy for other agents.

Importing this package loads no protocol library; that happens when the first server is started.
"""

from holdfast.mcp.bearer import bearer_token
from holdfast.mcp.client.results import present_wholly
from holdfast.mcp.client.tool_definitions import Definition, Refusal
from holdfast.mcp.client.toolset import McpToolset, health_problems, start_servers
from holdfast.mcp.config.environment import secrets_of
from holdfast.mcp.config.files import McpFiles
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
from holdfast.mcp.install.agents import FileChange, Installation, plan
from holdfast.mcp.proxy.proxy import Proxy, serve_over_stdio
from holdfast.mcp.trust.argument_roles import Annotations, ToolRoles, kind_of, known_roles
from holdfast.mcp.trust.pins import Comparison, PinnedServer, Pins
from holdfast.mcp.trust.suggest_roles import RoleSuggestion, ask_model, propose_roles
from holdfast.process.supervised import SupervisedProcess

__all__ = [
    "UNJUDGED_TOOLS",
    "Annotations",
    "Comparison",
    "Definition",
    "ExternalTools",
    "FileChange",
    "GateClient",
    "Installation",
    "ListChanged",
    "Listener",
    "McpFiles",
    "McpToolset",
    "PinnedServer",
    "Pins",
    "Progressed",
    "Proxy",
    "Refusal",
    "ResourceChanged",
    "RoleSuggestion",
    "ServerFailed",
    "ServerNotification",
    "ServerSpec",
    "ServerStarted",
    "SupervisedProcess",
    "ToolRoles",
    "ToolsPendingReview",
    "ask_model",
    "bearer_token",
    "health_problems",
    "kind_of",
    "known_roles",
    "load_servers",
    "plan",
    "present_wholly",
    "propose_roles",
    "secrets_of",
    "serve_over_stdio",
    "start_servers",
    "with_default_path",
]
