"""A second, naive reading of a coverage, written from the words of a grant. It shares no code with the matcher."""

import json

from holdfast.core import (
    Area,
    Call,
    CommandTarget,
    Coverage,
    PathTarget,
    Target,
    Tool,
    UrlTarget,
    digest,
    runs_when,
)


def naive_match(coverage: Coverage, call: Call, tool: Tool, targets: tuple[Target, ...]) -> bool:
    if coverage.operation not in ("*", call.operation, call.operation.split(".")[0] + ".*"):
        return False
    if coverage.is_read_only and not tool.is_read_only:
        return False
    if (len(targets) > 0) != (len(coverage.areas) > 0):
        return False
    for target in targets:
        if not [area for area in coverage.areas if naive_area(area, target)]:
            return False
    targeted = [target.argument for target in targets]
    for area in coverage.areas:
        if area.argument and area.argument not in targeted:
            return False
    for name in call.arguments:
        if name in targeted:
            continue
        fixed = [each for each in coverage.values if each.argument == name and each.digest]
        is_open = coverage.has_any_values or name in [each.argument for each in coverage.values]
        known = json.dumps([str(tool.roles[name])]) if tool.roles and name in tool.roles else "-path"
        is_plain = "('none',)" in known or "('content',)" in known
        if fixed and fixed[0].digest != digest(call.arguments[name]):
            return False
        if not fixed and not (is_open and is_plain):
            return False
    return {each.argument for each in coverage.values if each.digest} <= set(call.arguments)


def naive_area(area: Area, target: Target) -> bool:
    if target.role not in area.roles or (area.argument and area.argument != target.argument):
        return False
    if isinstance(target, PathTarget) and area.kind in ("path", "folder", "workspace"):
        where = target.location
        if where.problem or where.protected:
            return False
        if area.kind == "path":
            return where.real == area.value
        if target.role in ("write-path", "delete-path") and runs_when(where.real):
            return False
        return (
            where.inside is not None
            if area.kind == "workspace"
            else (where.real + "/").startswith(area.value + "/")
        )
    if isinstance(target, UrlTarget) and area.kind == "host":
        if target.role == "proxy-domain":
            return target.host == area.value
        return (
            target.scheme + "://" + target.host + (f":{target.port}" if target.port else "")
        ) == area.value
    if isinstance(target, CommandTarget) and area.kind == "prefix":
        is_plain = not (target.is_opaque or target.writes or target.sets_environment)
        return is_plain and list(target.words[: len(area.words)]) == list(area.words)
    return area.kind == "same" and digest(target) == area.digest
