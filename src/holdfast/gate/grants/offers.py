"""Grant offers: up to four sets of calls, from narrow to wide, that a person can approve together with the call that waits.

The first is the call itself; every further one contains it. An offer widens only what is understood: paths to their folder and
the workspace, URLs to their host, commands to their first words, and arguments that are data to any value.
"""

import posixpath
import re
import shlex
from collections.abc import Callable, Sequence
from typing import assert_never

from holdfast.core import (
    Area,
    AreaKind,
    ArgumentValue,
    Call,
    CommandTarget,
    Coverage,
    NameTarget,
    PathTarget,
    Role,
    Target,
    Tool,
    UrlTarget,
    digest,
    encode,
    is_covered,
    is_data,
    origin_of,
)

MAX_OFFERS = 4
MAX_SHOWN_CHARACTERS = 60
"""Characters shown of a fixed value; the person also sees the whole call."""
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_RUNNERS = frozenset(
    [
        "ash",
        "awk",
        "bash",
        "bun",
        "bunx",
        "cmd",
        "csh",
        "dash",
        "deno",
        "docker",
        "doas",
        "env",
        "expect",
        "fish",
        "gawk",
        "ksh",
        "lua",
        "make",
        "node",
        "npx",
        "perl",
        "php",
        "pip",
        "pipx",
        "podman",
        "powershell",
        "pwsh",
        "python",
        "python3",
        "ruby",
        "sh",
        "ssh",
        "sudo",
        "tclsh",
        "uv",
        "uvx",
        "watch",
        "xargs",
        "zsh",
    ]
)
"""Programs that run other programs: their name alone says nothing about what happens."""
_COMMAND_SETTINGS = ("cwd", "timeout_s", "tty")
"""Arguments of a command that do not change what it does. Its input, its environment and its hosts are none of them."""


def find_offers(
    call: Call, tool: Tool, targets: Sequence[Target], contents: Sequence[str], *, weaker_rule: str = ""
) -> tuple[Coverage, ...]:
    """The coverages that a person is offered, narrowest first. Empty if no one can say what the call would lead to.

    `weaker_rule` asks because programs run in a weaker sandbox: one answer may cover all that it asks about.
    """
    if any(isinstance(each, UrlTarget) and each.problem is not None for each in targets):
        return ()
    if any(isinstance(each, CommandTarget) for each in targets):
        every = [Coverage(operation=f"{tool.group}.*", rule=weaker_rule)] if weaker_rule else []
        return _kept([*_command_offers(call, tool, targets), *every], call, tool, targets)
    opened = contents if targets else ()
    fixed = tuple(_fixed(call, name) for name in sorted(_data(call, targets)) if name not in opened)
    values = (*fixed, *(ArgumentValue(argument=name) for name in contents if name in opened))
    exact = Coverage(operation=tool.name, areas=tuple(map(_exact_area, targets)), values=values)
    near, wide = _areas(targets, _near_area), _areas(targets, _wide_area)
    found = [exact]
    is_connection = any(
        each.role == "proxy-domain" for each in targets
    )  # the port is its only other argument
    if tool.is_read_only or not targets or is_connection:
        found += [Coverage(operation=tool.name, areas=near, has_any_values=True)]
        if near != wide and not tool.is_destructive:
            found += [Coverage(operation=tool.name, areas=wide, has_any_values=True)]
        if tool.is_read_only:
            group = f"{tool.group}.*"
            everywhere = tuple(dict.fromkeys(_any_argument(area) for area in wide))
            found += [Coverage(operation=group, is_read_only=True, areas=everywhere, has_any_values=True)]
    else:
        found += [Coverage(operation=tool.name, areas=near, values=values)]
        if not tool.is_destructive:
            found += [Coverage(operation=tool.name, areas=wide, values=values)]
            if any(is_data(tool, name) and name not in contents for name in tool.roles or {}):
                found += [Coverage(operation=tool.name, areas=wide, has_any_values=True)]
    return _kept(found, call, tool, targets)


def _kept(
    found: Sequence[Coverage], call: Call, tool: Tool, targets: Sequence[Target]
) -> tuple[Coverage, ...]:
    # INVARIANT: a grant matches the call that made it.
    kept = [each for each in dict.fromkeys(found) if is_covered(each, call, tool, targets)]
    return tuple(kept[:MAX_OFFERS])


