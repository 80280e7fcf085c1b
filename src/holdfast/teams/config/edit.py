"""Edits to the text of a roster: add or remove one team and keep every other line, comments included.

The result is parsed before it is returned, so an edit never produces an invalid roster or changes anything else.
"""

import msgspec

from holdfast.core import JsonObject
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.teams.config.parse import parse_roster
from holdfast.teams.config.roster import Roster
from holdfast.teams.config.yaml_nodes import ConfigNode, read_document

EDIT_BY_HAND = "edit the file by hand, then: holdfast teams check"


def with_team(text: str, name: str, fields: JsonObject, *, source: str) -> str:
    """The text with a team added. Raises InvalidInput, InvalidConfig."""
    before = parse_roster(text, source=source)
    if name in before.teams:
        raise InvalidInput(f"the roster already has a team {name!r}", hint=EDIT_BY_HAND)
    teams = read_document(text, source).fields()["teams"][1]
    known = {} if teams.is_null() else teams.fields()
    if teams.is_flow and (known or source.endswith(".json")):
        edited = _insert_in_flow(text, teams, known, name, fields)
    else:
        edited = _insert_in_block(text, teams, known, name, fields)
    return _checked(edited, before, source=source, added=name)


def without_team(text: str, name: str, *, source: str) -> str:
    """The text with a team removed. Raises UnknownTeam, InvalidConfig."""
    before = parse_roster(text, source=source)
    before.team(name)
    teams = read_document(text, source).fields()["teams"][1]
    known = teams.fields()
    names = list(known)
    index = names.index(name)
    key, value = known[name]
    if not teams.is_flow:
        following = known[names[index + 1]][0].span[0] if index + 1 < len(names) else value.span[1]
        begin, end = _line_start(text, key.span[0]), _content_end(text, following)
    elif index + 1 < len(names):
        begin, end = key.span[0], known[names[index + 1]][0].span[0]
    else:
        begin = known[names[index - 1]][1].span[1] if index else key.span[0]
        end = value.span[1]
    return _checked(text[:begin] + text[end:], before, source=source, removed=name)


def _insert_in_flow(
    text: str,
    teams: ConfigNode,
    known: dict[str, tuple[ConfigNode, ConfigNode]],
    name: str,
    fields: JsonObject,
) -> str:
    entry = f"{_json(name)}: {_json(fields)}"
    if not known:
        begin, end = teams.span
        return f"{text[:begin]}{{{entry}}}{text[end:]}"
    last = next(reversed(known.values()))[1].span[1]
    return f"{text[:last]}, {entry}{text[last:]}"


def _insert_in_block(
    text: str,
    teams: ConfigNode,
    known: dict[str, tuple[ConfigNode, ConfigNode]],
    name: str,
    fields: JsonObject,
) -> str:
    first = next(iter(known.values()))[0].span[0] if known else 0
    indent = " " * (first - _line_start(text, first)) if known else "  "
    # Every JSON scalar is also a YAML scalar, so no text is read as another type.
    lines = [
        f"{indent}{_json(name)}:",
        *(f"{indent}  {key}: {_json(value)}" for key, value in fields.items()),
    ]
    entry = "\n".join(lines) + "\n"
    if known:
        end = _content_end(text, next(reversed(known.values()))[1].span[1])
        return text[:end] + _newline(text[:end]) + entry + text[end:]
    begin, end = teams.span
    rest = text[end:].partition("\n")
    return f"{text[:begin].rstrip()}{rest[0]}\n{entry}{rest[2]}"


def _content_end(text: str, index: int) -> int:
    """The end of the last line before `index` that is neither empty nor a comment."""
    start = _line_start(text, index)
    end = start if not text[start:index].strip() else len(text[:index].rstrip(" "))
    while end > 0:
        line_start = _line_start(text, end - 1)
        line = text[line_start:end].strip()
        if line and not line.startswith("#"):
            return end
        end = line_start
    return end


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _newline(text: str) -> str:
    return "" if not text or text.endswith("\n") else "\n"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _checked(edited: str, before: Roster, *, source: str, added: str = "", removed: str = "") -> str:
    """The edited text, if it differs from the roster before in exactly this one team. Raises InvalidConfig."""
    after = parse_roster(edited, source=source)
    kept = {name: team for name, team in before.teams.items() if name != removed}
    others = {name: team for name, team in after.teams.items() if name != added}
    if kept != others or after.settings != before.settings or (added and added not in after.teams):
        raise InvalidConfig(f"{source}: its layout cannot be edited automatically", hint=EDIT_BY_HAND)
    return edited
