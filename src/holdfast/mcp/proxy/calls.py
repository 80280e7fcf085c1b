"""The calls of the proxy's clients: each is submitted to the gate until it is settled. There is no other way to a server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import mcp_types
from mcp.server.context import ServerRequestContext as Context

from holdfast.core import EXTERNAL, Answer, Call, CallId, JsonObject, Parked
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.contract import GateClient, Progressed
from holdfast.mcp.proxy.approvals import ElicitationApprovals, Ticket
from holdfast.mcp.proxy.catalog import ResourceCatalog
from holdfast.mcp.proxy.subscribers import SendQueue, Subscribers


class ProgressRelay:
    """Relays the progress of running calls to the clients that made them."""

    def __init__(self) -> None:
        self._queues: dict[CallId, SendQueue[Progressed]] = {}

    def put(self, progress: Progressed) -> None:
        """Queue a progress report. Reports of finished calls are dropped."""
        queue = self._queues.get(progress.call)
        if queue is not None:
            queue.put(progress)

    @asynccontextmanager
    async def relay(self, context: Context, call: CallId) -> AsyncIterator[None]:
        """Send the progress of a call to its client while the block runs."""

        async def send(progress: Progressed) -> None:
            await context.session.report_progress(progress.progress, progress.total, progress.message or None)

        queue = self._queues[call] = SendQueue(send)
        try:
            yield
            await queue.drain()
        finally:
            del self._queues[call]
            queue.close()


class CallHandler:
    """Submits calls to the gate until they are settled."""

    def __init__(
        self,
        gate: GateClient,
        *,
        approvals: ElicitationApprovals,
        catalog: ResourceCatalog,
        subscribers: Subscribers,
        servers: Mapping[str, McpToolset],
    ) -> None:
        self._gate = gate
        self._approvals = approvals
        self._catalog = catalog
        self._subscribers = subscribers
        self._servers = servers
        self.progress = ProgressRelay()

    async def handle(
        self,
        context: Context,
        operation: str,
        arguments: JsonObject,
        params: mcp_types.InputResponseRequestParams,
    ) -> Answer | mcp_types.InputRequiredResult:
        """Submit a call until it is settled, or return the request for an approval that the client must show."""
        await self._catalog.ensure_started()
        ticket = Ticket.read(params.request_state)
        call = await self._make_call(operation, arguments, ticket)
        if ticket is not None:
            await self._approvals.accept_response(context, ticket, params.input_responses or {})
        server = operation.partition(".")[0]
        with self._subscribers.log_stream(context, server) as level:
            if level is not None and server in self._servers:
                await self._servers[server].request_logs(level)
            async with self.progress.relay(context, call.id):
                answer = await self._gate.submit(call)
                while isinstance(answer, Parked):
                    input_required = await self._approvals.ask(context, call, answer.escalation)
                    if input_required is not None:
                        return input_required
                    answer = await self._gate.submit(call)
        return answer

    async def handle_without_elicitation(self, operation: str, arguments: JsonObject) -> Answer:
        """Submit a call whose request type cannot ask the client for an approval."""
        await self._catalog.ensure_started()
        call = await self._make_call(operation, arguments, None)
        answer = await self._gate.submit(call)
        while isinstance(answer, Parked):
            await self._approvals.wait_for_other_approver(answer.escalation)
            answer = await self._gate.submit(call)
        return answer

    async def _make_call(self, operation: str, arguments: JsonObject, ticket: Ticket | None) -> Call:
        return Call(
            id=ticket.call if ticket else await self._gate.next_call(),
            operation=operation,
            arguments=arguments,
            principal=EXTERNAL,
        )
