"""The road of the proxy: one call of a client from its wish to its answer. There is no other way to a server."""

from collections.abc import Mapping

import mcp_types
from mcp.server.context import ServerRequestContext as Context

from holdfast.core import EXTERNAL, Answer, Call, JsonObject, Parked
from holdfast.mcp.asking import Asking, Ticket
from holdfast.mcp.audience import Audience
from holdfast.mcp.catalogue import Catalogue
from holdfast.mcp.contract import Keeper
from holdfast.mcp.reporting import Reports
from holdfast.mcp.toolset import McpToolset

Asked = Answer | mcp_types.InputRequiredResult


class Road:
    """Submits calls to the keeper until they are settled."""

    def __init__(
        self,
        keeper: Keeper,
        *,
        asking: Asking,
        catalogue: Catalogue,
        audience: Audience,
        servers: Mapping[str, McpToolset],
    ) -> None:
        self._keeper = keeper
        self._asking = asking
        self._catalogue = catalogue
        self._audience = audience
        self._servers = servers
        self.reports = Reports()

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
