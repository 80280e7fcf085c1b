"""The list of commands, grouped for `holdfast --help`. Each is implemented by the module of the same name in `cli.commands`."""

GROUPS: dict[str, dict[str, str]] = {
    "get started": {
        "demo": "run a whole session without a key or network",
        "init": "write a commented configuration and policy",
        "doctor": "check this machine, and show how to fix what is wrong",
        "config": "show each setting and its source; change one",
        "explain": "explain an error code or an exit code",
        "completion": "print completion scripts for bash, zsh and fish",
    },
    "sessions": {
        "sessions": "list sessions, newest first",
        "show": "show the messages and actions of a session",
        "search": "search the text of all sessions",
        "rename": "rename a session",
        "pause": "refuse turns until the session is resumed",
        "resume": "make a paused session accept turns again",
        "complete": "end a session for good, as completed",
        "abort": "end a session for good and drop its staged changes",
        "fork": "start a new session from a turn of another",
        "merge": "bring the files of a fork back to its parent's folder",
        "rewind": "return a session to an earlier turn, files included",
        "export": "write a session to one self-verifying file",
        "import": "import a session from such a file",
        "pin": "protect a session from pruning",
        "prune": "delete old sessions",
        "delete": "delete a session permanently",
        "verify": "verify that journals are complete and unchanged",
        "rebuild-index": "rebuild the session list and the search index",
        "replay": "rerun a session's code and report differences",
    },
    "review and approve": {
        "web": "open a page with what waits for you and all sessions",
        "waiting": "list the calls that wait for your approval",
        "approve": "approve a waiting call",
        "deny": "deny a waiting call",
        "answer": "answer a question of the agent",
        "notify": "show where you are notified; send a test",
        "grants": "list or revoke saved approvals",
        "audit": "list every call of a session with its decision",
        "reveal": "let the model read an output that is kept from it",
        "why": "explain the decision about a call",
        "budget": "show or raise the limits of a session",
        "usage": "show cost, tokens, calls and prompts by day or model",
        "timeline": "show turns, calls and waits of a session over time",
        "files": "list, show, copy or remove the files of a session",
        "proposals": "show, commit or reject staged changes",
    },
    "policies, models, sandboxes": {
        "policy": "test, lint, compare and explain policies",
        "model": "list and check models; show prices",
        "sandbox": "check the sandboxes, or build the wasi one",
        "exec": "run code as a turn, without a model",
        "run": "run a program in the command sandbox over a folder",
        "preview": "open a server in the sandbox to your browser",
    },
    "other programs and agents": {
        "mcp": "add, review and annotate MCP servers",
        "proxy": "serve your MCP servers to another agent, through the gate",
        "install": "connect Claude Code, Codex, Cursor or VS Code",
        "hook": "decide about a built-in tool call of Claude Code",
        "messenger": "talk with sessions from Slack or Telegram",
        "teams": "run teams of agents that ask each other",
    },
    "many machines": {
        "up": "try workers here: a PostgreSQL server, the page and workers",
        "store": "prepare, check or fill a store in PostgreSQL",
        "worker": "run the turns of sessions that machines share",
        "serve": "serve the web page for sessions that workers run",
        "post": "send a message to a session that workers run",
        "workers": "list the processes that have a store open",
        "queue": "show the jobs of workers by queue",
    },
}
"""Command and summary by heading."""

COMMANDS: dict[str, str] = {name: what for group in GROUPS.values() for name, what in group.items()}

CHAT_COMMANDS = frozenset(
    [
        "accept",
        "commit",
        "compact",
        "copy",
        "cost",
        "diff",
        "exit",
        "go",
        "logs",
        "mode",
        "quit",
        "reject",
        "review",
        "status",
        "undo",
        "unfold",
    ]
)
"""Slash commands of a chat that are not commands here: one such word alone is rarely a task for the agent."""

OTHER_NAMES = {
    "dashboard": "web",
    "history": "sessions",
    "list": "sessions",
    "ls": "sessions",
    "ps": "sessions",
    "ui": "web",
}
"""What other tools call some of our commands."""
