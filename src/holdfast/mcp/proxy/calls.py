"""The road of the proxy: one call of a client from its wish to its answer. There is no other way to a server.

Reporting: a call's progress, passed on to the client that made it.
"""

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
    """The progress of every call under way."""

    def __init__(self) -> None:
        self._lines: dict[CallId, SendQueue[Progressed]] = {}

    def hear(self, news: Progressed) -> None:
        """Take a report; one of a call that is over is dropped."""
        line = self._lines.get(news.call)
        if line is not None:
            line.put(news)

    @asynccontextmanager
    async def passed_on(self, context: Context, call: CallId) -> AsyncIterator[None]:
        """Pass the reports of a call on while the block runs."""

        async def send(news: Progressed) -> None:
            await context.session.report_progress(news.progress, news.total, news.message or None)

        line = self._lines[call] = SendQueue(send)
        try:
            yield
            await line.drain()
        finally:
            del self._lines[call]
            line.close()


Asked = Answer | mcp_types.InputRequiredResult


class CallHandler:
    """Submits calls to the keeper until they are settled."""

    def __init__(
        self,
        keeper: GateClient,
        *,
        asking: ElicitationApprovals,
        catalogue: ResourceCatalog,
        audience: Subscribers,
        servers: Mapping[str, McpToolset],
    ) -> None:
        self._keeper = keeper
        self._asking = asking
        self._catalogue = catalogue
        self._audience = audience
        self._servers = servers
        self.reports = ProgressRelay()

    async def settle(
        self,
        context: Context,
        operation: str,
        arguments: JsonObject,
        params: mcp_types.InputResponseRequestParams,
    ) -> Asked:
        """Submit a call until it is settled, asking the client's human in between where that counts."""
        await self._catalogue.ready()
        ticket = Ticket.read(params.request_state)
        call = await self._call(operation, arguments, ticket)
        if ticket is not None:
            await self._asking.take(context, ticket, params.input_responses or {})
        server = operation.partition(".")[0]
        with self._audience.hearing(context, server) as level:
            if level is not None and server in self._servers:
                await self._servers[server].want_logs(level)
            async with self.reports.passed_on(context, call.id):
                answer = await self._keeper.submit(call)
                while isinstance(answer, Parked):
                    asked = await self._asking.ask(context, call, answer.escalation)
                    if asked is not None:
                        return asked
                    answer = await self._keeper.submit(call)
        return answer

    async def settle_elsewhere(self, operation: str, arguments: JsonObject) -> Answer:
        """The same for a wish that its client cannot be asked about."""
        await self._catalogue.ready()
        call = await self._call(operation, arguments, None)
        answer = await self._keeper.submit(call)
        while isinstance(answer, Parked):
            await self._asking.wait_elsewhere(answer.escalation)
            answer = await self._keeper.submit(call)
        return answer

    async def _call(self, operation: str, arguments: JsonObject, ticket: Ticket | None) -> Call:
        return Call(
            id=ticket.call if ticket else await self._keeper.next_call(),
            operation=operation,
            arguments=arguments,
            principal=EXTERNAL,
        )
