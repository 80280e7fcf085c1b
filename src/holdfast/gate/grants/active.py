"""Grants: saved approvals. A grant covers what the person was shown and nothing more, and it never overrides a deny.

A grant is described word for word before it is given and wherever it is listed.
"""

import posixpath
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from holdfast.core import (
    PERSON,
    Call,
    CallId,
    Clock,
    CommandTarget,
    Coverage,
    Escalation,
    FixedArgument,
    Grant,
    GrantId,
    PathTarget,
    Principal,
    Response,
    Target,
    Tool,
    UrlTarget,
    describe_coverage,
    digest,
    encode,
    is_covered,
    mark_lookalikes,
    new_token,
    pluralize,
)
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    GrantGiven,
    GrantRevoked,
    HostJudged,
    RecordedEvent,
    SessionOpened,
)
from holdfast.core.projection import EventSource, Projection
from holdfast.policy import Request

MAX_SHOWN_CHARACTERS = 120
"""Characters shown of a fixed value; the person also sees the whole call."""


_Handled = GrantGiven | GrantRevoked | SessionOpened | CallIntended | HostJudged


class GrantSource(Protocol):
    """The grants for every session, which other processes change."""

    async def refresh(self) -> None:
        """Look at what other processes saved and revoked."""
        ...

    def load_or_empty(self) -> Sequence[Grant]:
        """Every grant as of the last `refresh`."""
        ...


class Grants(Projection[_Handled]):
    """The active grants: this session's, from its journal, and the ones saved for every session."""

    def __init__(self, journal: EventSource, *, clock: Clock, saved: GrantSource | None = None) -> None:
        self._clock = clock
        self._saved = saved
        # Not part of `reset`: a rewind restores neither a revoked grant nor a used one.
        self._revoked: set[GrantId] = set()
        self._uses: dict[GrantId, set[int]] = {}
        self._pending_uses: dict[CallId, GrantId] = {}
        super().__init__(journal)

    def reset(self) -> None:
        self._grants: dict[GrantId, Grant] = {}

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case GrantGiven():
                # An "always" grant is read from the file of saved grants, so that revoking it there is enough.
                if event.grant.scope != "always" or self._saved is None:
                    self._grants[event.grant.id] = event.grant
            case GrantRevoked():
                self._revoked.add(event.grant)
            case SessionOpened():
                self._revoked.update(map(GrantId, event.taken_back))
            case HostJudged(grant=str() as used):
                self._uses.setdefault(GrantId(used), set()).add(entry.seq)
            case CallIntended(grant=str() as used):
                self._pending_uses.pop(event.call.id, None)
                self._uses.setdefault(GrantId(used), set()).add(entry.seq)

    def active(self, turn: int | None = None) -> tuple[Grant, ...]:
        """Every grant that can still cover a call, in the given turn or in any."""
        now_ms = self._clock.now_ms()
        saved = self._saved.load_or_empty() if self._saved is not None else ()
        return tuple(
            grant
            for grant in map(self._with_uses_left, (*saved, *self._grants.values()))
            if grant.id not in self._revoked
            and (grant.expires_ms is None or now_ms < grant.expires_ms)
            and (grant.uses_left is None or grant.uses_left > 0)
            and (turn is None or grant.turn is None or grant.turn == turn)
        )

    def _with_uses_left(self, grant: Grant) -> Grant:
        if grant.uses_left is None:
            return grant
        used = len(self._uses.get(grant.id, ())) + list(self._pending_uses.values()).count(grant.id)
        return msgspec.structs.replace(grant, uses_left=grant.uses_left - used)

    def reserve_use(self, grant: GrantId | None, call: CallId) -> None:
        """Count a use while its intent is being written, so that concurrent calls cannot share one."""
        if grant is not None:
            self._pending_uses[call] = grant

    def release_use(self, call: CallId) -> None:
        """Stop counting a use that came to nothing. A use whose intent is on disk still counts."""
        self._pending_uses.pop(call, None)

    async def find_covering(self, request: Request, *, rule: str = "") -> Grant | None:
        """A grant that covers this request, about which a rule asks, if there is one. Raises StoreUnavailable."""
        if self._saved is not None:
            await self._saved.refresh()
        call = request.call
        return next(
            (
                grant
                for grant in self.active(call.turn)
                if covers(grant, call, request.targets, tool=request.tool)
                and (grant.coverage is None or grant.coverage.rule in ("", rule))
            ),
            None,
        )


