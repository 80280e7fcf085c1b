"""Approval by files: a request appears in a folder, and whoever may write there answers with a response beside it.

    request-{id}.json    {escalationId, serverName, toolName, arguments, reason, digest, rule, expiresAt, scopes,
                          standing}
    response-{id}.json   {decision: "approved" | "denied", digest?, scope?, amount?, reason?}

Both are written beside and renamed into place. Anything that is not a clear yes is a no. The folder is watched only while
something waits, so a session at rest costs nothing.

The other side of approval by files: another program waits in a folder, and a person answers it from here.

Only what that format has is read and written: {escalationId, serverName, toolName, arguments, reason} and {decision}.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from holdfast.core import PERSON, Escalation, EscalationId, JsonObject, Response, Scope, Value, encode
from holdfast.core.errors import EscalationUnknown
from holdfast.core.events import EscalationAnswered, EscalationExpired, EscalationOpened, Noted, RecordedEvent
from holdfast.gate.file_watch import Watch
from holdfast.gate.gate import Gate
from holdfast.gate.grants import grant_description
from holdfast.store import Journal, read_own, remove, replace_private

SCOPES: tuple[Scope, ...] = ("once", "turn", "times", "minutes", "session")
"""What may be answered by file; `always` is given only where its rule was shown."""

MAX_AMOUNT = 1_000_000
"""Of times or minutes: nearly two years of minutes."""


class _Request(Value, rename="camel"):
    escalation_id: EscalationId
    server_name: str
    tool_name: str
    arguments: JsonObject
    reason: str
    digest: str
    rule: str
    expires_at: int
    scopes: tuple[Scope, ...]
    standing: str
    """What a yes for longer than once would cover, word for word."""


class _Answer(Value, forbid_unknown_fields=True):
    decision: Literal["approved", "denied"]
    digest: str | None = None
    scope: Scope = "once"
    amount: Annotated[int, msgspec.Meta(ge=1, le=MAX_AMOUNT)] | None = None
    reason: str | None = None


class ApprovalFiles:
    """One session's folder of requests and responses."""

    transport = "file"

    def __init__(self, folder: Path, *, gate: Gate, journal: Journal) -> None:
        self._folder = folder
        self._gate = gate
        self._journal = journal
        self._watching: asyncio.Task[None] | None = None
        self._is_live = False

    async def open(self) -> None:
        """Sweep what a dead process left, put out what waits now, and listen."""
        if self._folder.is_symlink():
            remove(self._folder)  # what it leads to is not ours to sweep
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        waiting = {escalation.id for escalation in self._gate.escalations.waiting()}
        for path in sorted(self._folder.iterdir()):
            kind, id = _parse(path.name)
            if kind != "response" or id not in waiting:
                remove(path)
        self._is_live = True
        self._journal.follow(self._hear)
        for escalation in self._gate.escalations.waiting():
            self._put_out(escalation)

    async def close(self) -> None:
        """Stop listening and take the requests away; what waits goes on waiting in the journal. Idempotent."""
        self._is_live = False
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
            self._watching = None
        if self._folder.is_dir():
            for path in self._folder.glob("request-*.json"):
                remove(path)

    def _hear(self, entry: RecordedEvent) -> None:
        if not self._is_live:
            return
        match event := entry.event:
            case EscalationOpened() if event.escalation in self._gate.escalations.waiting():
                self._put_out(event.escalation)
            case EscalationAnswered() | EscalationExpired():
                remove(self._path("request", event.escalation))
                remove(self._path("response", event.escalation))
            case _:
                pass

    def _put_out(self, escalation: Escalation) -> None:
        group, _, verb = escalation.call.operation.partition(".")
        request = _Request(
            escalation_id=escalation.id,
            server_name=group,
            tool_name=verb or group,
            arguments=escalation.call.arguments,
            reason=escalation.decision.reason,
            digest=escalation.digest,
            rule=escalation.decision.rule,
            expires_at=escalation.expires_ms,
            scopes=_scopes(escalation),
            standing=grant_description(escalation),
        )
        if self._watching is None or self._watching.done():
            # The watch stands before the request does, so no answer can come unheard.
            watch = Watch(self._folder)
            self._watching = asyncio.ensure_future(self._listen(watch))
        replace_private(self._path("request", escalation.id), msgspec.json.format(encode(request), indent=2))

    async def _listen(self, watch: Watch) -> None:
        try:
            await self._take_all()  # answered while nobody listened
            while self._gate.escalations.waiting():
                name = await watch.name()
                if name is None:
                    await self._take_all()  # more happened than the kernel could tell
                    continue
                kind, id = _parse(name)
                if kind == "response" and id is not None:
                    await self._take(id)
        finally:
            watch.close()

    async def _take_all(self) -> None:
        for escalation in self._gate.escalations.waiting():
            await self._take(escalation.id)

    async def _take(self, id: EscalationId) -> None:
        path = self._path("response", id)
        content = read_own(path)
        if content is None:
            return
        remove(path)
        escalation = next((each for each in self._gate.escalations.waiting() if each.id == id), None)
        if escalation is None:
            await self._journal.append(
                Noted(code="late-answer", text=f"the answer to {id} by file came late")
            )
            return
        response = _response(content, escalation)
        try:
            await self._gate.resolve(id, response, principal=PERSON, transport=self.transport)
        except EscalationUnknown:
            await self._journal.append(
                Noted(code="late-answer", text=f"the answer to {id} by file came late")
            )

    def _path(self, kind: str, id: EscalationId) -> Path:
        return self._folder / f"{kind}-{id}.json"


