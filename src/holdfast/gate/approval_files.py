"""Approval by files: requests are files in a folder, and any program that may write there answers with a response file.

    request-{id}.json    {escalationId, serverName, toolName, arguments, reason, digest, rule, expiresAt, scopes,
                          standing, offers, question, effect, facts}
    response-{id}.json   {decision: "approved" | "denied", digest?, scope?, amount?, offer?,
                          reason?, answer?}

`ApprovalFiles` writes the requests of our session and reads the responses. Files are renamed into place. Anything that is
not a clear approval is a denial. The folder is watched only while an escalation is open, so an idle session costs nothing.

`list_external_requests` and `answer_external` are the other side: another program waits in a folder and a person answers
it from here. They use only the fields of its format: {escalationId, serverName, toolName, arguments, reason} and
{decision}, and {reason} if the person gave one. The first response counts; a second one is refused.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from holdfast.core import (
    PERSON,
    Escalation,
    EscalationId,
    JsonObject,
    Response,
    Scope,
    Value,
    describe_coverage,
    encode,
    is_question,
)
from holdfast.core.approval_text import describe_effect, describe_facts
from holdfast.core.errors import EscalationUnknown
from holdfast.core.events import EscalationAnswered, EscalationExpired, EscalationOpened, Noted, RecordedEvent
from holdfast.gate.gate import Gate
from holdfast.gate.grants import grant_description
from holdfast.store import FileWatch, Journal, create_private, read_own, remove, replace_private

SCOPES: tuple[Scope, ...] = ("once", "turn", "times", "minutes", "session")
"""Scopes that a file may ask for; `always` is given only where its rule is shown."""

MAX_AMOUNT = 1_000_000
"""Maximum number of times or minutes: nearly two years of minutes."""


MAX_LATE_NOTES = 20
"""Late answers that are noted in the journal, per process."""


class _Offer(Value):
    offer: int = 0
    covers: str = ""
    calls: int = 0
    """How many of the session's last calls it would have covered."""


class _Request(Value, rename="camel"):
    escalation_id: EscalationId
    server_name: str
    tool_name: str
    arguments: JsonObject
    reason: str
    digest: str
    rule: str
    expires_at: int | None
    scopes: tuple[Scope, ...]
    standing: str
    """What an approval for longer than once would cover, word for word."""
    offers: tuple[_Offer, ...] = ()
    """What an approval for longer than once can cover, narrowest first. Without an `offer` it covers `standing`."""
    question: str = ""
    """What the agent asks, if it asks a question instead of requesting a call. The response has the `answer`."""
    effect: str = ""
    """What would happen, in the words of every approval."""
    facts: tuple[str, ...] = ()
    """Why the call asks, where its values come from, and whether it can be undone."""


class _Answer(Value, forbid_unknown_fields=True):
    decision: Literal["approved", "denied"]
    digest: str | None = None
    scope: Scope = "once"
    amount: Annotated[int, msgspec.Meta(ge=1, le=MAX_AMOUNT)] | None = None
    reason: str | None = None
    offer: int | None = None
    answer: str | None = None
    """The text that answers a question."""
    arguments: JsonObject | None = None
    """The arguments as the person edited them; the policy judges them again."""
    transport: Literal["file", "web"] = "file"
    """Where the person answered, for the record."""


