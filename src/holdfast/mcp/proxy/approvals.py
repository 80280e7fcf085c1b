"""Approvals by elicitation: an escalation is shown to the human at the client, if the person trusts that client.

With the legacy protocol the proxy asks while the call waits. The 2026-07 protocol has no request from server to client:
the proxy answers the call with a request for input and a sealed ticket, and the client repeats the call with both.
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
    SystemClock,
    Value,
)
from holdfast.core.approval_text import (
    describe_call_lines,
    describe_effect,
    describe_facts,
    describe_offers,
    describe_time_left,
    visible,
)
from holdfast.core.errors import EscalationUnknown
from holdfast.mcp.contract import GateClient, is_legacy

TRANSPORT = "mcp-elicitation"
MAX_SHOWN_CHARACTERS = 4000
_KEY = "approval"
_ONLY_THIS_CALL = "only this call"


class Ticket(Value):
    """The state of a repeated call: its id and its escalation. Sealed on the wire."""

    call: CallId
    escalation: EscalationId

    @classmethod
    def read(cls, state: str | None) -> "Ticket | None":
        """The ticket in an unsealed request state; None for a first request."""
        return msgspec.json.decode(state, type=cls) if state else None


class ElicitationApprovals:
    """Shows escalations to the human at a client. Only clients that the person trusts count."""

    def __init__(
        self, gate: GateClient, *, trusted_clients: frozenset[str], has_other_approvers: bool
    ) -> None:
        self._gate = gate
        self._trusted_clients = trusted_clients
        self._has_other_approvers = has_other_approvers

    async def ask(
        self, context: Context, call: Call, id: EscalationId
    ) -> mcp_types.InputRequiredResult | None:
        """Wait until the escalation is settled, or return the result that makes the client repeat the call."""
        escalation = self._gate.escalation(id)
        if escalation is None:
            return None
        if not self._is_trusted(context):
            await self.wait_for_other_approver(id)
            return None
        if not is_legacy(context.protocol_version):
            ticket = Ticket(call=call.id, escalation=id)
            request = mcp_types.ElicitRequest(
                params=mcp_types.ElicitRequestFormParams(
                    message=describe(escalation), requested_schema=_schema(escalation)
                )
            )
            state = msgspec.json.encode(ticket).decode()
            return mcp_types.InputRequiredResult(input_requests={_KEY: request}, request_state=state)
        await self._ask_directly(context, escalation)
        return None

    async def wait_for_other_approver(self, id: EscalationId) -> None:
        """Wait for an answer that does not come from this client. Without another approver, deny."""
        if not self._has_other_approvers:
            await self._resolve(id, Response(verdict="deny", reason="no approver is available"), EXTERNAL)
        async with self._deny_on_cancel(id):
            await self._gate.wait(id)

    async def accept_response(self, context: Context, ticket: Ticket, responses: dict[str, Any]) -> None:
        """Record the answer in a repeated call. Only an explicit approval from a trusted client approves."""
        given = responses.get(_KEY)
        if not self._is_trusted(context) or not isinstance(given, mcp_types.ElicitResult):
            await self._resolve(
                ticket.escalation, Response(verdict="deny", reason="no human answered"), EXTERNAL
            )
            return
        escalation = self._gate.escalation(ticket.escalation)
        if escalation is not None:  # otherwise another answer came first
            await self._resolve(escalation.id, _answer(given, escalation), PERSON)

    async def _ask_directly(self, context: Context, escalation: Escalation) -> None:
        """Ask while the call waits. The first answer counts, from this client or from another approver."""
        elicited = asyncio.ensure_future(
            context.session.elicit_form(
                describe(escalation), _schema(escalation), related_request_id=context.request_id
            )
        )
        settled = asyncio.ensure_future(self._gate.wait(escalation.id))
        try:
            async with self._deny_on_cancel(escalation.id):
                await asyncio.wait({elicited, settled}, return_when=asyncio.FIRST_COMPLETED)
                if not settled.done():
                    await self._resolve(escalation.id, *_response(elicited, escalation))
                    await settled
        finally:
            elicited.cancel()
            settled.cancel()
            await asyncio.gather(elicited, settled, return_exceptions=True)

    @asynccontextmanager
    async def _deny_on_cancel(self, id: EscalationId) -> AsyncIterator[None]:
        """Deny the escalation if the client cancels the call."""
        try:
            yield
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._resolve(
                    id, Response(verdict="deny", reason="the client cancelled the call"), EXTERNAL
                )
            raise

    async def _resolve(self, id: EscalationId, response: Response, principal: Principal) -> None:
        try:
            await self._gate.resolve(id, response, principal=principal, transport=TRANSPORT)
        except EscalationUnknown:
            return  # another answer came first and decides the call

    def _is_trusted(self, context: Context) -> bool:
        client, capabilities = context.session.client_params, context.session.client_capabilities
        can_ask = capabilities is not None and capabilities.elicitation is not None
        return can_ask and client is not None and client.client_info.name in self._trusted_clients


def describe(escalation: Escalation) -> str:
    """The text for the human, in the words of every approval."""
    # Cut before it is escaped, so that the cost does not grow with the arguments, and again after it, because escapes are longer.
    whole = "\n".join(f"  {line}" for line in describe_call_lines(escalation.call))
    shown = "\n".join(map(visible, whole[:MAX_SHOWN_CHARACTERS].split("\n")))
    if len(whole) > MAX_SHOWN_CHARACTERS or len(shown) > MAX_SHOWN_CHARACTERS:
        omitted = f"some of {len(whole):,} characters omitted: review them before you approve"
        shown = f"{shown[:MAX_SHOWN_CHARACTERS]}\n[... {omitted} ...]"
    facts = [*describe_facts(escalation), *describe_time_left(escalation, SystemClock().now_ms())]
    return "\n".join([describe_effect(escalation), shown, *facts])


def _schema(escalation: Escalation) -> dict[str, Any]:
    """The form: whether to approve, and what else to approve for the rest of the session."""
    approve = {"type": "boolean", "title": "Allow this one call", "default": False}
    offered = [_ONLY_THIS_CALL, *describe_offers(escalation)]
    covers = {
        "type": "string",
        "title": "In this session, allow without asking again",
        "enum": offered,
        "default": _ONLY_THIS_CALL,
    }
    properties = {"approve": approve} | ({"covers": covers} if escalation.offers else {})
    return {"type": "object", "properties": properties, "required": ["approve"]}


def _response(
    asked: "asyncio.Future[mcp_types.ElicitResult]", escalation: Escalation
) -> tuple[Response, Principal]:
    """The answer and its principal. The record names a person only if a human answered."""
    try:
        return _answer(asked.result(), escalation), PERSON
    except (MCPError, ValueError):
        return Response(verdict="deny", reason="the client could not show the question"), EXTERNAL


def _answer(given: mcp_types.ElicitResult, escalation: Escalation) -> Response:
    """Anything but an explicit approval of what was offered is a denial."""
    content = given.content or {}
    if given.action != "accept" or content.get("approve") is not True:
        return Response(verdict="deny")
    covers, offered = content.get("covers", _ONLY_THIS_CALL), describe_offers(escalation)
    if covers == _ONLY_THIS_CALL:
        return Response(verdict="approve")
    if covers not in offered:
        return Response(verdict="deny", reason="denied: the answer names an approval that was not offered")
    return Response(verdict="approve", scope="session", offer=offered.index(str(covers)) + 1)
