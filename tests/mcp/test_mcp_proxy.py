"""The proxy between the official client and a real server, with the legacy and the 2026-07 protocol."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from tests.mcp.gate_client import RecordedGateClient, open_gate_client
from tests.mcp.installed import filesystem_server, python_server
from tests.mcp.toolset_harness import OpenToolset, spec_for

from holdfast.core import PERSON, Response, Verdict
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationAnswered,
    EscalationOpened,
    GrantGiven,
    RecordedEvent,
)
from holdfast.mcp import McpToolset, Proxy, ServerSpec, format_for_client
from holdfast.world import WorldPaths

PROTOCOLS = ["legacy", "2026-07-28"]
both_protocols = pytest.mark.parametrize("protocol", PROTOCOLS)


class ProxyHarness:
    """A proxy under test and its gate."""

    def __init__(self, gate: RecordedGateClient, toolset: McpToolset, proxy: Proxy) -> None:
        self.gate = gate
        self.toolset = toolset
        self.proxy = proxy

    @asynccontextmanager
    async def client(self, protocol: str, *, name: str = "desk", **callbacks: Any) -> AsyncIterator[Client]:
        """The official client, connected."""
        info = mcp_types.Implementation(name=name, version="1")
        async with Client(
            self.proxy.create_server().server, mode=protocol, client_info=info, **callbacks
        ) as client:
            yield client

    async def wait_for_event(self, kind: type) -> Any:
        """Wait for the first event of a kind."""
        first: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def follow(entry: RecordedEvent) -> None:
            if isinstance(entry.event, kind) and not first.done():
                first.set_result(entry.event)

        self.gate.journal.follow(follow)
        return await first

    def recorded(self, kind: type) -> list[Any]:
        """The recorded events of a kind."""
        return [entry.event for entry in self.gate.journal.recorded if isinstance(entry.event, kind)]


OpenProxy = Callable[..., Any]


@pytest.fixture
def open_proxy(open_toolset: OpenToolset) -> OpenProxy:
    """Opens a proxy in front of the friendly server."""

    async def open_one(verdicts: dict[str, Verdict] | None = None, **options: Any) -> ProxyHarness:
        harness = open_toolset(spec_for("friendly"), format_result=format_for_client, has_extras=True)
        await harness.toolset.start()
        gate = await open_gate_client([harness.toolset], verdicts or {})
        return ProxyHarness(gate, harness.toolset, Proxy(gate, servers=[harness.toolset], **options))

    return open_one


def text_of(result: mcp_types.CallToolResult) -> str:
    """The first text of a result."""
    (block,) = result.content
    assert isinstance(block, mcp_types.TextContent)
    return block.text


def answer_with(action: str, approve: object, **more: object) -> Any:
    """A client that gives this answer to every elicitation, and the messages that it showed."""
    shown: list[str] = []

    async def answer(context: object, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        shown.append(params.message)
        return mcp_types.ElicitResult.model_validate(
            {"action": action, "content": {"approve": approve, **more}}
        )

    return answer, shown


@both_protocols
async def test_tools_are_listed_and_called_through_the_gate(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__add", {"a": 2, "b": 3})
    assert "friendly__echo" in names
    assert not [name for name in names if "resources" in name]
    assert result.structured_content == {"result": 5}
    (intended,) = harness.recorded(CallIntended)
    assert intended.call.operation == "friendly.add"
    assert intended.call.principal == "external"


@both_protocols
async def test_legacy_and_current_servers_are_served_to_legacy_and_current_clients(
    open_toolset: OpenToolset, tmp_path: Path, protocol: str
) -> None:
    workspace = tmp_path / "workspace"
    files = open_toolset(
        ServerSpec(name="filesystem", command=filesystem_server(), args=(str(workspace),)),
        format_result=format_for_client,
        paths=WorldPaths(workspace, guest_root=None),
    )
    time = open_toolset(
        ServerSpec(name="time", command=python_server("mcp-server-time")), format_result=format_for_client
    )
    toolsets = [files.toolset, time.toolset]
    gate = await open_gate_client(toolsets, {}, paths=WorldPaths(workspace, guest_root=None))
    async with Client(Proxy(gate, servers=toolsets).create_server().server, mode=protocol) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        written = await client.call_tool("filesystem__write_file", {"path": "a.txt", "content": "hi"})
        read = await client.call_tool("filesystem__read_text_file", {"path": str(workspace / "a.txt")})
        now = await client.call_tool("time__get_current_time", {"timezone": "UTC"})
    assert {"filesystem__move_file", "time__convert_time"} <= names
    assert not written.is_error
    assert read.structured_content == {"content": "hi"}
    assert now.structured_content["timezone"] == "UTC"
    assert {type(each).__name__ for each in (*files.notifications, *time.notifications)} == {"ServerStarted"}


@both_protocols
async def test_images_pass_through(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        result = await client.call_tool("friendly__picture", {})
    assert [block.type for block in result.content] == ["text", "image"]
    assert result.content[1].data == "iVBORw=="


@both_protocols
async def test_deeply_nested_arguments_are_a_tool_error_and_the_proxy_continues(
    open_proxy: OpenProxy, protocol: str
) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        for depth in (80, 150):
            value: object = "at the bottom"
            for _ in range(depth):
                value = [value]
            result = await client.call_tool("friendly__echo", {"text": value})
            assert result.is_error
            assert "nested more than 64 levels deep" in text_of(result)
        after = await client.call_tool("friendly__add", {"a": 2, "b": 3})
    assert after.structured_content == {"result": 5}
    assert len(harness.recorded(CallRefused)) == 2


@both_protocols
async def test_a_denied_call_is_a_tool_error_with_its_reason(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy({"friendly.echo": "deny"})
    async with harness.client(protocol) as client:
        assert "friendly__echo" not in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("friendly__add", {"a": "x"})
        hidden = await client.call_tool("friendly__echo", {"text": "x"})
    assert result.is_error
    assert text_of(result).startswith("DENIED: ")
    assert hidden.is_error
    assert harness.recorded(CallIntended) == []
    assert len(harness.recorded(CallRefused)) == 2


@both_protocols
async def test_a_failing_tool_is_a_tool_error(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        result = await client.call_tool("friendly__fail", {"reason": "sour milk"})
    assert result.is_error
    assert "sour milk" in text_of(result)


@both_protocols
async def test_a_human_at_a_trusted_client_approves_by_elicitation(
    open_proxy: OpenProxy, protocol: str
) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, shown = answer_with("accept", True)
    async with harness.client(protocol, elicitation_callback=answer) as client:
        result = await client.call_tool("friendly__echo", {"text": "hi\u200b"})
    assert text_of(result) == "hi\u200b"
    assert len(shown) == 1
    assert shown[0].startswith("The agent wants to call friendly.echo\n")
    assert "reason:        friendly.echo is fixed to escalate" in shown[0]
    assert "hi<U+200B>" in shown[0]
    (answered,) = harness.recorded(EscalationAnswered)
    assert (answered.transport, answered.principal) == ("mcp-elicitation", "person")


@both_protocols
@pytest.mark.parametrize(
    ("covers", "asked", "is_given"), [(0, 2, False), (1, 1, True), ("everything", 2, False)]
)
async def test_a_human_at_a_client_chooses_what_an_approval_covers(
    open_proxy: OpenProxy, protocol: str, covers: int | str, asked: int, is_given: bool
) -> None:
    harness = await open_proxy({"friendly.add": "escalate"}, trusted_clients=frozenset(["desk"]))
    forms: list[dict[str, Any]] = []

    async def answer(context: object, params: Any) -> mcp_types.ElicitResult:
        forms.append(params.requested_schema)
        offered = params.requested_schema["properties"]["covers"]["enum"]
        chosen = offered[covers] if isinstance(covers, int) else covers
        return mcp_types.ElicitResult(action="accept", content={"approve": True, "covers": chosen})

    async with harness.client(protocol, elicitation_callback=answer) as client:
        for _ in range(2):
            result = await client.call_tool("friendly__add", {"a": 1, "b": 3})
            assert result.is_error == isinstance(covers, str)
    assert len(forms) == asked
    assert bool(harness.recorded(GrantGiven)) == is_given


@both_protocols
async def test_anything_but_an_explicit_approval_is_a_denial(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    for action, approve in (
        ("decline", True),
        ("cancel", True),
        ("accept", False),
        ("accept", "true"),
        ("accept", 1),
    ):
        answer, shown = answer_with(action, approve)
        async with harness.client(protocol, elicitation_callback=answer) as client:
            result = await client.call_tool("friendly__echo", {"text": "hi"})
        assert result.is_error, (action, approve)
        assert len(shown) == 1
    assert harness.recorded(CallIntended) == []


@both_protocols
async def test_an_untrusted_client_is_not_asked(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["other"]))
    answer, shown = answer_with("accept", True)
    async with harness.client(protocol, elicitation_callback=answer) as client:
        result = await client.call_tool("friendly__echo", {"text": "hi"})
    assert shown == []
    assert "no approver is available" in text_of(result)
    assert [each.principal for each in harness.recorded(EscalationAnswered)] == ["external"]


@both_protocols
async def test_a_client_without_elicitation_waits_for_another_approver(
    open_proxy: OpenProxy, protocol: str
) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, has_other_approvers=True)
    async with harness.client(protocol) as client:
        call = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hi"}))
        waiting = (await harness.wait_for_event(EscalationOpened)).escalation.id
        approve = Response(verdict="approve")
        await harness.gate.resolve(waiting, approve, principal=PERSON, transport="terminal")
        assert text_of(await call) == "hi"


async def test_the_first_answer_counts(open_proxy: OpenProxy) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))

    async def never(context: object, params: object) -> mcp_types.ElicitResult:
        await asyncio.Event().wait()
        raise AssertionError

    async with harness.client("legacy", elicitation_callback=never) as client:
        call = asyncio.create_task(client.call_tool("friendly__echo", {"text": "hi"}))
        waiting = (await harness.wait_for_event(EscalationOpened)).escalation.id
        await harness.gate.resolve(
            waiting, Response(verdict="approve"), principal=PERSON, transport="terminal"
        )
        assert text_of(await call) == "hi"


async def test_a_forged_ticket_approves_nothing(open_proxy: OpenProxy) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, _ = answer_with("accept", True)
    yes = {"approval": mcp_types.ElicitResult(action="accept", content={"approve": True})}
    async with harness.client("2026-07-28", elicitation_callback=answer) as client:
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
        with pytest.raises(MCPError, match="requestState"):  # the ticket of one call is not valid for another
            await client.session.call_tool(
                "friendly__echo", {"text": "harmful"}, request_state=first.request_state, input_responses=yes
            )
        assert harness.recorded(CallIntended) == []
        for _ in range(2):  # a repeated ticket executes the call once
            again = await client.session.call_tool(
                "friendly__echo", {"text": "harmless"}, request_state=first.request_state, input_responses=yes
            )
            assert text_of(again) == "harmless"
    assert len(harness.recorded(CallIntended)) == 1


async def test_a_ticket_used_by_an_untrusted_client_is_a_denial(open_proxy: OpenProxy) -> None:
    harness = await open_proxy({"friendly.echo": "escalate"}, trusted_clients=frozenset(["desk"]))
    answer, _ = answer_with("accept", True)
    yes: dict[str, Any] = {"approval": mcp_types.ElicitResult(action="accept", content={"approve": True})}
    server = harness.proxy.create_server().server

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
    assert harness.recorded(CallIntended) == []
    assert [each.principal for each in harness.recorded(EscalationAnswered)] == ["external"]


@both_protocols
async def test_progress_passes_through(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy()
    reported: list[tuple[float, float | None]] = []

    async def handle(progress: float, total: float | None, message: str | None) -> None:
        reported.append((progress, total))

    async with harness.client(protocol) as client:
        await client.call_tool("friendly__count", {"to": 3}, progress_callback=handle)
    assert reported  # the protocol lets a result overtake the last reports
    assert reported == [(1, 3), (2, 3), (3, 3)][: len(reported)]


@both_protocols
async def test_a_cancellation_reaches_the_server(
    open_proxy: OpenProxy, protocol: str, tmp_path: Path
) -> None:
    harness = await open_proxy()
    marker = tmp_path / "marker"
    async with harness.client(protocol) as client:
        call = asyncio.create_task(client.call_tool("friendly__wait_forever", {"marker": str(marker)}))
        await harness.wait_for_event(CallIntended)
        await client.call_tool("friendly__echo", {"text": "is the other call running?"})
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        while not marker.exists():
            await client.call_tool("friendly__echo", {"text": f"{len(harness.recorded(CallIntended))}"})


@both_protocols
async def test_resources_and_prompts_pass_through_the_gate(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        (note,) = (await client.list_resources()).resources
        read = await client.read_resource(str(note.uri))
        (prompt,) = (await client.list_prompts()).prompts
        got = await client.get_prompt(prompt.name, {"name": "Ada"})
    assert read.contents[0].text == "buy milk"
    assert prompt.name == "friendly__greet"
    assert "Ada" in str(got.messages[0].content)
    assert [each.call.operation for each in harness.recorded(CallIntended)] == [
        "friendly.resources.read",
        "friendly.prompts.get",
    ]


@both_protocols
async def test_a_denied_resource_is_not_read(open_proxy: OpenProxy, protocol: str) -> None:
    harness = await open_proxy({"friendly.resources.read": "deny"})
    async with harness.client(protocol) as client:
        with pytest.raises(MCPError, match="DENIED"):
            await client.read_resource("note://today")


async def test_a_legacy_client_is_notified_of_a_changed_list(open_proxy: OpenProxy) -> None:
    harness = await open_proxy()
    notified = asyncio.Event()

    async def handle(message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            notified.set()

    async with harness.client("legacy", message_handler=handle) as client:
        await client.list_tools()
        await client.call_tool("friendly__die", {"code": 1})
        await client.call_tool("friendly__echo", {"text": "restarted"})
        async with asyncio.timeout(60):
            await notified.wait()


async def test_a_client_that_listens_is_notified_of_a_changed_list(open_proxy: OpenProxy) -> None:
    harness = await open_proxy()
    async with harness.client("2026-07-28") as client, client.listen(tools_list_changed=True) as changes:
        await client.call_tool("friendly__die", {"code": 1})
        await client.call_tool("friendly__echo", {"text": "restarted"})
        async with asyncio.timeout(60):
            assert type(await anext(aiter(changes))).__name__ == "ToolsListChanged"


@both_protocols
async def test_calls_of_one_client_run_concurrently(
    open_proxy: OpenProxy, protocol: str, tmp_path: Path
) -> None:
    harness = await open_proxy()
    async with harness.client(protocol) as client:
        slow = asyncio.create_task(
            client.call_tool("friendly__wait_forever", {"marker": str(tmp_path / "m")})
        )
        assert text_of(await client.call_tool("friendly__echo", {"text": "quick"})) == "quick"
        assert not slow.done()
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)


async def test_a_short_token_is_refused(open_proxy: OpenProxy) -> None:
    harness = await open_proxy()
    with pytest.raises(InvalidInput, match="at least 20 characters"):
        async with harness.proxy.serving_http(token="x" * 19):
            pass
    async with harness.proxy.serving_http(token="x" * 20) as (_, token):
        assert token == "x" * 20


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "{host}@evil.example", 421),
        ("Host", "127.0.0.1:80@evil", 421),
        ("Host", "{host}.evil.example", 421),
        ("Host", "127.0.0.1", 421),
        ("Host", "", 421),
        ("Origin", "http://{host}@evil.example", 403),
        ("Origin", "http://{host}.evil.example", 403),
        ("Origin", "https://{host}", 403),
        ("Origin", "http://127.0.0.1:1", 403),
        ("Origin", "null", 403),
    ],
)
@pytest.mark.promise("P15")
async def test_f50_host_and_origin_are_compared_exactly(
    open_proxy: OpenProxy, header: str, value: str, status: int
) -> None:
    import httpx

    harness = await open_proxy()
    async with harness.proxy.serving_http() as (address, token), httpx.AsyncClient() as http:
        host = httpx.URL(address).netloc.decode()
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        headers = {"Authorization": f"Bearer {token}", header: value.format(host=host)}
        assert (await http.post(address, json=body, headers=headers)).status_code == status
        good = {"Authorization": f"Bearer {token}", "Origin": f"http://{host}"}
        assert (await http.post(address, json=body, headers=good)).status_code not in (401, 403, 421)


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: x", b"whole"])
async def test_f50_half_a_header_ends_the_connection(
    open_proxy: OpenProxy, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr("holdfast.mcp.loopback_guards.HEADER_SECONDS", 0.05)
    harness = await open_proxy()
    async with harness.proxy.serving_http() as (address, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(address.split(":")[2].split("/")[0]))
        if sent == b"whole":  # a whole request, and then half of another
            writer.write(b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await reader.readuntil(b"unknown host\n")).startswith(b"HTTP/1.1 421")
            sent = b"GET /mcp HT"
        writer.write(sent)
        assert await reader.read() == b""
        writer.close()


@pytest.mark.promise("P15")
async def test_http_requires_the_token_and_limits_the_body(open_proxy: OpenProxy) -> None:
    import httpx

    harness = await open_proxy()
    async with harness.proxy.serving_http() as (address, token):
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
            for scheme in ("Bearer", "bearer", "BEARER"):
                answer = await http.post(address, json=body, headers={"Authorization": f"{scheme} {token}"})
                assert answer.status_code != 401
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            large = await http.post(address, content=b" " * (5 << 20), headers=headers)
            assert large.status_code == 413


@both_protocols
async def test_http_serves_both_protocols(open_proxy: OpenProxy, protocol: str) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    harness = await open_proxy()
    async with harness.proxy.serving_http() as (address, token):
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
        async with http, Client(streamable_http_client(address, http_client=http), mode=protocol) as client:
            assert text_of(await client.call_tool("friendly__echo", {"text": "over http"})) == "over http"
