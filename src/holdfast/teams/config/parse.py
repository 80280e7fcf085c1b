"""Parses `teams.yaml`, or the legacy `teams.json`, into a roster. Every error names its line and column.

`teams.json` is the format of Iris: its times are milliseconds in camelCase, its members are claude programs, and it may
contain comments. Holdfast runs nothing without a decision of the policy, so for `skipPermissions: true` the team's policy
decides, and a note of the roster says so. In `teams.yaml` it is an error.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from holdfast.core import BUDGET_DIMENSIONS, Limits, budget_dimension
from holdfast.core.errors import HoldfastError, InvalidConfig, InvalidInput
from holdfast.store import Home
from holdfast.teams.config.roster import GateMode, MemberKind, Roster, Team, TeamsSettings
from holdfast.teams.config.yaml_nodes import ConfigNode, is_json, read_document
from holdfast.teams.pairs import EXTERNAL_SENDER, RESERVED, check_name
from holdfast.world import open_folder

YEAR_SECONDS = 31_536_000.0
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Reader = Callable[[ConfigNode], object]


def parse_roster(
    text: str,
    *,
    source: str,
    home: Home | None = None,
    open_policy: Callable[[str], object] | None = None,
) -> Roster:
    """Parse a roster; with `open_policy`, check that every team's policy opens. Raises InvalidConfig."""
    own = (home or Home.default()).root
    fields = read_document(text, source).fields()
    _refuse_unknown(fields, ("settings", "teams"), "the roster")
    if "teams" not in fields:
        raise InvalidConfig(f"{source}:1:1: the roster has no field 'teams'")
    settings = fields.get("settings")
    teams: dict[str, Team] = {}
    notes: list[str] = []
    is_legacy = is_json(source)
    named = fields["teams"][1]
    for name, (key, node) in ({} if named.is_null() else named.fields()).items():
        teams[_team_name(name, key)] = _read_team(name, key, node, own, is_legacy=is_legacy)
        if is_legacy and _skips_permissions(node.fields()):
            notes.append(
                f"team {name!r}: skipPermissions has no effect; the policy {teams[name].policy!r} decides what its"
                ' member may do (set another one with "policy")'
            )
    for name, (key, node) in ({} if named.is_null() else named.fields()).items():
        _check_askers(node, teams, name)
        if open_policy is not None:
            _check_policy(node.fields().get("policy", (key, key))[1], teams[name].policy, open_policy)
    return Roster(
        settings=_read_settings(settings[1]) if settings and not settings[1].is_null() else TeamsSettings(),
        teams=teams,
        notes=tuple(notes),
    )


def _read_settings(node: ConfigNode) -> TeamsSettings:
    fields = node.fields()
    _refuse_unknown(fields, (*_SETTINGS, *_LEGACY_SETTINGS), "settings")
    found: dict[str, Any] = {}
    for name, (key, value) in fields.items():
        ours, read = _LEGACY_SETTINGS.get(name) or (name, _SETTINGS[name])
        if ours in found:
            key.fail(f"{name!r} sets the same value as another field")
        found[ours] = read(value)
    return TeamsSettings(**found)


def _read_team(name: str, key: ConfigNode, node: ConfigNode, own: Path, *, is_legacy: bool) -> Team:
    fields = node.fields()
    if is_legacy:
        fields = {field: entry for field, entry in fields.items() if not entry[1].is_null()}
    _refuse_unknown(fields, ("project", *_TEAM, "path", "skipPermissions"), f"team {name!r}")
    if _skips_permissions(fields) and not is_legacy:
        fields["skipPermissions"][1].fail(
            "nothing runs here without a decision of the policy",
            hint="leave it out, and give the team a policy that allows what it needs",
        )
    where = fields.get("project") or fields.get("path")
    if where is None:
        key.fail(f"team {name!r} has no field 'project'")
    found: dict[str, Any] = {
        field: _TEAM[field](value) for field, (_, value) in fields.items() if field in _TEAM
    }
    if is_legacy:
        found = {"member": "claude"} | found
    team = Team(**(found | {"name": name, "project": _project(where[1], own)}))
    if team.member == "acp":
        _check_agent(team, key, fields)
    return team


def _skips_permissions(fields: dict[str, tuple[ConfigNode, ConfigNode]]) -> bool:
    given = fields.get("skipPermissions")
    return given is not None and not given[1].is_null() and given[1].boolean()


def _check_agent(team: Team, key: ConfigNode, fields: dict[str, tuple[ConfigNode, ConfigNode]]) -> None:
    if not team.program:
        key.fail(
            f"team {team.name!r} has no field 'program'",
            hint="name the agent's program, as in: program: goose",
        )
    if team.gate != "asks":
        place = fields["gate"][1] if "gate" in fields else fields["member"][1]
        place.fail(
            "an agent over ACP asks only about the tools it chooses to",
            hint="write gate: asks to accept that, and choose its strictest mode",
        )


def _team_name(name: str, key: ConfigNode) -> str:
    try:
        check_name(name)
    except InvalidInput as error:
        key.fail(str(error), hint=error.hint)
    if name in RESERVED:
        key.fail(f"{name!r} is a reserved name", hint=f"reserved names: {', '.join(sorted(RESERVED))}")
    return name


