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
    client: str,
    *,
    command: tuple[str, ...],
    folder: Path,
    home: Path,
    is_for_user: bool,
    policy: str = "",
    is_removal: bool = False,
) -> Installation:
    """What `holdfast install CLIENT` would write, or take out again. Raises InvalidInput and InvalidConfig."""
    planner = _PLANNERS.get(client)
    if planner is None:
        raise InvalidInput(f"{client!r} is no client we know", hint=f"one of {', '.join(_PLANNERS)}")
    under = ("-p", policy) if policy else ()
    entry = None if is_removal else {"command": command[0], "args": [*command[1:], "proxy", *under]}
    hook = shlex.join((*command, "hook", "claude", *under))
    return planner(hook, home if is_for_user else folder, is_for_user, entry)


_Entry = dict[str, Any] | None
"""Our entry among a client's servers; None takes it out."""


def _plan_claude(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    listed, bypassing = _with_server(
        root / (".claude.json" if is_for_user else ".mcp.json"), "mcpServers", entry
    )
    settings = root / ".claude" / "settings.json"
    before, document = _read_json(settings)
    # Claude Code runs a tool whose hook fails in any other way than by exit code 2; a missing program is such a way.
    # What the person asked for is only noted, and no reason to hold it up.
    for event, line in (("PreToolUse", f"{hook} || exit 2"), ("UserPromptSubmit", hook)):
        hooks = document.setdefault("hooks", {}).setdefault(event, [])
        if not isinstance(hooks, list):
            raise InvalidConfig(f"{settings}: 'hooks.{event}' is not a list")
        others = [each for each in hooks if "hook claude" not in json.dumps(each)]
        ours = {"type": "command", "command": line, "timeout": HOOK_SECONDS}
        document["hooks"][event] = others if entry is None else [*others, {"matcher": "*", "hooks": [ours]}]
        if not document["hooks"][event]:
            del document["hooks"][event]
    if not document["hooks"]:
        del document["hooks"]
    hooked = FileChange(path=str(settings), before=before, after=_write_json(document))
    return Installation(changes=_real([listed, hooked]), bypassing=bypassing)


def _plan_codex(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / ".codex" / "config.toml"
    before = _read(path)
    try:
        servers = tomllib.loads(before).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path}: {error}", hint="repair the file first") from error
    others = tuple(name for name in servers if name != NAME)
    if servers.get(NAME) == entry:
        return Installation(changes=(), bypassing=others)
    section = _codex_section(servers[NAME] if entry is None else entry)
    if entry is None and section in before:
        after = before.replace(section, "", 1).rstrip("\n")
        return Installation(
            changes=(FileChange(path=str(path), before=before, after=f"{after}\n" if after else ""),),
            bypassing=others,
        )
    if NAME in servers:
        raise InvalidConfig(
            f"{path}: has another [mcp_servers.{NAME}] already", hint="remove it and try again"
        )
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    return Installation(
        changes=(FileChange(path=str(path), before=before, after=f"{before}{gap}{section}"),),
        bypassing=others,
    )


def _codex_section(entry: Mapping[str, Any]) -> str:
    words = ", ".join(json.dumps(word) for word in entry.get("args", []))
    return f"[mcp_servers.{NAME}]\ncommand = {json.dumps(entry.get('command'))}\nargs = [{words}]\n"


def _plan_cursor(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    change, bypassing = _with_server(root / ".cursor" / "mcp.json", "mcpServers", entry)
    return Installation(changes=_real([change]), bypassing=bypassing)


def _plan_vscode(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / (".config/Code/User/mcp.json" if is_for_user else ".vscode/mcp.json")
    typed = {"type": "stdio", **entry} if entry is not None else None
    change, bypassing = _with_server(path, "servers", typed)
    return Installation(changes=_real([change]), bypassing=bypassing)


_PLANNERS: Mapping[str, Callable[[str, Path, bool, _Entry], Installation]] = {
    "claude": _plan_claude,
    "codex": _plan_codex,
    "cursor": _plan_cursor,
    "vscode": _plan_vscode,
}


def _with_server(path: Path, key: str, entry: _Entry) -> tuple[FileChange, tuple[str, ...]]:
    before, document = _read_json(path)
    servers = document.setdefault(key, {})
    if not isinstance(servers, dict):
        raise InvalidConfig(f"{path}: {key!r} is not an object")
    others = tuple(name for name in servers if name != NAME)
    if entry is None:
        # What is left empty stays: to Claude Code a .mcp.json without the key is broken.
        servers.pop(NAME, None)
    else:
        servers[NAME] = entry
    return FileChange(path=str(path), before=before, after=_write_json(document)), others


def _real(changes: list[FileChange]) -> tuple[FileChange, ...]:
    """Without those that change nothing."""
    return tuple(each for each in changes if _told(each.before) != _told(each.after))


def _told(text: str) -> dict[str, Any]:
    """What a file says; of servers that are none it says nothing."""
    document: dict[str, Any] = json.loads(text or "{}")
    return {key: each for key, each in document.items() if each or key not in ("mcpServers", "servers")}


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
