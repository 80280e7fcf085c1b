"""Control requests to a session that another process holds: durable files that the holder applies before its next step.

Only the holder may write the journal. Another process that raises a limit or revokes a grant writes one file per request
here. The holder checks before it judges a call or asks a model, which costs one system call while there is nothing.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core import PERSON, GrantId, Limits, Principal, Value, encode, new_token
from holdfast.core.errors import InvalidInput
from holdfast.core.events import BudgetRaised, GrantRevoked, Noted
from holdfast.gate.budget import Budget
from holdfast.store import Journal, private_folder, read_own, remove, replace_private


class ControlRequest(Value, tag_field="do", forbid_unknown_fields=True):
    """A request to the process that holds a session."""


class RaiseBudget(ControlRequest, tag="raise-budget"):
    """Add to the limits of the session, of its current turn and of its tree."""

    added: Limits
    principal: Principal = PERSON


class RevokeGrant(ControlRequest, tag="revoke-grant"):
    """Revoke a grant of the session."""

    grant: GrantId


AnyControlRequest = RaiseBudget | RevokeGrant
_DECODER: msgspec.json.Decoder[AnyControlRequest] = msgspec.json.Decoder(AnyControlRequest)


class ControlRequests:
    """The folder of a session's control requests. It exists only while there are requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._applying = asyncio.Lock()

    def put(self, request: AnyControlRequest) -> None:
        """Write a request; it is on disk when this returns."""
        name = f"{new_token()}.json"
        private_folder(self._folder.parent)
        while True:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                replace_private(self._folder / name, encode(request))
                return
            except FileNotFoundError:
                continue  # the holder removed the empty folder at the same moment

    def count(self) -> int:
        """The number of requests that are not applied yet."""
        return len(self._names())

    async def apply(self, journal: Journal, budget: Budget) -> None:
        """Record each request once and remove its file."""
        async with self._applying:
            for name in self._names():
                content = read_own(self._folder / name)
                if content is not None:
                    await self._apply_one(name, content, journal, budget)
                remove(self._folder / name)
            with suppress(OSError):  # a new request arrived meanwhile
                self._folder.rmdir()

    async def _apply_one(self, name: str, content: bytes, journal: Journal, budget: Budget) -> None:
        try:
            request = _DECODER.decode(content)
        except (ValueError, InvalidInput, RecursionError):  # not JSON, or not UTF-8
            text = f"the control request {name} is not valid; nothing was changed"
            await journal.append(Noted(code="request-refused", text=text))
            return
        match request:
            case RaiseBudget() if name not in budget.applied_requests:
                raised = BudgetRaised(
                    limits=budget.limits.raised(request.added),
                    added=request.added,
                    principal=request.principal,
                    request=name,
                )
                await journal.append(raised)
            case RaiseBudget():
                pass  # recorded by a process that died before it removed the file
            case RevokeGrant():
                await journal.append(GrantRevoked(grant=request.grant))

    def _names(self) -> list[str]:
        try:
            names = sorted(name for name in os.listdir(self._folder) if not name.startswith("."))
        except OSError:  # usually it does not exist; anything else in its place holds no requests
            return []
        # The target of a symlink is not ours to read or remove.
        return names if names and not self._folder.is_symlink() else []
