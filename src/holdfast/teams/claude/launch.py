"""How the program is started: what it may load, what it sees of our environment, and where its own files lie.

Each pair has a folder of its own for the program's configuration, so no two of them share a memory or can write to each
other. Nothing that lies in a project is loaded: its hooks and servers would run unasked.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

import holdfast.teams.members.agent_home as agent_home
from holdfast.teams.config.roster import Team

RETENTION_DAYS = 3650
"""The program deletes transcripts by itself after 30 days unless told otherwise."""
TOOLS = ("Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "Write")
"""Nothing that starts a turn by itself, writes to other sessions or outlives its turn."""
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
    """The program of a team. Raises MemberMissing."""
    return agent_home.find_program(
        team.program or "claude",
        environ,
        hint="install it with: pip install claude-agent-sdk, or name it in the roster with program:",
    )


def command(
    team: Team, *, program: str, conversation: Sequence[str], servers: Path | None
) -> tuple[str, ...]:
    """The command line; `conversation` are the flags that say which one."""
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
    """The whole environment: ours is not inherited, only what the roster names."""
    own = agent_home.environment(team, folder=folder, environ=environ)
    return own | {"CLAUDE_CONFIG_DIR": str(folder / "config"), **_QUIET}


def create_folders(folder: Path) -> None:
    """Make the folders of a pair, for nobody else's eyes."""
    agent_home.create_folders(folder, "config")
