"""Coverage: the set of calls that a grant covers, as one value from which the match and the words are both derived.

A grant is only considered for a call that the policy would ask about, so no coverage overrides a deny or a protected path. An
argument whose meaning is unknown is never covered, and neither is one that could name a target but names none.
"""

import posixpath
from collections.abc import Sequence
from typing import Literal, assert_never

from holdfast.core.calls import Call
from holdfast.core.executed_files import runs_when
from holdfast.core.targets import CommandTarget, PathTarget, Target, UrlTarget
from holdfast.core.text import mark_lookalikes
from holdfast.core.tools import Role, Tool
from holdfast.core.values import Value, digest

AreaKind = Literal["path", "folder", "workspace", "host", "prefix", "same"]
"""One path, everything in a folder, everything in the workspace, everything at a host, commands that begin with the same words,
or exactly the same target."""
_DATA_ROLES: frozenset[Role] = frozenset(["none", "content"])
_CHANGING: frozenset[Role] = frozenset(["write-path", "delete-path"])


class Area(Value):
    """Targets that are covered: those of one argument, or of every argument if it has no name."""

    kind: AreaKind = "same"
    value: str = ""
    """The path, folder, host or text of the target, as it is shown. A folder ends without a slash."""
    roles: tuple[Role, ...] = ()
    argument: str = ""
    words: tuple[str, ...] = ()
    """The first words of a command, for the kind `prefix`."""
    digest: str = ""
    """The digest of the whole target, for the kind `same`. An area without one covers nothing."""


class ArgumentValue(Value):
    """An argument that names no target. Without a digest it may have any value."""

    argument: str = ""
    digest: str = ""
    shown: str = ""


class Coverage(Value):
    """A set of calls."""

    operation: str = ""
    """An operation, every operation of a group (`git.*`), or every operation (`*`)."""
    is_read_only: bool = False
    """Only operations that are declared read-only."""
    areas: tuple[Area, ...] = ()
    """Every target of a call must lie in one of these. A call without targets is not covered if there are any."""
    values: tuple[ArgumentValue, ...] = ()
    has_any_values: bool = False
    """Other arguments that are data may have any value."""
    rule: str = ""
    """If there is one: any program, with any arguments, as long as it is this rule that asks. See `Grants.find_covering`."""


class Offer(Value):
    """A coverage that a person can grant, and how many of the session's last calls it would have covered."""

    coverage: Coverage = Coverage()
    covered_calls: int = 0
    counted_calls: int = 0


def is_covered(coverage: Coverage, call: Call, tool: Tool, targets: Sequence[Target]) -> bool:
    """Whether a call of this tool, with these resolved targets, is in the set."""
    if coverage.rule:
        return _has_operation(coverage, call, tool) and all(
            isinstance(target, CommandTarget) for target in targets
        )
    return (
        _has_operation(coverage, call, tool)
        and bool(targets) == bool(coverage.areas)
        and all(any(_is_in(target, area) for area in coverage.areas) for target in targets)
        and _names(coverage.areas) <= {target.argument for target in targets}
        and _has_values(coverage, call, tool, {target.argument for target in targets})
    )


def _has_operation(coverage: Coverage, call: Call, tool: Tool) -> bool:
    if coverage.is_read_only and not tool.is_read_only:
        return False
    if coverage.operation == "*":
        return True
    group, _, verb = coverage.operation.rpartition(".")
    return call.operation == coverage.operation or (verb == "*" and tool.group == group)


def _names(areas: Sequence[Area]) -> set[str]:
    return {area.argument for area in areas if area.argument}


def _has_values(coverage: Coverage, call: Call, tool: Tool, targeted: set[str]) -> bool:
    """Whether every argument that names no target has a covered value, and none of the fixed ones is missing."""
    given = {each.argument: each for each in coverage.values}
    for name, value in call.arguments.items():
        if name in targeted:
            continue
        if name in given and given[name].digest:
            if digest(value) != given[name].digest:
                return False
        elif not ((name in given or coverage.has_any_values) and is_data(tool, name)):
            return False
    return all(each.argument in call.arguments for each in coverage.values if each.digest)