def grant_for(
    escalation: Escalation, response: Response, *, principal: Principal, now_ms: int
) -> Grant | None:
    """The grant that a response asks for.

    None for a plain approval or denial, for edited arguments, and for a URL that could not be resolved: no one can approve
    what it will lead to next time.
    """
    if response.verdict != "approve" or response.scope == "once" or response.arguments is not None:
        return None
    if _is_unresolved(escalation):
        return None
    return _grant(escalation, response, GrantId(new_token()), principal=principal, now_ms=now_ms)


def _grant(
    escalation: Escalation,
    response: Response,
    id: GrantId,
    *,
    principal: Principal,
    now_ms: int,
    digest_of: Callable[[object], str] = digest,
) -> Grant:
    amount = response.amount or 1
    coverage = _offered(escalation, response.offer)
    # Without a target, open content would approve everything this operation can do, so it is fixed.
    contents = escalation.contents if escalation.targets else ()
    return Grant(
        id=id,
        operation=escalation.call.operation,
        rule=escalation.decision.rule,
        targets=escalation.targets,
        reach=response.reach,
        fixed=_fixed(escalation.call, escalation.targets, contents, digest_of),
        contents=contents,
        coverage=coverage,
        scope=response.scope,
        given_by=principal,
        given_ms=now_ms,
        turn=escalation.call.turn if response.scope == "turn" else None,
        # The escalated call is the first use.
        uses_left=max(0, amount - 1) if response.scope == "times" else None,
        expires_ms=now_ms + amount * 60_000 if response.scope == "minutes" else None,
    )


def _offered(escalation: Escalation, number: int | None) -> Coverage | None:
    if number is None:
        return None
    check_offer(escalation, number)
    return escalation.offers[number - 1].coverage


def check_offer(escalation: Escalation, number: int) -> None:
    """Raise InvalidInput if a response names an offer that the person was not shown."""
    if not 1 <= number <= len(escalation.offers):
        raise InvalidInput(
            f"there is no offer {number} for this call",
            hint=f"choose one from 1 to {len(escalation.offers)}" if escalation.offers else "approve it once",
        )


def covers(grant: Grant, call: Call, targets: Sequence[Target], *, tool: Tool | None = None) -> bool:
    """Whether a call is within what the person approved: the same arguments, no more and no fewer."""
    if grant.coverage is not None:
        return tool is not None and is_covered(grant.coverage, call, tool, targets)
    return (
        grant.operation == call.operation
        and _target_arguments(targets) == _target_arguments(grant.targets)
        and all(any(_covers_target(target, given, grant) for given in grant.targets) for target in targets)
        and _digests(call, targets, grant.contents) == {each.argument: each.digest for each in grant.fixed}
    )


def _fixed(
    call: Call, targets: Sequence[Target], contents: Sequence[str], digest_of: Callable[[object], str]
) -> tuple[FixedArgument, ...]:
    values = _digests(call, targets, contents, digest_of)
    return tuple(
        FixedArgument(argument=name, digest=values[name], shown=_shown(call, name)) for name in sorted(values)
    )


def _digests(
    call: Call,
    targets: Sequence[Target],
    contents: Sequence[str],
    digest_of: Callable[[object], str] = digest,
) -> dict[str, str]:
    """Digests of the arguments that are neither targets nor content."""
    others = _target_arguments(targets) | set(contents)
    return {name: digest_of(value) for name, value in call.arguments.items() if name not in others}


