"""Control requests to a session that another process holds: durable files that the holder applies.

Only the holder may write the journal and run turns. Another process writes one file per request here, then signals the
holder through a folder that all sessions of a data directory share: one watch is enough for any number of sessions. Requests
that change only the journal (`RaiseBudget`, `RevokeGrant`) are applied before the next call or step even without the
signal, because the holder checks then, which costs one system call while there is nothing. The others act on the session as
a whole, so its process carries them out.
"""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core import (
    PERSON,
    EscalationId,
    GrantId,
    Limits,
    Principal,
    Response,
    SessionId,
    Value,
    encode,
    new_token,
)
from holdfast.core.errors import InvalidInput
from holdfast.core.events import BudgetRaised, GrantRevoked, Noted
from holdfast.gate.budget import Budget
from holdfast.store import Journal, private_folder, read_own, remove, replace_private
from holdfast.world import HunkDecision


class ControlRequest(Value, tag_field="do", forbid_unknown_fields=True):
    """A request to the process that holds a session."""

    transport: str = "command"
    """Where the request comes from."""
    principal: Principal = PERSON
    """Whose request it is."""


class RaiseBudget(ControlRequest, tag="raise-budget"):
    """Add to the limits of the session, of its current turn and of its tree."""

    added: Limits


class RevokeGrant(ControlRequest, tag="revoke-grant"):
    """Revoke a grant of the session."""

    grant: GrantId


class PostMessage(ControlRequest, tag="post-message"):
    """Send a message of a person to the agent."""

    text: str


class CancelTurn(ControlRequest, tag="cancel-turn"):
    """End the open turn."""


class CommitProposals(ControlRequest, tag="commit-proposals"):
    """Commit staged changes, if they are still those that the person saw."""

    shown: dict[str, str]
    """The digest of each proposal by its path."""


class DecideHunks(ControlRequest, tag="decide-hunks"):
    """Commit the hunks that the person accepted and drop the rejected ones, if the changes are still those that they saw."""

    decisions: tuple[HunkDecision, ...]


class RejectProposals(ControlRequest, tag="reject-proposals"):
    """Drop staged changes."""

    paths: tuple[str, ...]


class RewindSession(ControlRequest, tag="rewind-session"):
    """Rewind to the end of a turn, if the plan is still the one that the person saw; 0 is before the first turn."""

    turn: int
    shown: str = ""
    """The digest of the plan that was shown; empty if none was."""


class RevealOutput(ControlRequest, tag="reveal-output"):
    """Let the model read an output that it knows by name only."""

    output: str


class AnswerEscalation(ControlRequest, tag="answer-escalation"):
    """Approve or deny a call that waits, if it is still the one that the person saw."""

    escalation: EscalationId
    digest: str
    response: Response


class PreviewPort(ControlRequest, tag="preview-port"):
    """Open a port of the session's command sandbox to the person's browser. The result is the port of this machine."""

    port: int
    at: int = 0
    """The port of this machine; 0 for any."""


JournalRequest = RaiseBudget | RevokeGrant
SessionRequest = (
    PostMessage
    | CancelTurn
    | CommitProposals
    | DecideHunks
    | RejectProposals
    | RewindSession
    | RevealOutput
    | AnswerEscalation
    | PreviewPort
)
AnyControlRequest = JournalRequest | SessionRequest
Show = Callable[[JournalRequest], None]
"""Shows a request to the person at the process that holds the session."""
_DECODER: msgspec.json.Decoder[AnyControlRequest] = msgspec.json.Decoder(AnyControlRequest)


class ControlRequests:
    """The folder of a session's control requests. It exists only while there are requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._applying = asyncio.Lock()

    def put(self, request: AnyControlRequest) -> str:
        """Write a request and return its name; it is on disk when this returns."""
        name = f"{new_token()}.json"
        private_folder(self._folder.parent)
        while True:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                replace_private(self._folder / name, encode(request))
                return name
            except FileNotFoundError:
                continue  # the holder removed the empty folder at the same moment

    def withdraw(self, name: str) -> bool:
        """Take back a request that is not applied yet; False if it was applied."""
        is_there = name in self._names()
        remove(self._folder / name)
        return is_there

    def take(self) -> list[tuple[str, SessionRequest]]:
        """Remove and return the requests that act on the session as a whole, in the order of their names."""
        taken: list[tuple[str, SessionRequest]] = []
        for name in self._names():
            content = read_own(self._folder / name)
            request = decode_request(content) if content is not None else None
            if isinstance(request, SessionRequest):
                remove(self._folder / name)
                taken.append((name, request))
        with suppress(OSError):  # others are left
            self._folder.rmdir()
        return taken

    def count(self) -> int:
        """The number of requests that are not applied yet."""
        return len(self._names())

    async def apply(self, journal: Journal, budget: Budget, show: Show = lambda _: None) -> None:
        """Record each request once and remove its file."""
        async with self._applying:
            for name in self._names():
                content = read_own(self._folder / name)
                request = decode_request(content) if content is not None else None
                if isinstance(request, SessionRequest):
                    continue  # the session takes it
                if content is not None:
                    await apply_journal_request(name, request, journal, budget, show)
                remove(self._folder / name)
            with suppress(OSError):  # a new request arrived meanwhile
                self._folder.rmdir()

    def _names(self) -> list[str]:
        try:
            names = sorted(name for name in os.listdir(self._folder) if not name.startswith("."))
        except OSError:  # usually it does not exist; anything else in its place holds no requests
            return []
        # The target of a symlink is not ours to read or remove.
        return names if names and not self._folder.is_symlink() else []


async def apply_journal_request(
    name: str,
    request: JournalRequest | None,
    journal: Journal,
    budget: Budget,
    show: Show = lambda _: None,
) -> None:
    """Record a request under its name, once, and show it first; one that cannot be read is refused on record."""
    match request:
        case None:
            text = f"the control request {name} is not valid; nothing was changed"
            await journal.append(Noted(code="request-refused", text=text))
        case RaiseBudget() if name not in budget.applied_requests:
            show(request)
            raised = BudgetRaised(
                limits=budget.limits.raised(request.added),
                added=request.added,
                principal=request.principal,
                request=name,
            )
            await journal.append(raised)
            await budget.synchronize()
        case RaiseBudget():
            pass  # recorded by a process that died before it removed the request
        case RevokeGrant():
            show(request)
            await journal.append(GrantRevoked(grant=request.grant))


def decode_request(content: bytes) -> AnyControlRequest | None:
    """Read a request; None if it is not one of this version."""
    try:
        return _DECODER.decode(content)
    except (ValueError, InvalidInput, RecursionError):  # not JSON, or not UTF-8
        return None


def signal_holder(folder: Path, session: SessionId) -> None:
    """Tell the process that holds a session that there is a request for it."""
    private_folder(folder)
    signal = folder / session
    # Closing the file after writing is the signal. It is removed at once, so that the folder stays empty.
    signal.write_bytes(b"")
    signal.unlink(missing_ok=True)
