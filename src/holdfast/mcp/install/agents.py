"""Clients: the configuration files of other agents, changed so that they reach their tools through us.

Only our own entry is written and taken out; everything else in a file stays as it is, to the letter. A file that cannot be
understood is left alone.
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
from holdfast.mcp.install.jsonc import JsoncDocument

NAME = "holdfast"
HOOK_SECONDS = 600
"""How long Claude Code waits for the hook; a person may have to be asked."""


class FileChange(Value):
    """A configuration file as it is and as it will be; one that will hold nothing goes."""

    path: str
    before: str
    after: str

    @property
    def is_removal(self) -> bool:
        """Whether nobody but us had written anything there."""
        return not self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        names = (self.path if self.before else "/dev/null", self.path if self.after else "/dev/null")
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, *names))


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
    servers = root / (".claude.json" if is_for_user else ".mcp.json")
    listed, bypassing = _with_server(servers, _read_plain_json(servers), "mcpServers", entry)
    settings = root / ".claude" / "settings.json"
    document = before = _read_plain_json(settings)
    # Claude Code runs a tool whose hook fails in any other way than by exit code 2; a missing program is such a way.
    # What the person asked for and that it is done are only noted, and no reason to hold anything up: on 2 it would not stop.
    lines = {
        "PreToolUse": f"{hook} || exit 2",
        "UserPromptSubmit": hook,
        "Stop": f"{hook} || exit 1",
        "SessionEnd": f"{hook} || exit 1",
    }
    for event, line in lines.items():
        ours = {"type": "command", "command": line, "timeout": HOOK_SECONDS}
        document = _with_hook(document, settings, event, None if entry is None else ours)
    hooked = FileChange(path=str(settings), before=before.text, after=document.text)
    return Installation(changes=_real([listed, hooked]), bypassing=bypassing)


def _with_hook(document: JsoncDocument, path: Path, event: str, wanted: _Entry) -> JsoncDocument:
    """The settings with our hook for an event and no other of ours; None takes it out."""
    groups = document.get("hooks", event)
    if groups is not None and not isinstance(groups, list):
        raise InvalidConfig(f"{path}: 'hooks.{event}' is not a list")
    standing = [
        (place, number, hook)
        for place, group in enumerate(groups or [])
        for number, hook in enumerate(group.get("hooks", []) if isinstance(group, dict) else [])
        if _is_ours(hook)
    ]
    if [hook for _, _, hook in standing] == ([] if wanted is None else [wanted]):
        return document
    for place, number, _ in reversed(standing):
        # A group that held nothing but our hook goes with it; its matcher alone would say nothing.
        group = document.get("hooks", event, place)
        inner = ("hooks", number) if len(group["hooks"]) > 1 else ()
        document = document.without("hooks", event, place, *inner)
    if wanted is None:
        return document
    return document.add("hooks", event, item={"matcher": "*", "hooks": [wanted]})


def _is_ours(hook: object) -> bool:
    command = str(hook.get("command", "")) if isinstance(hook, dict) else ""
    return NAME in command and " hook claude" in command


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
    standing = _codex_section(servers[NAME]) if NAME in servers else ""
    if standing not in before:
        raise InvalidConfig(
            f"{path}: has another [mcp_servers.{NAME}] already", hint="remove it and try again"
        )
    if entry is None:
        rest = before.replace(standing, "", 1).rstrip("\n")
        after = f"{rest}\n" if rest else ""
    elif standing:
        after = before.replace(standing, _codex_section(entry), 1)
    else:
        gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
        after = f"{before}{gap}{_codex_section(entry)}"
    return Installation(changes=(FileChange(path=str(path), before=before, after=after),), bypassing=others)


def _codex_section(entry: Mapping[str, Any]) -> str:
    words = ", ".join(json.dumps(word) for word in entry.get("args", []))
    return f"[mcp_servers.{NAME}]\ncommand = {json.dumps(entry.get('command'))}\nargs = [{words}]\n"


def _plan_cursor(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / ".cursor" / "mcp.json"
    change, bypassing = _with_server(path, _read_json(path), "mcpServers", _typed(entry, is_for_user))
    return Installation(changes=_real([change]), bypassing=bypassing)


def _plan_vscode(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / (".config/Code/User/mcp.json" if is_for_user else ".vscode/mcp.json")
    change, bypassing = _with_server(path, _read_json(path), "servers", _typed(entry, is_for_user))
    # Agents of VS Code also read the file that Claude Code does.
    portable = () if is_for_user else _others(_read_json(root / ".mcp.json"), "mcpServers")
    return Installation(changes=_real([change]), bypassing=(*bypassing, *portable))


def _typed(entry: _Entry, is_for_user: bool) -> _Entry:
    """Our entry as editors document it: its kind, and the project's folder in their own words, for they start it anywhere."""
    if entry is None:
        return None
    folder = [] if is_for_user else ["-w", "${workspaceFolder}"]
    return {"type": "stdio", "command": entry["command"], "args": [*entry["args"], *folder]}


_PLANNERS: Mapping[str, Callable[[str, Path, bool, _Entry], Installation]] = {
    "claude": _plan_claude,
    "codex": _plan_codex,
    "cursor": _plan_cursor,
    "vscode": _plan_vscode,
}


def _with_server(
    path: Path, before: JsoncDocument, key: str, entry: _Entry
) -> tuple[FileChange, tuple[str, ...]]:
    document = before
    if not isinstance(document.value.get(key, {}), dict):
        raise InvalidConfig(f"{path}: {key!r} is not an object")
    if entry is None:
        document = document.without(key, NAME)
    elif document.get(key, NAME) != entry:
        document = document.put(key, NAME, value=entry)
    return FileChange(path=str(path), before=before.text, after=document.text), _others(before, key)


def _others(document: JsoncDocument, key: str) -> tuple[str, ...]:
    """The servers in a file beside ours."""
    servers = document.get(key)
    return tuple(name for name in servers if name != NAME) if isinstance(servers, dict) else ()


def _real(changes: list[FileChange]) -> tuple[FileChange, ...]:
    """Without those that change nothing."""
    return tuple(each for each in changes if each.before != each.after)


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f"{path}: cannot be read: {error}") from error


def _read_json(path: Path) -> JsoncDocument:
    try:
        return JsoncDocument(_read(path))
    except ValueError as error:
        raise InvalidConfig(f"{path}: {error}", hint="repair the file first") from error


def _read_plain_json(path: Path) -> JsoncDocument:
    """For a client that takes a file with comments for a broken one: it would never see what we write there."""
    document = _read_json(path)
    if not document.is_plain:
        raise InvalidConfig(
            f"{path}: comments and trailing commas are not JSON",
            hint="take them out; Claude Code ignores the file",
        )
    return document
