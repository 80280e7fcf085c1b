"""The MCP client: one server as a toolset."""