class ApprovalFiles:
    """One session's folder of requests and responses."""

    transport = "file"

    def __init__(self, folder: Path, *, gate: Gate, journal: Journal) -> None:
        self._folder = folder
        self._gate = gate
        self._journal = journal
        self._watch_task: asyncio.Task[None] | None = None
        self._is_live = False
        self._late_notes = 0

    async def open(self) -> None:
        """Remove leftover files of a dead process, write a request for each open escalation, and watch for responses."""
        if self._folder.is_symlink():
            remove(self._folder)  # its target does not belong to us
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        waiting = {escalation.id for escalation in self._gate.escalations.waiting()}
        for path in sorted(self._folder.iterdir()):
            kind, id = _parse_name(path.name)
            if kind != "response" or id not in waiting:
                remove(path)
        self._is_live = True
        self._journal.follow(self._on_event)
        for escalation in self._gate.escalations.waiting():
            self._write_request(escalation)

    async def close(self) -> None:
        """Stop watching and remove the requests. Escalations stay open in the journal. Idempotent."""
        self._is_live = False
        if self._watch_task is not None:
            self._watch_task.cancel()
            await asyncio.gather(self._watch_task, return_exceptions=True)
            self._watch_task = None
        if self._folder.is_dir():
            for path in self._folder.glob("request-*.json"):
                remove(path)

    def _on_event(self, entry: RecordedEvent) -> None:
        if not self._is_live:
            return
        match event := entry.event:
            case EscalationOpened() if event.escalation in self._gate.escalations.waiting():
                self._write_request(event.escalation)
            case EscalationAnswered() | EscalationExpired():
                remove(self._path("request", event.escalation))
                remove(self._path("response", event.escalation))
            case _:
                pass

    def _write_request(self, escalation: Escalation) -> None:
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
            scopes=SCOPES if grant_description(escalation) else ("once",),
            standing=grant_description(escalation),
            offers=tuple(
                _Offer(offer=number, covers=describe_coverage(each.coverage), calls=each.covered_calls)
                for number, each in enumerate(escalation.offers, 1)
            ),
            question=str(escalation.call.arguments.get("question", "")) if is_question(escalation) else "",
            effect=describe_effect(escalation),
            facts=tuple(describe_facts(escalation)),
        )
        if self._watch_task is None or self._watch_task.done():
            # Watch before writing the request, so that no response is missed.
            watch = FileWatch(self._folder)
            self._watch_task = asyncio.ensure_future(self._watch_responses(watch))
        replace_private(self._path("request", escalation.id), msgspec.json.format(encode(request), indent=2))

    async def _watch_responses(self, watch: FileWatch) -> None:
        try:
            await self._process_responses()  # answered before the watch started
            while self._gate.escalations.waiting():
                name = await watch.next_name()
                if name is None:
                    await self._process_responses()  # the kernel's queue overflowed
                    continue
                kind, id = _parse_name(name)
                if kind == "response" and id is not None:
                    await self._process_response(id)
        finally:
            watch.close()

    async def _process_responses(self) -> None:
        for escalation in self._gate.escalations.waiting():
            await self._process_response(escalation.id)

    async def _process_response(self, id: EscalationId) -> None:
        path = self._path("response", id)
        escalation = next((each for each in self._gate.escalations.waiting() if each.id == id), None)
        if escalation is None:
            remove(path)
            await self._note_late(id)
            return
        content = read_own(path)
        if content is None:
            return
        remove(path)
        response, transport = _response(content, escalation)
        try:
            await self._gate.resolve(id, response, principal=PERSON, transport=transport)
        except EscalationUnknown:
            await self._note_late(id)

    async def _note_late(self, id: EscalationId) -> None:
        """Note an answer that comes too late. Any number of stray files must not delay an answer, or fill the journal."""
        self._late_notes += 1
        if self._late_notes <= MAX_LATE_NOTES:
            await self._journal.append(
                Noted(code="late-answer", text=f"the answer to {id} by file is too late")
            )

    def _path(self, kind: str, id: EscalationId) -> Path:
        return self._folder / f"{kind}-{id}.json"


def _response(content: bytes, escalation: Escalation) -> tuple[Response, str]:
    """The response in a file, and its transport. Anything that is not a clear approval is a denial."""
    try:
        json.loads(content, object_pairs_hook=_reject_duplicate_keys)
        answer = msgspec.json.decode(content, type=_Answer)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, or ambiguous
        return Response(verdict="deny", reason="denied: the response file is not valid"), "file"
    return _checked(answer, escalation), answer.transport


