"""Asking: an escalation put before the human at the client, where the person has said that there is one.

The older era asks while the call waits. The newer one has no way back to the client: the call is answered with a request
for input and a sealed ticket, and the client makes the call again with both.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types
import msgspec
from mcp.server.context import ServerRequestContext as Context
from mcp.shared.exceptions import MCPError

from holdfast.core import (
    EXTERNAL,
    PERSON,
    Call,
    CallId,
    Escalation,
    EscalationId,
    Principal,
    Response,
    Value,
    escape_invisible,
)
from holdfast.core.errors import EscalationUnknown
from holdfast.mcp.contract import GateClient

TRANSPORT = "mcp-elicitation"
MAX_SHOWN_CHARACTERS = 4000
_KEY = "approval"
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"approve": {"type": "boolean", "title": "Allow this one call", "default": False}},
    "required": ["approve"],
}


class Ticket(Value):
    """What comes back with a second round: which call it was, and what was asked. Sealed on the wire."""

    call: CallId
    escalation: EscalationId

    @classmethod
    def read(cls, state: str | None) -> "Ticket | None":
        """The ticket in a state that was unsealed before; None in a first round."""
        return msgspec.json.decode(state, type=cls) if state else None


class ElicitationApprovals:
    """Puts escalations before a client's human, and takes the answer only from clients that the person trusts."""

    def __init__(
        self, keeper: GateClient, *, trusted_clients: frozenset[str], can_ask_elsewhere: bool
    ) -> None:
        self._keeper = keeper
        self._trusted_clients = trusted_clients
        self._can_ask_elsewhere = can_ask_elsewhere

    async def ask(
        self, context: Context, call: Call, id: EscalationId
    ) -> mcp_types.InputRequiredResult | None:
        """Have the escalation settled; or the result that makes the client come again."""
        escalation = self._keeper.escalation(id)
        if escalation is None:
            return None
        if not self._is_trusted(context):
            await self.wait_elsewhere(id)
            return None
        if context.protocol_version >= "2026":
            ticket = Ticket(call=call.id, escalation=id)
            request = mcp_types.ElicitRequest(
                params=mcp_types.ElicitRequestFormParams(
                    message=describe(escalation), requested_schema=_SCHEMA
                )
            )
            state = msgspec.json.encode(ticket).decode()
            return mcp_types.InputRequiredResult(input_requests={_KEY: request}, request_state=state)
        await self._ask_directly(context, escalation)
        return None

    async def wait_elsewhere(self, id: EscalationId) -> None:
        """Have the escalation settled by others than this client; where there is nobody, that is a no."""
        if not self._can_ask_elsewhere:
            await self._answer(id, Response(verdict="deny", reason="nobody can be asked here"), EXTERNAL)
        async with self._withdrawing(id):
            await self._keeper.wait(id)

    async def take(self, context: Context, ticket: Ticket, responses: dict[str, Any]) -> None:
        """Take the answer that came with a second round. Anything but a clear yes of a trusted client is a no."""
        given = responses.get(_KEY)
        if not self._is_trusted(context) or not isinstance(given, mcp_types.ElicitResult):
            await self._answer(
                ticket.escalation, Response(verdict="deny", reason="no human answered"), EXTERNAL
            )
            return
        await self._answer(
            ticket.escalation, Response(verdict="approve" if _says_yes(given) else "deny"), PERSON
        )

    async def _ask_directly(self, context: Context, escalation: Escalation) -> None:
        """Ask while the call waits; whoever answers first, this human or another way, has answered."""
        here = asyncio.ensure_future(
            context.session.elicit_form(describe(escalation), _SCHEMA, related_request_id=context.request_id)
        )
        elsewhere = asyncio.ensure_future(self._keeper.wait(escalation.id))
        try:
            async with self._withdrawing(escalation.id):
                await asyncio.wait({here, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
                if not elsewhere.done():
                    await self._answer(escalation.id, *_response(here))
                    await elsewhere
        finally:
            here.cancel()
            elsewhere.cancel()
            await asyncio.gather(here, elsewhere, return_exceptions=True)

    @asynccontextmanager
    async def _withdrawing(self, id: EscalationId) -> AsyncIterator[None]:
        """Take the question back where the client gives the call up: nobody would hear the answer."""
        try:
            yield
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._answer(id, Response(verdict="deny", reason="the client gave it up"), EXTERNAL)
            raise

    async def _answer(self, id: EscalationId, response: Response, principal: Principal) -> None:
        try:
            await self._keeper.resolve(id, response, principal=principal, transport=TRANSPORT)
        except EscalationUnknown:
            return  # another answer came first, and the call is judged by that one

    def _is_trusted(self, context: Context) -> bool:
        client, capabilities = context.session.client_params, context.session.client_capabilities
        can_ask = capabilities is not None and capabilities.elicitation is not None
        return can_ask and client is not None and client.client_info.name in self._trusted_clients


def describe(escalation: Escalation) -> str:
    """What the human has to see, with nothing invisible in it."""
    arguments = msgspec.json.format(msgspec.json.encode(escalation.call.arguments), indent=2).decode()
    shown = escape_invisible(arguments)
    if len(shown) > MAX_SHOWN_CHARACTERS:
        left_out = len(shown) - MAX_SHOWN_CHARACTERS
        shown = f"{shown[:MAX_SHOWN_CHARACTERS]}\n[... {left_out} characters left out: look before you allow it ...]"
    decision = escalation.decision
    return f"{escape_invisible(escalation.call.operation)} needs your yes: {decision.reason} (rule {decision.rule})\n{shown}"


def _response(asked: "asyncio.Future[mcp_types.ElicitResult]") -> tuple[Response, Principal]:
    """The answer, and whose it is: where no human answered, the record does not say that one did."""
    try:
        return Response(verdict="approve" if _says_yes(asked.result()) else "deny"), PERSON
    except (MCPError, ValueError):
        return Response(verdict="deny", reason="the client could not ask"), EXTERNAL


def _says_yes(given: mcp_types.ElicitResult) -> bool:
    return given.action == "accept" and given.content is not None and given.content.get("approve") is True
