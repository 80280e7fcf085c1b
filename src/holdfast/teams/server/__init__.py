"""The MCP server that teams use to ask each other."""
