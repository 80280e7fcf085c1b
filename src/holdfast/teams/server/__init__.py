"""The MCP server through which agents and other clients message teams."""
