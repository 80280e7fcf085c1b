"""How the program is launched: what it may load, which environment it sees, and where its own files are.

Each pair has its own configuration folder, so no two pairs share memory or can write to each other. Nothing in the
project is loaded, because its hooks and servers would run without the gate.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

import holdfast.teams.members.agent_home as agent_home
from holdfast.teams.config.roster import Team

RETENTION_DAYS = 3650
"""By default the program deletes transcripts after 30 days."""
TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "Write")
"""No tool that starts a turn by itself, writes to other sessions or outlives its turn."""
NEVER = ("SendMessage", "ListAgents")
MAX_RETRIES = 2
_SETTINGS = msgspec.json.encode(
    {"cleanupPeriodDays": RETENTION_DAYS, "crossSessionInbound": "refuse", "autoMemoryEnabled": False}
).decode()
_QUIET = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_ENABLE_TELEMETRY": "0",
    "CLAUDE_CODE_MAX_RETRIES": str(MAX_RETRIES),
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_FEEDBACK_COMMAND": "1",
    "DISABLE_TELEMETRY": "1",
}


def find_program(team: Team, environ: Mapping[str, str]) -> str:
    """The path of a team's program. Raises MemberMissing."""
    return agent_home.find_program(
        team.program or "claude",
        environ,
        hint="install it with: npm install -g @anthropic-ai/claude-code, or give its path in the roster as program:",
    )


def command(
    team: Team, *, program: str, conversation: Sequence[str], servers: Path | None
) -> tuple[str, ...]:
    """The command line; `conversation` holds the flags that choose the conversation."""
    flags = [
        *("--print", "--verbose"),
        *("--input-format", "stream-json"),
        *("--output-format", "stream-json"),
        *("--permission-prompt-tool", "stdio"),
        *("--setting-sources", ""),
        "--strict-mcp-config",
        *("--tools", ",".join(team.tools or TOOLS)),
        *("--disallowedTools", ",".join(NEVER)),
        *("--settings", _SETTINGS),
        *conversation,
    ]
    if team.model:
        flags += ["--model", team.model]
    if servers is not None:
        flags += ["--mcp-config", str(servers)]
    return (program, *flags, *team.arguments)


def environment(team: Team, *, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The program's whole environment. It inherits only what the roster names or sets."""
    own = agent_home.environment(team, folder=folder, environ=environ)
    return own | {"CLAUDE_CONFIG_DIR": str(folder / "config"), **_QUIET}


def create_folders(folder: Path) -> None:
    """Create the folders of a pair, readable only by this user."""
    agent_home.create_folders(folder, "config")