def _checked(answer: _Answer, escalation: Escalation) -> Response:
    if answer.digest is not None and answer.digest != escalation.digest:
        return Response(verdict="deny", reason="denied: the response names the digest of another call")
    if answer.scope not in _offered_scopes(escalation, answer) or (
        answer.scope in ("times", "minutes") and answer.amount is None
    ):
        return Response(verdict="deny", reason="denied: the response asks for a scope that was not offered")
    if answer.offer is not None and not 1 <= answer.offer <= len(escalation.offers):
        return Response(verdict="deny", reason="denied: the response names an offer that was not made")
    if is_question(escalation) and answer.decision == "approved":
        text = answer.answer or answer.reason
        if not text or not text.strip():
            return Response(verdict="deny", reason="denied: the response to a question has no answer")
        return Response(verdict="approve", reason=text)
    if answer.arguments is not None and (answer.scope != "once" or answer.decision != "approved"):
        return Response(verdict="deny", reason="denied: an edited call can only be approved once")
    return Response(
        verdict="approve" if answer.decision == "approved" else "deny",
        scope=answer.scope,
        arguments=answer.arguments,
        amount=answer.amount,
        offer=answer.offer,
        reason=answer.reason,
    )


def _reject_duplicate_keys(pairs: list[tuple[str, object]]) -> None:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key appears twice, so readers could disagree on its value")


def _offered_scopes(escalation: Escalation, answer: _Answer) -> tuple[Scope, ...]:
    if not grant_description(escalation):
        return ("once",)
    # For always only by an offer on our page, which shows what it covers and what it would have covered before.
    is_shown = answer.transport == "web" and answer.offer is not None
    return (*SCOPES, "always") if is_shown else SCOPES


def _parse_name(name: str) -> tuple[str, EscalationId | None]:
    kind, dash, rest = name.partition("-")
    if kind in ("request", "response") and dash and rest.endswith(".json") and rest[:-5].isalnum():
        return kind, EscalationId(rest[:-5])
    return "", None


_EXTERNAL_NAME = re.compile(r"request-([A-Za-z0-9-]{1,64})\.json")


class ExternalRequest(Value, rename="camel"):
    """A call of another program that waits for approval."""

    escalation_id: EscalationId
    server_name: str
    tool_name: str
    arguments: JsonObject
    reason: str


def list_external_requests(folder: Path) -> list[ExternalRequest]:
    """Every readable request in a folder whose content matches its name, ordered by name."""
    read = (_external_request(path) for path in sorted(folder.glob("request-*.json")))
    return [request for request in read if request is not None]


def _external_request(path: Path) -> ExternalRequest | None:
    name = _EXTERNAL_NAME.fullmatch(path.name)
    content = read_own(path) if name is not None else None
    if name is None or not content:
        return None
    try:
        request = msgspec.json.decode(content, type=ExternalRequest)
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        return None
    return request if request.escalation_id == name[1] else None


def answer_external(
    folder: Path, request: ExternalRequest, *, is_approved: bool, reason: str | None = None
) -> None:
    """Answer a request. Raises EscalationUnknown if it is not waiting any more, or was answered before."""
    if _external_request(folder / f"request-{request.escalation_id}.json") != request:
        raise EscalationUnknown(
            f"{request.escalation_id!r} is not waiting in {str(folder)!r} any more, or it was changed"
        )
    decision = "approved" if is_approved else "denied"
    content = {"decision": decision} | ({"reason": reason} if reason else {})
    write_first_answer(folder, request.escalation_id, encode(content))


def write_first_answer(folder: Path, id: EscalationId, content: bytes) -> None:
    """Write the response to a request, unless there is one already. Raises EscalationUnknown."""
    try:
        create_private(folder / f"response-{id}.json", content)
    except FileExistsError:
        raise EscalationUnknown(
            f"{id!r} was already answered, and the first answer counts",
            hint="the waiting program has not read it yet",
        ) from None