def is_data(tool: Tool, argument: str) -> bool:
    """Whether an argument is known to be data, which can never name a target."""
    roles = (tool.roles or {}).get(argument)
    if roles is None:
        return False
    return all(
        role in _DATA_ROLES for each in (roles.default, *(one.roles for one in roles.when)) for role in each
    )


def _is_in(target: Target, area: Area) -> bool:
    if target.role not in area.roles or area.argument not in ("", target.argument):
        return False
    match area.kind:
        case "path" | "folder" | "workspace":
            return isinstance(target, PathTarget) and _is_path_in(target, area)
        case "host":
            return isinstance(target, UrlTarget) and not target.problem and origin_of(target) == area.value
        case "prefix":
            return isinstance(target, CommandTarget) and _has_prefix(target, area.words)
        case "same":
            return digest(target) == area.digest
        case _:
            assert_never(area.kind)


def _is_path_in(target: PathTarget, area: Area) -> bool:
    location = target.location
    if location.problem or location.protected or not location.real:
        return False
    if area.kind == "path":
        return location.real == area.value
    # The right to change the files of a folder does not include what another program runs unasked.
    if target.role in _CHANGING and runs_when(location.real) is not None:
        return False
    if area.kind == "workspace":
        return location.inside is not None
    return location.real == area.value or location.real.startswith(f"{area.value}/")


def _has_prefix(target: CommandTarget, words: tuple[str, ...]) -> bool:
    return (
        not target.is_opaque
        and not target.sets_environment
        and not target.writes
        and bool(words)
        and target.words[: len(words)] == words
    )


def origin_of(target: UrlTarget) -> str:
    """Scheme, host and port; of a connection, which has no scheme, the host alone."""
    if target.role == "proxy-domain":
        return target.host
    return f"{target.scheme}://{target.host}{f':{target.port}' if target.port else ''}"


def folder_of(target: PathTarget) -> str:
    """The folder that a path lies in."""
    return posixpath.dirname(target.location.real)


def describe_coverage(coverage: Coverage) -> str:
    """The set in words. It contains nothing that they do not say, and letters that pass for others are marked."""
    if coverage.rule:
        return mark_lookalikes(f"{_describe_operation(coverage)} that rule {coverage.rule} asks about")
    areas: dict[str, list[str]] = {}
    for area in coverage.areas:
        name = f"{area.argument} " if area.argument else ""
        areas.setdefault(f"{name}{_describe_area(area)}", []).extend(area.roles)
    on = [f"{text} ({', '.join(dict.fromkeys(roles))})" for text, roles in areas.items()]
    held = [
        f"{each.argument}={each.shown}" if each.digest else f"any {each.argument}" for each in coverage.values
    ]
    held += ["any other arguments" if held else "any arguments"] if coverage.has_any_values else []
    parts = [f"on {', '.join(on)}"] * bool(on) + [f"with {', '.join(held)}"] * bool(held)
    return mark_lookalikes(" ".join([_describe_operation(coverage), *(parts or ["without arguments"])]))


def _describe_operation(coverage: Coverage) -> str:
    kind = "read-only calls" if coverage.is_read_only else "calls"
    if coverage.operation == "*":
        return f"all {kind}"
    group, _, verb = coverage.operation.rpartition(".")
    if verb == "*":
        return f"all {kind} of {group}"
    return coverage.operation


def _describe_area(area: Area) -> str:
    guarded = "" if _CHANGING.isdisjoint(area.roles) else " but no file that programs run"
    match area.kind:
        case "path" | "same":
            return area.value
        case "folder":
            return f"everything below {area.value}{guarded}"
        case "workspace":
            return f"everything in the workspace{guarded}"
        case "host":
            return f"everything at {area.value}"
        case "prefix":
            return f"commands that begin with `{area.value}`, without redirections into files"
        case _:
            assert_never(area.kind)
