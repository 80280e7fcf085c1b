"""Requests to a session that another process holds: as files, durable, and heeded by whoever holds it before its next step.

Only the holder may write a journal. So a limit that is raised and a grant that is taken back from elsewhere are put here,
one file each; the holder looks before it judges a call or asks a model, which costs one system call while nothing is here.
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
    """Something asked of the holder of a session."""


class RaiseBudget(ControlRequest, tag="raise-budget"):
    """Put this on top of the limits of the session, of its turn at hand and of its tree."""

    added: Limits
    principal: Principal = PERSON


class RevokeGrant(ControlRequest, tag="revoke-grant"):
    """Take a standing yes of the session back."""

    grant: GrantId


AnyControlRequest = RaiseBudget | RevokeGrant
_DECODER: msgspec.json.Decoder[AnyControlRequest] = msgspec.json.Decoder(AnyControlRequest)


class ControlRequests:
    """The folder of a session's requests. It is there only while a request is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._applying = asyncio.Lock()

    def put(self, request: AnyControlRequest) -> None:
        """Ask for something; on disk when it returns."""
        name = f"{new_token()}.json"
        private_folder(self._folder.parent)
        while True:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            try:
                replace_private(self._folder / name, encode(request))
                return
            except FileNotFoundError:
                continue  # the holder found it empty and took it away in the same moment

    def count(self) -> int:
        """How many requests nobody has heeded yet."""
        return len(self._names())

    async def apply(self, journal: Journal, budget: Budget) -> None:
        """Put what was asked for on the record, each once, and take the requests away."""
        async with self._applying:
            for name in self._names():
                content = read_own(self._folder / name)
                if content is not None:
                    await self._apply_one(name, content, journal, budget)
                remove(self._folder / name)
            with suppress(OSError):  # something came meanwhile
                self._folder.rmdir()

    async def _apply_one(self, name: str, content: bytes, journal: Journal, budget: Budget) -> None:
        try:
            request = _DECODER.decode(content)
        except (ValueError, InvalidInput, RecursionError):  # no JSON, or no UTF-8 in it
            text = f"a request from elsewhere ({name}) could not be understood, and nothing was done"
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
                pass  # whoever put it on record died before it took the file away
            case RevokeGrant():
                await journal.append(GrantRevoked(grant=request.grant))

    def _names(self) -> list[str]:
        try:
            names = sorted(name for name in os.listdir(self._folder) if not name.startswith("."))
        except OSError:  # not there, as a rule; whatever else stands in its place holds no requests
            return []
        # What a link leads to is not ours to read and to take away.
        return names if names and not self._folder.is_symlink() else []
