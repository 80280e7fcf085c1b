"""Registration of the proxy in Claude Code, Codex, Cursor and VS Code."""
