"""The MCP proxy: a server for other agents whose every call passes the gate."""
