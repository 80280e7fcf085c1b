"""Trust in MCP servers: pinned tool definitions and argument roles."""
