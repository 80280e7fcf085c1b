"""A grant in words: the exact rule, as it is shown before it is given and listed afterwards."""

from holdfast.core import PERSON, Escalation, Grant, PathTarget, Response, Target, UrlTarget, counted
from holdfast.gate.grants import folder_of, grant_for, host_of


def describe_grant(grant: Grant) -> str:
    """The exact rule in words: what is allowed, and how long."""
    match grant.scope:
        case "turn":
            until = f"in turn {grant.turn}"
        case "times":
            until = counted(grant.uses_left or 0, "more time")
        case "minutes":
            until = (
                f"for {((grant.expires_ms or 0) - grant.given_ms) / 60_000:g} minutes from when it was given"
            )
        case "session":
            until = "in this session"
        case "always":
            until = "in every session"
        case "once":
            until = "once"
    return f"{describe_rule(grant)}, {until}"


def describe_rule(grant: Grant) -> str:
    """What a grant covers, however long. What this does not say, it does not cover."""
    areas: dict[str, list[str]] = {}
    for target in grant.targets:
        areas.setdefault(f"{target.argument} {_area(target, grant)}", []).append(target.role)
    on = [f"{area} ({', '.join(dict.fromkeys(roles))})" for area, roles in areas.items()]
    held = [f"{each.argument}={each.shown}" for each in grant.fixed]
    held += [f"any {argument}" for argument in grant.contents]
    said = (["on " + ", ".join(on)] if on else []) + (["with " + ", ".join(held)] if held else [])
    return " ".join([grant.operation, *(said or ["without arguments"])])


def standing_rule(escalation: Escalation) -> str:
    """What a standing yes to this very question would cover, however long; empty where none can be given."""
    response = Response(verdict="approve", scope="always")
    grant = grant_for(escalation, response, principal=PERSON, now_ms=escalation.opened_ms)
    return describe_rule(grant) if grant is not None else ""


def _area(target: Target, grant: Grant) -> str:
    match target:
        case PathTarget():
            if grant.reach == "folder" and folder_of(target) != "/":
                return f"everything in {folder_of(target)}"
            return target.location.real
        case UrlTarget():
            if grant.reach == "host":
                return f"everything at {host_of(target)}"
            _, mark, query = target.given.partition("?")
            return f"{host_of(target)}{target.path}{mark}{query}"
        case _:
            return target.value
