"""Clients: the configuration files of other agents, changed so that they reach their tools through us.

Only our own entry is written; everything else in a file stays as it is. A file that cannot be understood is left alone.
"""

import difflib
import json
import shlex
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.core import Value
from holdfast.core.errors import InvalidConfig, InvalidInput

NAME = "holdfast"
HOOK_SECONDS = 600
"""How long Claude Code waits for the hook; a person may have to be asked."""


class FileChange(Value):
    """A configuration file as it is and as it will be."""

    path: str
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        return "".join(
            difflib.unified_diff(before, after, self.path if self.before else "/dev/null", self.path)
        )


class Installation(Value):
    """What has to be written for a client, and which of its servers still bypass the gate."""

    changes: tuple[FileChange, ...]
    bypassing: tuple[str, ...] = ()


def plan(
    client: str, *, command: tuple[str, ...], folder: Path, home: Path, is_for_user: bool
) -> Installation:
    """What `holdfast install CLIENT` would write. Raises InvalidInput and InvalidConfig."""
    planner = _PLANNERS.get(client)
    if planner is None:
        raise InvalidInput(f"{client!r} is no client we know", hint=f"one of {', '.join(_PLANNERS)}")
    return planner(command, home if is_for_user else folder, is_for_user)


def _plan_claude(command: tuple[str, ...], root: Path, is_for_user: bool) -> Installation:
    servers = root / (".claude.json" if is_for_user else ".mcp.json")
    settings = root / ".claude" / "settings.json"
    # Claude Code runs a tool whose hook fails in any other way than by exit code 2; a missing program is such a way.
    words = f"{shlex.join((*command, 'hook', 'claude'))} || exit 2"
    hook = {"type": "command", "command": words, "timeout": HOOK_SECONDS}
    listed, bypassing = _with_server(
        servers, "mcpServers", {"command": command[0], "args": [*command[1:], "proxy"]}
    )
    before, document = _read_json(settings)
    hooks = document.setdefault("hooks", {}).setdefault("PreToolUse", [])
    if not isinstance(hooks, list):
        raise InvalidConfig(f"{settings}: 'hooks.PreToolUse' is not a list")
    if not any("hook claude" in json.dumps(each) for each in hooks):
        hooks.append({"matcher": "*", "hooks": [hook]})
    hooked = FileChange(path=str(settings), before=before, after=_write_json(document))
    return Installation(changes=_real([listed, hooked]), bypassing=bypassing)


def _plan_codex(command: tuple[str, ...], root: Path, is_for_user: bool) -> Installation:
    path = root / ".codex" / "config.toml"
    before = _read(path)
    try:
        servers = tomllib.loads(before).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path}: {error}", hint="repair the file first") from error
    wanted = {"command": command[0], "args": [*command[1:], "proxy"]}
    others = tuple(name for name in servers if name != NAME)
    if servers.get(NAME) == wanted:
        return Installation(changes=(), bypassing=others)
    if NAME in servers:
        raise InvalidConfig(
            f"{path}: has another [mcp_servers.{NAME}] already", hint="remove it and try again"
        )
    words = ", ".join(json.dumps(word) for word in wanted["args"])
    section = f"[mcp_servers.{NAME}]\ncommand = {json.dumps(command[0])}\nargs = [{words}]\n"
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    return Installation(
        changes=(FileChange(path=str(path), before=before, after=f"{before}{gap}{section}"),),
        bypassing=others,
    )


def _plan_cursor(command: tuple[str, ...], root: Path, is_for_user: bool) -> Installation:
    entry = {"command": command[0], "args": [*command[1:], "proxy"]}
    change, bypassing = _with_server(root / ".cursor" / "mcp.json", "mcpServers", entry)
    return Installation(changes=_real([change]), bypassing=bypassing)


def _plan_vscode(command: tuple[str, ...], root: Path, is_for_user: bool) -> Installation:
    entry = {"type": "stdio", "command": command[0], "args": [*command[1:], "proxy"]}
    path = root / (".config/Code/User/mcp.json" if is_for_user else ".vscode/mcp.json")
    change, bypassing = _with_server(path, "servers", entry)
    return Installation(changes=_real([change]), bypassing=bypassing)


_PLANNERS: Mapping[str, Callable[[tuple[str, ...], Path, bool], Installation]] = {
    "claude": _plan_claude,
    "codex": _plan_codex,
    "cursor": _plan_cursor,
    "vscode": _plan_vscode,
}


def _with_server(path: Path, key: str, entry: dict[str, Any]) -> tuple[FileChange, tuple[str, ...]]:
    before, document = _read_json(path)
    servers = document.setdefault(key, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{path}: {key!r} is not an object")
    servers[NAME] = entry
    others = tuple(name for name in servers if name != NAME)
    return FileChange(path=str(path), before=before, after=_write_json(document)), others


def _real(changes: list[FileChange]) -> tuple[FileChange, ...]:
    """Without those that change nothing."""
    return tuple(
        each for each in changes if not each.before or json.loads(each.before) != json.loads(each.after)
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from error


def _read_json(path: Path) -> tuple[str, dict[str, Any]]:
    text = _read(path)
    if not text.strip():
        return text, {}
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidConfig(
            f"{path}: {error}", hint="comments are not JSON; repair the file first"
        ) from error
    if not isinstance(document, dict):
        raise InvalidConfig(f"{path}: is not a JSON object")
    return text, document


def _write_json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
