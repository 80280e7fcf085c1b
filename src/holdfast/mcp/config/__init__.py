"""Configuration of MCP servers: entries, files, environment and sandbox."""
