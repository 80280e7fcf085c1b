"""The configuration files of other agents, changed so that these agents reach their tools through Holdfast.

Only our own entry is added and removed; the rest of a file stays exactly as it is. A file that cannot be parsed is not
changed.
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
"""How long Claude Code waits for the hook, which may need a person's answer."""


class FileChange(Value):
    """A configuration file before and after. A file that becomes empty is deleted."""

    path: str
    before: str
    after: str

    @property
    def is_removal(self) -> bool:
        """Whether the file held only our entry and is deleted."""
        return not self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        names = (self.path if self.before else "/dev/null", self.path if self.after else "/dev/null")
        before, after = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        return "".join(difflib.unified_diff(before, after, *names))


class Installation(Value):
    """The changes for a client, and its servers that still bypass the gate."""

    changes: tuple[FileChange, ...]
    bypassing: tuple[str, ...] = ()


_CLIENT_FILES = (
    ".mcp.json", ".claude.json", ".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".codex/hooks.json",
    ".cursor/mcp.json", ".cursor/hooks.json", ".vscode/mcp.json", ".config/Code/User/mcp.json",
)  # fmt: skip


def client_files(*folders: Path) -> tuple[Path, ...]:
    """The files that say how an agent reaches its tools, in these folders. An agent that changes one can pass the gate by."""
    return tuple(folder / name for folder in folders for name in _CLIENT_FILES)


def plan(
    client: str,
    *,
    command: tuple[str, ...],
    folder: Path,
    home: Path,
    is_for_user: bool,
    policy: str = "",
    has_shell: bool = False,
    sandboxes_bash: bool = False,
    is_removal: bool = False,
) -> Installation:
    """What `holdfast install CLIENT` writes, or removes. Raises InvalidInput and InvalidConfig.

    With `has_shell` the proxy offers tools that run programs; with `sandboxes_bash` the hook runs Claude Code's own commands
    in the sandbox.
    """
    planner = _PLANNERS.get(client)
    if planner is None:
        raise InvalidInput(
            f"{client!r} is not a supported client", hint=f"use one of: {', '.join(_PLANNERS)}"
        )
    if sandboxes_bash and client != "claude":
        raise InvalidInput(
            f"{client} has no hook that could run its commands in the sandbox",
            hint=f"give it tools that do: holdfast install {client} --shell",
        )
    options = ("-p", policy) if policy else ()
    shell = ("--shell",) if has_shell else ()
    entry = None if is_removal else {"command": command[0], "args": [*command[1:], "proxy", *options, *shell]}
    bash = ("--sandbox-bash",) if sandboxes_bash else ()
    hook = shlex.join((*command, "hook", "claude", *options, *bash))
    return planner(hook, home if is_for_user else folder, is_for_user, entry)


_Entry = dict[str, Any] | None
"""Our entry among a client's servers; None removes it."""


def _plan_claude(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    servers = root / (".claude.json" if is_for_user else ".mcp.json")
    listed, bypassing = _with_server(servers, _read_plain_json(servers), "mcpServers", entry)
    settings = root / ".claude" / "settings.json"
    document = before = _read_plain_json(settings)
    # Claude Code runs a tool unless its hook exits with 2, even if the hook's program is missing. The other hooks only
    # record a turn or notify, and must not block: exit code 2 would keep Claude Code from stopping.
    lines = {
        "PreToolUse": f"{hook} || exit 2",
        "UserPromptSubmit": hook,
        "Stop": f"{hook} || exit 1",
        "SessionEnd": f"{hook} || exit 1",
        "Notification": f"{hook} || exit 1",
    }
    for event, line in lines.items():
        ours = {"type": "command", "command": line, "timeout": HOOK_SECONDS}
        document = _with_hook(document, settings, event, None if entry is None else ours)
    hooked = FileChange(path=str(settings), before=before.text, after=document.text)
    return Installation(changes=_effective([listed, hooked]), bypassing=bypassing)


def _with_hook(document: JsoncDocument, path: Path, event: str, wanted: _Entry) -> JsoncDocument:
    """The settings with exactly this hook of ours for an event; None removes it."""
    groups = document.get("hooks", event)
    if groups is not None and not isinstance(groups, list):
        raise InvalidConfig(f"{path}: 'hooks.{event}' is not a list")
    existing = [
        (index, number, hook)
        for index, group in enumerate(groups or [])
        for number, hook in enumerate(group.get("hooks", []) if isinstance(group, dict) else [])
        if _is_ours(hook)
    ]
    if [hook for _, _, hook in existing] == ([] if wanted is None else [wanted]):
        return document
    for index, number, _ in reversed(existing):
        # A group with only our hook is removed too: without hooks, its matcher means nothing.
        group = document.get("hooks", event, index)
        inner = ("hooks", number) if len(group["hooks"]) > 1 else ()
        document = document.without("hooks", event, index, *inner)
    if wanted is None:
        return document
    return document.append("hooks", event, item={"matcher": "*", "hooks": [wanted]})


def _is_ours(hook: object) -> bool:
    command = str(hook.get("command", "")) if isinstance(hook, dict) else ""
    return NAME in command and " hook claude" in command


def _plan_codex(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / ".codex" / "config.toml"
    before = _read(path)
    try:
        servers = tomllib.loads(before).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise InvalidConfig(f"{path}: {error}", hint="fix the file first") from error
    others = tuple(name for name in servers if name != NAME)
    if servers.get(NAME) == entry:
        return Installation(changes=(), bypassing=others)
    existing = _codex_section(servers[NAME]) if NAME in servers else ""
    if existing not in before:
        raise InvalidConfig(
            f"{path}: already has a different [mcp_servers.{NAME}]", hint="remove that section and try again"
        )
    if entry is None:
        rest = before.replace(existing, "", 1).rstrip("\n")
        after = f"{rest}\n" if rest else ""
    elif existing:
        after = before.replace(existing, _codex_section(entry), 1)
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
    return Installation(changes=_effective([change]), bypassing=bypassing)


def _plan_vscode(hook: str, root: Path, is_for_user: bool, entry: _Entry) -> Installation:
    path = root / (".config/Code/User/mcp.json" if is_for_user else ".vscode/mcp.json")
    change, bypassing = _with_server(path, _read_json(path), "servers", _typed(entry, is_for_user))
    # Agents in VS Code also read the file of Claude Code.
    portable = () if is_for_user else _others(_read_json(root / ".mcp.json"), "mcpServers")
    return Installation(changes=_effective([change]), bypassing=(*bypassing, *portable))


def _typed(entry: _Entry, is_for_user: bool) -> _Entry:
    """Our entry as editors document it, with its type and, because they start it anywhere, the project's folder."""
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
    """The other servers in a file."""
    servers = document.get(key)
    return tuple(name for name in servers if name != NAME) if isinstance(servers, dict) else ()


def _effective(changes: list[FileChange]) -> tuple[FileChange, ...]:
    """The changes that have an effect."""
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
        raise InvalidConfig(f"{path}: {error}", hint="fix the file first") from error


def _read_plain_json(path: Path) -> JsoncDocument:
    """For a client that rejects a file with comments and so would never see our entry."""
    document = _read_json(path)
    if not document.is_plain:
        raise InvalidConfig(
            f"{path}: has comments or trailing commas, so Claude Code ignores it",
            hint="remove them and try again",
        )
    return document