def _target_arguments(targets: Sequence[Target]) -> set[str]:
    return {target.argument for target in targets}


def _shown(call: Call, name: str) -> str:
    text = encode(call.arguments[name]).decode()
    if call.large is not None and (ref := call.large.blobs.get(name)) is not None:
        return f"{text[:MAX_SHOWN_CHARACTERS]}... ({ref.size:,} bytes, exactly these)"
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    return f"{text[:MAX_SHOWN_CHARACTERS]}... ({len(text):,} characters, exactly these)"


def _covers_target(target: Target, given: Target, grant: Grant) -> bool:
    if (target.role, target.argument) != (given.role, given.argument):
        return False
    match target, given:
        case PathTarget(), PathTarget():
            if target.location.problem or not target.location.real:
                return False
            if target.location.real == given.location.real:
                return True
            return grant.reach == "folder" and _is_within(target.location.real, folder_of(given))
        case UrlTarget(), UrlTarget():
            if target.problem or not target.host:
                return False
            if grant.reach != "host":
                # The whole URL, query included: what a request asks for is also what it discloses.
                return (target.given, target.path, host_of(target)) == (
                    given.given,
                    given.path,
                    host_of(given),
                )
            return host_of(target) == host_of(given)
        case _:
            return target == given


def host_of(target: UrlTarget) -> str:
    """What a grant for a host covers: scheme, host and port."""
    return f"{target.scheme}://{target.host}{f':{target.port}' if target.port else ''}"


def folder_of(target: PathTarget) -> str:
    """The folder that a grant for a folder covers."""
    return posixpath.dirname(target.location.real)


def _is_within(path: str, folder: str) -> bool:
    return folder != "/" and path.startswith(f"{folder}/")


def describe_grant(grant: Grant) -> str:
    """The grant in words: what is allowed and for how long."""
    match grant.scope:
        case "turn":
            until = f"in turn {grant.turn}"
        case "times":
            until = pluralize(grant.uses_left or 0, "more time")
        case "minutes":
            until = f"for {((grant.expires_ms or 0) - grant.given_ms) / 60_000:g} minutes after it was given"
        case "session":
            until = "in this session"
        case "always":
            until = "in every session"
        case "once":
            until = "once"
    return f"{describe_rule(grant)}, {until}"


def describe_rule(grant: Grant) -> str:
    """What a grant covers, without its duration. It covers nothing that this does not say."""
    if grant.coverage is not None:
        return describe_coverage(grant.coverage)
    areas: dict[str, list[str]] = {}
    for target in grant.targets:
        areas.setdefault(f"{target.argument} {_area(target, grant)}", []).append(target.role)
    areas_text = [f"{area} ({', '.join(dict.fromkeys(roles))})" for area, roles in areas.items()]
    values = [f"{each.argument}={each.shown}" for each in grant.fixed]
    values += [f"any {argument}" for argument in grant.contents]
    parts = (["on " + ", ".join(areas_text)] if areas_text else []) + (
        ["with " + ", ".join(values)] if values else []
    )
    return mark_lookalikes(" ".join([grant.operation, *(parts or ["without arguments"])]))


def grant_description(escalation: Escalation) -> str:
    """What a grant for this escalation would cover, without its duration; empty if none can be given."""
    if _is_unresolved(escalation):
        return ""
    # Only for its words, which need neither an id nor digests: a list of what waits asks for them a thousand times.
    response = Response(verdict="approve", scope="always")
    grant = _grant(
        escalation,
        response,
        GrantId(""),
        principal=PERSON,
        now_ms=escalation.opened_ms,
        digest_of=lambda _: "",
    )
    return describe_rule(grant)


def _is_unresolved(escalation: Escalation) -> bool:
    """Whether it leads to a URL that could not be resolved: no one can approve what it will lead to next time."""
    return any(isinstance(each, UrlTarget) and each.problem is not None for each in escalation.targets)


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
        case CommandTarget():
            return target.text
        case _:
            return target.value
