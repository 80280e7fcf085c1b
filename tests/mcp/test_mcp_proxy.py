"""The proxy with the official client at its front and a real server at its back, in both eras of the protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.bench import Opener, spec_for
from tests.mcp.installed import filesystem_server, python_server
from tests.mcp.keeping import OpenKeeper, keeper_for

from holdfast.core import PERSON, Response, Verdict
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationAnswered,
    EscalationOpened,
    RecordedEvent,
)
from holdfast.mcp import McpToolset, Proxy, ServerSpec, format_for_client
from holdfast.world import WorldPaths

ERAS = ["legacy", "2026-07-28"]
era = pytest.mark.parametrize("era", ERAS)


class Stand:
    """A proxy under test, with its gate."""

    def __init__(self, keeper: OpenKeeper, toolset: McpToolset, proxy: Proxy) -> None:
        self.keeper = keeper
        self.toolset = toolset
        self.proxy = proxy

    @asynccontextmanager
    async def client(self, era: str, *, name: str = "desk", **callbacks: Any) -> AsyncIterator[Client]:
        """The official client, connected."""
        info = mcp_types.Implementation(name=name, version="1")
        async with Client(self.proxy.create_server().server, mode=era, client_info=info, **callbacks) as client:
            yield client

    async def happened(self, kind: type) -> Any:
        """The first event of a kind, waited for."""
        first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def follow(entry: RecordedEvent) -> None:
            if isinstance(entry.event, kind) and not first.done():
                first.set_result(entry.event)

        self.keeper.journal.follow(follow)
        return await first

    def recorded(self, kind: type) -> list[Any]:
        """The events of a kind on the record."""
        return [entry.event for entry in self.keeper.journal.recorded if isinstance(entry.event, kind)]


Stander = Callable[..., Any]


@pytest.fixture
def stand(opened: Opener) -> Stander:
    """Sets up a proxy over the friendly server."""

    async def set_up(verdicts: dict[str, Verdict] | None = None, **options: Any) -> Stand:
        bench = opened(spec_for("friendly"), format_result=format_for_client, has_extras=True)
        await bench.toolset.start()
        keeper = await keeper_for([bench.toolset], verdicts or {})
        return Stand(keeper, bench.toolset, Proxy(keeper, servers=[bench.toolset], **options))

    return set_up


def text_of(result: mcp_types.CallToolResult) -> str:
    """The first text of a result."""
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def answering(action: str, approve: object) -> Any:
    """A human who answers every elicitation alike, and what they were shown."""
    shown: list[str] = []

    async def answer(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        shown.append(params.message)
        return mcp_types.ElicitResult.model_validate({"action": action, "content": {"approve": approve}})

    return answer, shown


@era
async def test_tools_are_listed_and_called_through_the_gate(stand: Stander, era: str) -> None:
    it = await stand()
    async with it.client(era) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__add", {"a": 2, "b": 3})
    assert "friendly__echo" in names
    assert not [name for name in names if "resources" in name]
    assert result.structured_content == {"result": 5}
    (intended,) = it.recorded(CallIntended)
    assert intended.call.operation == "friendly.add"
    assert intended.call.principal == "external"


@era
async def test_old_and_new_servers_are_served_to_old_and_new_clients(
    opened: Opener, tmp_path: Path, era: str
) -> None:
    workspace = tmp_path / "workspace"
    files = opened(
        ServerSpec(name="filesystem", command=filesystem_server(), args=(str(workspace),)),
        format_result=format_for_client,
        paths=WorldPaths(workspace, guest_root=None),
    )
    time = opened(ServerSpec(name="time", command=python_server("mcp-server-time")), format_result=format_for_client)
    toolsets = [files.toolset, time.toolset]
    keeper = await keeper_for(toolsets, {}, paths=WorldPaths(workspace, guest_root=None))
    async with Client(Proxy(keeper, servers=toolsets).create_server().server, mode=era) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        written = await client.call_tool("filesystem__write_file", {"path": "a.txt", "content": "hi"})
        read = await client.call_tool("filesystem__read_text_file", {"path": str(workspace / "a.txt")})
        told = await client.call_tool("time__get_current_time", {"timezone": "UTC"})
    assert {"filesystem__move_file", "time__convert_time"} <= names
    assert not written.is_error
    assert read.structured_content == {"content": "hi"}
    assert told.structured_content["timezone"] == "UTC"
    assert {type(each).__name__ for each in (*files.news, *time.news)} == {"ServerStarted"}


@era
async def test_results_other_than_text_pass_through(stand: Stander, era: str) -> None:
    it = await stand()
    async with it.client(era) as client:
        result = await client.call_tool("friendly__picture", {})
    assert [block.type for block in result.content] == ["text", "image"]
    assert result.content[1].data == "iVBORw=="


@era
@pytest.mark.parametrize("depth", [80, 150])
async def test_arguments_that_nest_without_end_are_a_tool_error_and_the_proxy_goes_on(
    stand: Stander, era: str, depth: int
) -> None:
    it = await stand()
    value: object = "at the bottom"
    for _ in range(depth):
        value = [value]
    async with it.client(era) as client:
        result = await client.call_tool("friendly__echo", {"text": value})
        after = await client.call_tool("friendly__add", {"a": 2, "b": 3})
    assert result.is_error
    assert "nested more than 64 levels deep" in text_of(result)
    assert after.structured_content == {"result": 5}
    assert len(it.recorded(CallRefused)) == 1


@era
async def test_a_denied_call_is_a_tool_error_with_its_reason(stand: Stander, era: str) -> None:
    it = await stand({"friendly.echo": "deny"})
    async with it.client(era) as client:
        assert "friendly__echo" not in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__add", {"a": "x"})
        hidden = await client.call_tool("friendly__echo", {"text": "x"})
    assert result.is_error
    assert text_of(result).startswith("DENIED: ")
    assert hidden.is_error
    assert it.recorded(CallIntended) == []
    assert len(it.recorded(CallRefused)) == 2


@era
async def test_a_failing_tool_is_a_tool_error(stand: Stander, era: str) -> None:
    it = await stand()
    async with it.client(era) as client:
        result = await client.call_tool("friendly__fail", {"reason": "sour milk"})
    assert result.is_error
    assert "sour milk" in text_of(result)


@era
async def test_a_human_at_a_trusted_client_approves_by_elicitation(stand: Stander, era: str) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, shown = answering("accept", True)
    async with it.client(era, elicitation_callback=answer) as client:
        result = await client.call_tool("friendly__echo", {"text": "hi\u200b"})
    assert text_of(result) == "hi\u200b"
    assert len(shown) == 1
    assert "friendly.echo needs your yes" in shown[0]
    assert "hi<U+200B>" in shown[0]
    (answered,) = it.recorded(EscalationAnswered)
    assert (answered.transport, answered.principal) == ("mcp-elicitation", "person")


@era
@pytest.mark.parametrize(
    ("action", "approve"),
    [("decline", True), ("cancel", True), ("accept", False), ("accept", "true"), ("accept", 1)],
)
async def test_anything_but_a_clear_yes_is_a_no(
    stand: Stander, era: str, action: str, approve: object
) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, _ = answering(action, approve)
    async with it.client(era, elicitation_callback=answer) as client:
        result = await client.call_tool("friendly__echo", {"text": "hi"})
    assert result.is_error
    assert it.recorded(CallIntended) == []


@era
async def test_a_client_that_is_not_marked_is_not_asked(stand: Stander, era: str) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["other"]))
    answer, shown = answering("accept", True)
    async with it.client(era, elicitation_callback=answer) as client:
        result = await client.call_tool("friendly__echo", {"text": "hi"})
    assert shown == []
    assert "nobody can be asked here" in text_of(result)
    assert [each.principal for each in it.recorded(EscalationAnswered)] == ["external"]  # no person said this


@era
async def test_a_client_without_elicitation_waits_for_another_way(stand: Stander, era: str) -> None:
    it = await stand({"friendly.echo": "escalate"}, has_other_approvers=True)
    async with it.client(era) as client:
        calling = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hi"}))
        waiting = (await it.happened(EscalationOpened)).escalation.id
        approve = Response(verdict="approve")
        await it.keeper.resolve(waiting, approve, principal=PERSON, transport="terminal")
        assert text_of(await calling) == "hi"


async def test_whoever_answers_first_has_answered(stand: Stander) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))

    async def never(context: object, params: object) -> mcp_types.ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with it.client("legacy", elicitation_callback=never) as client:
        calling = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hi"}))
        waiting = (await it.happened(EscalationOpened)).escalation.id
        await it.keeper.resolve(waiting, Response(verdict="approve"), principal=PERSON, transport="terminal")
        assert text_of(await calling) == "hi"


async def test_a_forged_ticket_approves_nothing(stand: Stander) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, _ = answering("accept", True)
    yes = {"approval": mcp_types.ElicitResult(action="accept", content={"approve": True})}
    async with it.client("2026-07-28", elicitation_callback=answer) as client:
        first = await client.session.call_tool(
            "friendly__echo", {"text": "harmless"}, allow_input_required=True
        )
        assert isinstance(first, mcp_types.InputRequiredResult)
        assert first.request_state is not None
        forged = ['{"call": "1.1", "escalation": "x"}', first.request_state[:-4] + "AAAA"]
        for state in forged:
            with pytest.raises(MCPError, match="requestState"):
                await client.session.call_tool(
                    "friendly__echo", {"text": "harmless"}, request_state=state, input_responses=yes
                )
        with pytest.raises(MCPError, match="requestState"):  # the ticket of one call does not fit another
            await client.session.call_tool(
                "friendly__echo", {"text": "harmful"}, request_state=first.request_state, input_responses=yes
            )
        assert it.recorded(CallIntended) == []
        for _ in range(2):  # a ticket shown twice performs once
            again = await client.session.call_tool(
                "friendly__echo", {"text": "harmless"}, request_state=first.request_state, input_responses=yes
            )
            assert text_of(again) == "harmless"
    assert len(it.recorded(CallIntended)) == 1


async def test_a_ticket_in_the_hands_of_a_client_that_is_not_marked_is_a_no(stand: Stander) -> None:
    it = await stand({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, _ = answering("accept", True)
    yes: dict[str, Any] = {"approval": mcp_types.ElicitResult(action="accept", content={"approve": True})}
    server = it.proxy.create_server().server

    def client(name: str) -> Client:
        info = mcp_types.Implementation(name=name, version="1")
        return Client(server, mode="2026-07-28", client_info=info, elicitation_callback=answer)

    async with client("desk") as trusted, client("thief") as thief:
        first = await trusted.session.call_tool("friendly__echo", {"text": "x"}, allow_input_required=True)
        assert isinstance(first, mcp_types.InputRequiredResult)
        stolen = await thief.session.call_tool(
            "friendly__echo", {"text": "x"}, request_state=first.request_state, input_responses=yes
        )
    assert stolen.is_error
    assert it.recorded(CallIntended) == []
    assert [each.principal for each in it.recorded(EscalationAnswered)] == ["external"]


@era
async def test_progress_passes_through(stand: Stander, era: str) -> None:
    it = await stand()
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with it.client(era) as client:
        await client.call_tool("friendly__count", {"to": 3}, progress_callback=hear)
    assert heard  # the protocol lets a result overtake the last reports
    assert heard == [(1, 3), (2, 3), (3, 3)][: len(heard)]


@era
async def test_cancelling_reaches_the_server(stand: Stander, era: str, tmp_path: Path) -> None:
    it = await stand()
    marker = tmp_path / "marker"
    async with it.client(era) as client:
        calling = asyncio.create_task(client.call_tool("friendly__wait_forever", {"marker": str(marker)}))
        await it.happened(CallIntended)
        await client.call_tool("friendly__echo", {"text": "is it there?"})
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        while not marker.exists():
            await client.call_tool("friendly__echo", {"text": f"{len(it.recorded(CallIntended))}"})


@era
async def test_resources_and_prompts_pass_through_the_gate(stand: Stander, era: str) -> None:
    it = await stand()
    async with it.client(era) as client:
        (note,) = (await client.list_resources()).resources
        read = await client.read_resource(str(note.uri))
        (prompt,) = (await client.list_prompts()).prompts
        got = await client.get_prompt(prompt.name, {"name": "Ada"})
    assert read.contents[0].text == "buy milk"
    assert prompt.name == "friendly__greet"
    assert "Ada" in str(got.messages[0].content)
    assert [each.call.operation for each in it.recorded(CallIntended)] == [
        "friendly.resources.read",
        "friendly.prompts.get",
    ]


@era
async def test_a_resource_that_policy_denies_is_not_read(stand: Stander, era: str) -> None:
    it = await stand({"friendly.resources.read": "deny"})
    async with it.client(era) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await client.read_resource("note://today")


async def test_a_changed_list_is_told_to_a_client_of_the_older_era(stand: Stander) -> None:
    it = await stand()
    told = asyncio.Event()

    async def hear(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            told.set()

    async with it.client("legacy", message_handler=hear) as client:
        await client.list_tools()
        await client.call_tool("friendly__die", {"code": 1})
        await client.call_tool("friendly__echo", {"text": "restarted"})
        async with asyncio.timeout(5):
            await told.wait()


async def test_a_changed_list_is_told_to_a_client_that_listens(stand: Stander) -> None:
    it = await stand()
    async with it.client("2026-07-28") as client, client.listen(tools_list_changed=True) as changes:
        await client.call_tool("friendly__die", {"code": 1})
        await client.call_tool("friendly__echo", {"text": "restarted"})
        async with asyncio.timeout(5):
            assert type(await anext(aiter(changes))).__name__ == "ToolsListChanged"


@era
async def test_calls_of_one_client_do_not_wait_for_each_other(
    stand: Stander, era: str, tmp_path: Path
) -> None:
    it = await stand()
    async with it.client(era) as client:
        slow = asyncio.create_task(
            client.call_tool("friendly__wait_forever", {"marker": str(tmp_path / "m")})
        )
        assert text_of(await client.call_tool("friendly__echo", {"text": "quick"})) == "quick"
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def test_a_token_that_could_be_guessed_is_not_served_with(stand: Stander) -> None:
    it = await stand()
    with pytest.raises(InvalidInput, match="at least 20 characters"):
        async with it.proxy.serving_http(token="x" * 19):
            pass
    async with it.proxy.serving_http(token="x" * 20) as (_, token):
        assert token == "x" * 20


async def test_http_answers_only_with_the_token(stand: Stander) -> None:
    import httpx

    it = await stand()
    async with it.proxy.serving_http() as (address, token):
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        async with httpx.AsyncClient() as http:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": token}):
                assert (await http.post(address, json=body, headers=headers)).status_code == 401
            assert (await http.post(f"{address}?token={token}", json=body)).status_code == 401
            rebound = {
                "Authorization": f"Bearer {token}",
                "Host": "evil.example",
                "Accept": "application/json",
            }
            assert (await http.post(address, json=body, headers=rebound)).status_code in (403, 421)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_http_takes_the_token_however_its_scheme_is_spelt(stand: Stander, scheme: str) -> None:
    import httpx

    it = await stand()
    async with it.proxy.serving_http() as (address, token), httpx.AsyncClient() as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        answer = await http.post(address, json=body, headers={"Authorization": f"{scheme} {token}"})
    assert answer.status_code != 401


async def test_http_takes_no_body_without_measure(stand: Stander) -> None:
    import httpx

    it = await stand()
    async with it.proxy.serving_http() as (address, token), httpx.AsyncClient() as http:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        large = await http.post(address, content=b" " * (5 << 20), headers=headers)
    assert large.status_code == 413


@era
async def test_http_serves_both_eras(stand: Stander, era: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    it = await stand()
    async with it.proxy.serving_http() as (address, token):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        async with http, Client(streamable_http_client(address, http_client=http), mode=era) as client:
            assert text_of(await client.call_tool("friendly__echo", {"text": "over http"})) == "over http"
