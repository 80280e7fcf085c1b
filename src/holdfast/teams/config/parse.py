"""From teams.yaml, or the older teams.json, to a roster. Whatever cannot be meant is refused in its place.

teams.json comes from another program: its times are milliseconds in camelCase, and `skipPermissions` is refused where it
is true, because here nothing runs without being judged.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from holdfast.core import BUDGET_DIMENSIONS, Limits, budget_dimension
from holdfast.core.errors import HoldfastError, InvalidConfig, InvalidInput
from holdfast.teams.config.roster import Gating, MemberKind, Roster, Team, TeamsSettings
from holdfast.teams.config.yaml_nodes import Spot, read_document
from holdfast.teams.pairs import OUTSIDE, RESERVED, check_name

YEAR_SECONDS = 31_536_000.0
_COLOR = re.compile(r"#[0-9A-Fa-f]{6}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Read = Callable[[Spot], object]


def read_roster(text: str, *, source: str, open_policy: Callable[[str], object] | None = None) -> Roster:
    """The roster in a text; where `open_policy` is given, no policy that it cannot open."""
    fields = read_document(text, source).fields()
    _refuse_unknown(fields, ("settings", "teams"), "the roster")
    if "teams" not in fields:
        raise InvalidConfig(f"{source}:1:1: the roster has no field 'teams'")
    settings = fields.get("settings")
    teams: dict[str, Team] = {}
    named = fields["teams"][1]
    for name, (key, spot) in ({} if named.is_nothing() else named.fields()).items():
        teams[_team_name(name, key)] = _read_team(name, key, spot)
    for name, (key, spot) in ({} if named.is_nothing() else named.fields()).items():
        _check_askers(spot, teams, name)
        if open_policy is not None:
            _check_policy(spot.fields().get("policy", (key, key))[1], teams[name].policy, open_policy)
    return Roster(settings=_read_settings(settings[1]) if settings else TeamsSettings(), teams=teams)


def _read_settings(spot: Spot) -> TeamsSettings:
    fields = spot.fields()
    _refuse_unknown(fields, (*_SETTINGS, *_OLD_SETTINGS), "settings")
    found: dict[str, Any] = {}
    for name, (key, value) in fields.items():
        ours, read = _OLD_SETTINGS.get(name) or (name, _SETTINGS[name])
        if ours in found:
            key.fail(f"{name!r} says the same as another field")
        found[ours] = read(value)
    return TeamsSettings(**found)


def _read_team(name: str, key: Spot, spot: Spot) -> Team:
    fields = spot.fields()
    _refuse_unknown(fields, (*_TEAM, "path", "skipPermissions"), f"team {name!r}")
    if "skipPermissions" in fields and fields["skipPermissions"][1].truth():
        fields["skipPermissions"][1].fail(
            "nothing runs here without being judged",
            hint="leave it out, and give the team a policy that allows what it needs",
        )
    where = fields.get("project") or fields.get("path")
    if where is None:
        key.fail(f"team {name!r} has no field 'project'")
    found: dict[str, Any] = {
        field: _TEAM[field](value) for field, (_, value) in fields.items() if field in _TEAM
    }
    team = Team(**(found | {"name": name, "project": _project(where[1])}))
    if team.member == "acp":
        _check_agent(team, key, fields)
    return team


def _check_agent(team: Team, key: Spot, fields: dict[str, tuple[Spot, Spot]]) -> None:
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


def _team_name(name: str, key: Spot) -> str:
    try:
        check_name(name)
    except InvalidInput as error:
        key.fail(str(error), hint=error.hint)
    if name in RESERVED:
        key.fail(
            f"{name!r} is not the name of a team", hint=f"these have a meaning: {', '.join(sorted(RESERVED))}"
        )
    return name


def _check_askers(spot: Spot, teams: dict[str, Team], name: str) -> None:
    for asker in teams[name].asked_by or ():
        if asker != OUTSIDE and asker not in teams:
            spot.fields()["asked_by"][1].fail(f"there is no team {asker!r}")


def _check_policy(spot: Spot, name: str, open_policy: Callable[[str], object]) -> None:
    try:
        open_policy(name)
    except HoldfastError as error:
        spot.fail(str(error), hint=error.hint)


def _project(spot: Spot) -> str:
    text = spot.text()
    if not os.path.isabs(text):
        spot.fail(f"{text!r} is not an absolute path")
    if ".." in Path(text).parts or "\0" in text:
        spot.fail(f"{text!r}: a project's path has no '..'")
    if not os.path.isdir(text):
        spot.fail(f"{text!r} is no folder", hint="the path has to be there, in exactly this spelling")
    if not os.access(text, os.R_OK | os.X_OK):
        spot.fail(f"{text!r} cannot be read")
    return text


def _limits(spot: Spot) -> Limits:
    fields = spot.fields()
    words = tuple(word for each in BUDGET_DIMENSIONS for word in (each.word, *each.aliases))
    _refuse_unknown(fields, words, "a budget")
    found: dict[str, Any] = {}
    for name, (_, value) in fields.items():
        dimension = budget_dimension(name)
        if dimension.field in found:
            value.fail(f"{dimension.word} is given twice", hint="give each dimension once")
        number = value.whole(0, 10**15) if dimension.kind is int else value.number(0, 1e15)
        found[dimension.field] = dimension.kind(str(number)) if dimension.kind is not int else number
    return Limits(**found)


def _kind(spot: Spot) -> str:
    text = spot.text()
    kinds = get_args(MemberKind)
    return (
        text
        if text in kinds
        else spot.fail(f"{text!r} is no kind of member; expected one of {', '.join(kinds)}")
    )


def _gating(spot: Spot) -> str:
    text = spot.text()
    kinds = get_args(Gating)
    return text if text in kinds else spot.fail(f"{text!r} is no gate; expected one of {', '.join(kinds)}")


def _color(spot: Spot) -> str:
    text = spot.text()
    return (
        text if _COLOR.fullmatch(text) else spot.fail(f"{text!r} is no colour; expected one like '#E91E63'")
    )


def _variables(spot: Spot) -> tuple[str, ...]:
    names = spot.texts()
    for name in names:
        if not _VARIABLE.fullmatch(name):
            spot.fail(
                f"{name!r} is no name of a variable", hint="name it here, and set it in the environment"
            )
    return names


def _set_variables(spot: Spot) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, (key, value) in spot.fields().items():
        if not _VARIABLE.fullmatch(name):
            key.fail(f"{name!r} is no name of a variable")
        found[name] = value.text()
    return found


def _seconds(spot: Spot) -> float:
    return float(spot.number(0.001, YEAR_SECONDS))


def _milliseconds(spot: Spot) -> float:
    return spot.number(1, YEAR_SECONDS * 1000) / 1000


def _refuse_unknown(fields: dict[str, tuple[Spot, Spot]], known: tuple[str, ...], what: str) -> None:
    for name, (key, _) in fields.items():
        if name not in known:
            key.fail(f"{what} has no field {name!r}; expected one of {', '.join(known)}")


_SETTINGS: dict[str, Read] = {
    "max_processes": lambda spot: spot.whole(1, 1000),
    "idle_seconds": _seconds,
    "health_seconds": _seconds,
    "queue_seconds": _seconds,
    "turn_seconds": _seconds,
    "silence_seconds": _seconds,
    "approval_seconds": _seconds,
    "awake_at_start": lambda spot: spot.whole(0, 1000),
    "max_hops": lambda spot: spot.whole(1, 100),
    "compact_tokens": lambda spot: spot.whole(1000, 10**9),
    "archive_days": lambda spot: spot.whole(1, 36_500),
    "budget": _limits,
}
_OLD_SETTINGS: dict[str, tuple[str, Read]] = {
    "idleTimeout": ("idle_seconds", _milliseconds),
    "maxProcesses": ("max_processes", _SETTINGS["max_processes"]),
    "healthCheckInterval": ("health_seconds", _milliseconds),
}
_TEAM: dict[str, Read] = {
    "project": _project,
    "description": lambda spot: spot.text(),
    "member": _kind,
    "policy": lambda spot: spot.text(),
    "model": lambda spot: spot.text(),
    "program": lambda spot: spot.text(),
    "arguments": lambda spot: spot.texts(),
    "tools": lambda spot: spot.texts(),
    "environment": _variables,
    "variables": _set_variables,
    "mode": lambda spot: spot.text(),
    "gate": _gating,
    "color": _color,
    "budget": _limits,
    "asked_by": lambda spot: spot.texts(),
}