def _check_askers(node: ConfigNode, teams: dict[str, Team], name: str) -> None:
    for asker in teams[name].asked_by or ():
        if asker != EXTERNAL_SENDER and asker not in teams:
            node.fields()["asked_by"][1].fail(f"there is no team {asker!r}")


def _check_policy(node: ConfigNode, name: str, open_policy: Callable[[str], object]) -> None:
    try:
        open_policy(name)
    except HoldfastError as error:
        node.fail(str(error), hint=error.hint)


def _project(node: ConfigNode, own: Path) -> str:
    """A project follows the same rules as the folder of a session."""
    text = node.text()
    if not os.path.isabs(text):
        node.fail(f"{text!r} is not an absolute path")
    if ".." in Path(text).parts or "\0" in text:
        node.fail(f"{text!r}: a project's path must not contain '..'")
    if not os.path.isdir(text):
        node.fail(f"{text!r} is not a folder", hint="the folder must exist, in exactly this spelling")
    if not os.access(text, os.R_OK | os.X_OK):
        node.fail(f"{text!r} cannot be read")
    try:
        open_folder(Path(text), own)
    except InvalidInput as error:
        node.fail(str(error), hint=error.hint)
    return text


def _limits(node: ConfigNode) -> Limits:
    fields = node.fields()
    words = tuple(word for each in BUDGET_DIMENSIONS for word in (each.word, *each.aliases))
    _refuse_unknown(fields, words, "a budget")
    found: dict[str, Any] = {}
    for name, (_, value) in fields.items():
        dimension = budget_dimension(name)
        if dimension.field in found:
            value.fail(f"{dimension.word} is given twice", hint="give each dimension once")
        number = value.integer(0, 10**15) if dimension.kind is int else value.number(0, 1e15)
        found[dimension.field] = dimension.kind(str(number)) if dimension.kind is not int else number
    return Limits(**found)


def _kind(node: ConfigNode) -> str:
    text = node.text()
    kinds = get_args(MemberKind)
    return (
        text
        if text in kinds
        else node.fail(f"{text!r} is not a kind of member; expected one of {', '.join(kinds)}")
    )


def _gate_mode(node: ConfigNode) -> str:
    text = node.text()
    kinds = get_args(GateMode)
    return (
        text
        if text in kinds
        else node.fail(f"{text!r} is not a gate mode; expected one of {', '.join(kinds)}")
    )


def _color(node: ConfigNode) -> str:
    text = node.text()
    return (
        text
        if _COLOR.fullmatch(text)
        else node.fail(f"{text!r} is not a colour; expected one like '#E91E63'")
    )


def _variables(node: ConfigNode) -> tuple[str, ...]:
    names = node.texts()
    for name in names:
        if not _VARIABLE.fullmatch(name):
            node.fail(
                f"{name!r} is not a variable name",
                hint="write only the name here, and set the value in the environment",
            )
    return names


def _set_variables(node: ConfigNode) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (key, value) in node.fields().items():
        if not _VARIABLE.fullmatch(name):
            key.fail(f"{name!r} is not a variable name")
        found[name] = value.text()
    return found


def _seconds(node: ConfigNode) -> float:
    return float(node.number(0.001, YEAR_SECONDS))


def _milliseconds(node: ConfigNode) -> float:
    return node.number(1, YEAR_SECONDS * 1000) / 1000


def _refuse_unknown(
    fields: dict[str, tuple[ConfigNode, ConfigNode]], known: tuple[str, ...], what: str
) -> None:
    for name, (key, _) in fields.items():
        if name not in known:
            key.fail(f"{what} has no field {name!r}; expected one of {', '.join(known)}")


_SETTINGS: dict[str, Reader] = {
    "max_processes": lambda node: node.integer(1, 1000),
    "idle_seconds": _seconds,
    "health_seconds": _seconds,
    "queue_seconds": _seconds,
    "turn_seconds": _seconds,
    "silence_seconds": _seconds,
    "approval_seconds": _seconds,
    "awake_at_start": lambda node: node.integer(0, 1000),
    "max_hops": lambda node: node.integer(1, 100),
    "compact_tokens": lambda node: node.integer(1000, 10**9),
    "archive_days": lambda node: node.integer(1, 36_500),
    "budget": _limits,
}
_LEGACY_SETTINGS: dict[str, tuple[str, Reader]] = {
    "idleTimeout": ("idle_seconds", _milliseconds),
    "maxProcesses": ("max_processes", _SETTINGS["max_processes"]),
    "healthCheckInterval": ("health_seconds", _milliseconds),
}
_TEAM: dict[str, Reader] = {
    "description": lambda node: node.text(),
    "member": _kind,
    "policy": lambda node: node.text(),
    "model": lambda node: node.text(),
    "program": lambda node: node.text(),
    "arguments": lambda node: node.texts(),
    "tools": lambda node: node.texts(),
    "environment": _variables,
    "variables": _set_variables,
    "mode": lambda node: node.text(),
    "gate": _gate_mode,
    "color": _color,
    "budget": _limits,
    "asked_by": lambda node: node.texts(),
}
