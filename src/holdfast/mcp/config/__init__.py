"""The configuration of MCP servers: entries, transports, files, environment and sandbox."""