def _response(content: bytes, escalation: Escalation) -> Response:
    try:
        json.loads(content, object_pairs_hook=_each_once)
        answer = msgspec.json.decode(content, type=_Answer)
    except (ValueError, RecursionError):  # no JSON, no UTF-8 in it, or not clear
        return Response(verdict="deny", reason="the response file could not be understood, which is a no")
    if answer.digest is not None and answer.digest != escalation.digest:
        return Response(verdict="deny", reason="the response was for another call, which is a no")
    if answer.scope not in _scopes(escalation) or (
        answer.scope in ("times", "minutes") and answer.amount is None
    ):
        return Response(
            verdict="deny", reason="the response asked for a scope that was not offered, which is a no"
        )
    return Response(
        verdict="approve" if answer.decision == "approved" else "deny",
        scope=answer.scope,
        amount=answer.amount,
        reason=answer.reason,
    )


def _each_once(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice: which one counts is for each reader to guess")


def _scopes(escalation: Escalation) -> tuple[Scope, ...]:
    return SCOPES if grant_description(escalation) else ("once",)


def _parse(name: str) -> tuple[str, EscalationId | None]:
    kind, dash, rest = name.partition("-")
    if kind in ("request", "response") and dash and rest.endswith(".json") and rest[:-5].isalnum():
        return kind, EscalationId(rest[:-5])
    return "", None


_NAME = re.compile(r"request-([A-Za-z0-9-]{1,64})\.json")


class ExternalRequest(Value, rename="camel"):
    """A call of another program that waits for a person."""

    escalation_id: EscalationId
    server_name: str
    tool_name: str
    arguments: JsonObject
    reason: str


def requests_in(folder: Path) -> list[ExternalRequest]:
    """Every request in a folder that can be read and is what its name says, oldest name first."""
    found = []
    for path in sorted(folder.glob("request-*.json")):
        name = _NAME.fullmatch(path.name)
        content = read_own(path) if name is not None else None
        if name is None or not content:
            continue
        try:
            request = msgspec.json.decode(content, type=ExternalRequest)
        except (ValueError, RecursionError):  # no JSON, or no UTF-8 in it
            continue
        if request.escalation_id == name[1]:
            found.append(request)
    return found


def answer_foreign(folder: Path, request: ExternalRequest, *, is_approved: bool) -> None:
    """Answer a request. Raises EscalationUnknown where it no longer waits."""
    if request not in requests_in(folder):
        raise EscalationUnknown(f"{request.escalation_id!r} no longer waits there, or it was changed")
    decision = "approved" if is_approved else "denied"
    replace_private(folder / f"response-{request.escalation_id}.json", encode({"decision": decision}))