def _command_offers(call: Call, tool: Tool, targets: Sequence[Target]) -> list[Coverage]:
    """Commands by their first words. What a program reads from its input can be a script, so no offer leaves it open."""
    fixed = tuple(_fixed(call, name) for name in sorted(_data(call, targets)))
    settings = tuple(ArgumentValue(argument=name) for name in _COMMAND_SETTINGS if name in (tool.roles or {}))
    loose = (*(each for each in fixed if each.argument not in _COMMAND_SETTINGS), *settings)
    exact = Coverage(operation=tool.name, areas=tuple(map(_exact_area, targets)), values=fixed)
    near, wide = _areas(targets, _near_area), _areas(targets, _wide_area)
    return [exact, *(Coverage(operation=tool.name, areas=areas, values=loose) for areas in (near, wide))]


def folder_coverage(folder: str, *, is_read_only: bool) -> Coverage:
    """What `--add-dir` approves in advance: every call on paths in a folder."""
    roles: tuple[Role, ...] = ("read-path",) if is_read_only else ("read-path", "write-path", "delete-path")
    area = Area(kind="folder", value=folder, roles=roles)
    return Coverage(operation="*", areas=(area,), has_any_values=True)


def _data(call: Call, targets: Sequence[Target]) -> set[str]:
    return set(call.arguments) - {target.argument for target in targets}


def _fixed(call: Call, name: str) -> ArgumentValue:
    text = encode(call.arguments[name]).decode()
    shown = text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}..."
    return ArgumentValue(argument=name, digest=digest(call.arguments[name]), shown=shown)


def _areas(targets: Sequence[Target], widen: Callable[[Target], Area]) -> tuple[Area, ...]:
    return tuple(dict.fromkeys(map(widen, targets)))


def _exact_area(target: Target) -> Area:
    match target:
        case PathTarget():
            return _area(target, "path", target.location.real)
        case UrlTarget():
            return _same(target, target.given)
        case CommandTarget() if target.is_opaque:
            return _same(target, f"exactly this script with the words `{target.text}`")
        case CommandTarget():
            return _same(target, target.text)
        case NameTarget():
            return _same(target, target.value)
        case _:
            assert_never(target)


def _near_area(target: Target) -> Area:
    match target:
        case PathTarget():
            return _near_path(target)
        case UrlTarget():
            return _area(target, "host", origin_of(target))
        case CommandTarget():
            return _prefix(target, 2)
        case _:
            return _exact_area(target)


def _wide_area(target: Target) -> Area:
    match target:
        case PathTarget() if target.location.inside is not None:
            return _area(target, "workspace", "")
        case CommandTarget():
            return _prefix(target, 1)
        case _:
            return _near_area(target)


def _near_path(target: PathTarget) -> Area:
    inside, folder = target.location.inside, posixpath.dirname(target.location.real)
    if inside is not None:
        is_top = "/" not in inside
        return _area(target, "workspace", "") if is_top else _area(target, "folder", folder)
    # A folder such as /etc or someone's home is never a small step.
    depth = folder.count("/")
    is_home = folder == "/root" or (depth == 2 and folder.startswith(("/home/", "/Users/")))
    return _exact_area(target) if depth < 2 or is_home else _area(target, "folder", folder)


def _prefix(target: CommandTarget, length: int) -> Area:
    """The first words of a command: the program, and its subcommand if it has one."""
    words = target.words[:2]
    has_subcommand = len(words) == 2 and _SUBCOMMAND.fullmatch(words[1]) is not None
    program = posixpath.basename(words[0]) if words else ""
    if program in _RUNNERS or target.is_opaque or target.writes or target.sets_environment:
        return _exact_area(target)
    kept = words[:1] if length == 1 or not has_subcommand else words
    # Of any argument: whether a command is an argument list or part of a script makes no difference to what it does.
    return Area(kind="prefix", value=shlex.join(kept), roles=(target.role,), words=kept)


def _any_argument(area: Area) -> Area:
    return Area(kind=area.kind, value=area.value, roles=area.roles, words=area.words, digest=area.digest)


def _area(target: Target, kind: AreaKind, value: str) -> Area:
    return Area(kind=kind, value=value, roles=(target.role,), argument=target.argument)


def _same(target: Target, shown: str) -> Area:
    text = (
        shown if len(shown) <= MAX_SHOWN_CHARACTERS else f"{shown[:MAX_SHOWN_CHARACTERS]}... (exactly this)"
    )
    return Area(
        kind="same", value=text, roles=(target.role,), argument=target.argument, digest=digest(target)
    )
