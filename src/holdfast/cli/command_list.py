"""The commands there are, grouped as a person looks for them. The module of the same name in `cli.commands` does the work."""

GROUPS: dict[str, dict[str, str]] = {
    "begin": {
        "demo": "a whole session without key or network",
        "init": "write a commented configuration and policy",
        "doctor": "what works here, what does not, and how to mend it",
        "config": "what is configured and where it comes from; set a value",
        "explain": "what an error code or an exit code means, and what to do",
        "completion": "completion for bash, zsh and fish",
    },
    "sessions": {
        "sessions": "list sessions, newest first",
        "show": "what was said and done in a session",
        "search": "find where something was said, in any session",
        "rename": "give a session another name",
        "fork": "begin a new session with another's history",
        "rewind": "take a session back to an earlier turn, files included",
        "export": "write a session into one file that proves itself",
        "import": "take in a session from such a file",
        "pin": "exempt a session from pruning",
        "prune": "remove old sessions",
        "delete": "delete a session for good",
        "verify": "check that journals are exactly what was written",
        "rebuild-index": "make the list and the search anew from the journals",
        "replay": "run a session's code again and report what differs",
    },
    "what it did, and what it asks": {
        "waiting": "what waits for your yes or no, in all sessions",
        "approve": "say yes to a call that waits",
        "deny": "say no to a call that waits",
        "grants": "standing yeses: list them, or take one back",
        "audit": "what was asked, judged and done in a session",
        "why": "why a call was allowed, denied or asked about",
        "budget": "what a session may spend and has spent",
        "files": "the files of a session: list, show, fetch, put, remove",
        "proposals": "what a session staged: show it, make it, or drop it",
    },
    "policies, models, sandboxes": {
        "policy": "what a policy decides, why, and what a change would change",
        "model": "which models you can use, a test request, and prices",
        "sandbox": "what is in force, and building the one for real CPython",
        "exec": "run code as a turn, without a model",
    },
    "other programs and agents": {
        "mcp": "your MCP servers: add, look at changes, say what arguments mean",
        "proxy": "serve your MCP servers to another agent, behind the gate",
        "install": "have Claude Code, Codex, Cursor or VS Code go through Holdfast",
        "hook": "judge a built-in tool of Claude Code before it runs",
        "teams": "teams of agents that ask each other",
    },
}
"""Heading, command, and what it does in a few words."""

COMMANDS: dict[str, str] = {name: what for group in GROUPS.values() for name, what in group.items()}
