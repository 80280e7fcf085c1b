"""The teams server over HTTP: a token identifies the caller, who sees only its own messages. Case L9."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core.errors import InvalidInput
from holdfast.teams import Caller, Callers, serving_http
from holdfast.teams.server.tools import TOOLS, timeout_of

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


async def rpc(url: str, token: str, method: str, params: dict[str, Any]) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with httpx.AsyncClient(timeout=60) as client:
        answer = await client.post(url, json=body, headers=HEADERS | {"Authorization": f"Bearer {token}"})
    if answer.status_code != 200:
        return answer.status_code
    data = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return json.loads(data[-1] if data else answer.text)["result"]


async def call(url: str, token: str, tool: str, **arguments: Any) -> Any:
    result = await rpc(url, token, "tools/call", {"name": tool, "arguments": arguments})
    return json.loads(result["content"][0]["text"])


@pytest.mark.promise("P15")
async def test_a_token_identifies_its_team_and_an_operator_has_more_tools(tmp_path: Path) -> None:
    callers = Callers()
    alpha = callers.add(Caller(team="alpha"))
    boss = callers.add(Caller(is_operator=True))
    async with (
        team_broker(tmp_path, roster("alpha", "beta", "gamma", project=str(tmp_path))) as broker,
        serving_http(broker, callers) as url,
    ):
        assert await rpc(url, "wrong", "tools/list", {}) == 401
        shown = {tool["name"] for tool in (await rpc(url, alpha, "tools/list", {}))["tools"]}
        assert shown == {"teams_ask", "teams_send_message", "teams_notify", "teams_report"}
        assert (await call(url, alpha, "teams_ask", team="beta", question="hi"))["text"] == "echo[1]: hi"
        forged = await call(url, alpha, "teams_ask", team="beta", question="hi", fromTeam="gamma")
        assert forged["code"] == "ask-refused"
        assert "holdfast teams serve --from gamma" in forged["hint"]
        refused = await call(url, alpha, "teams_status")
        assert refused["code"] == "invalid-input"
        assert "--operator" in refused["hint"]
        assert (await call(url, alpha, "teams_ask", team="beta", question="hi", timeout=-2))[
            "code"
        ] == "invalid-input"
        assert (await call(url, alpha, "teams_notify", toTeam="beta", message="green"))["text"] == "green"
        (line,) = await call(url, boss, "teams_status")
        assert (line["pair"], line["messages"], line["state"]) == ("alpha -> beta", 1, "idle")
        assert await call(url, boss, "teams_sleep", team="beta", fromTeam="alpha") == {"asleep": True}


async def test_the_server_is_guarded_like_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.mcp.loopback_guards.HEADER_SECONDS", 0.05)
    callers = Callers()
    token = callers.add(Caller(team="alpha"))
    headers = HEADERS | {"Authorization": f"Bearer {token}"}
    async with (
        team_broker(tmp_path, roster("alpha", "beta", project=str(tmp_path))) as broker,
        serving_http(broker, callers) as url,
        httpx.AsyncClient(timeout=60) as http,
    ):
        host, port = httpx.URL(url).host, httpx.URL(url).port
        for extra, status in (
            ({"Host": f"{host}:{port}@evil.example"}, 421),
            ({"Host": "evil.example"}, 421),
            ({"Origin": f"http://{host}:{port}.evil.example"}, 403),
        ):
            assert (await http.post(url, content=b"{}", headers=headers | extra)).status_code == status
        assert (await http.post(url, content=b" " * (5 << 20), headers=headers)).status_code == 413
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"POST /mcp HTTP/1.1\r\nHost: x")
        assert await reader.read() == b"", "half a header does not keep a connection"
        writer.close()


@pytest.mark.parametrize(
    ("tool", "name", "value", "words"),
    [
        ("teams_send_message", "waitForResponse", "false", "waitForResponse must be true or false"),
        ("teams_send_message", "messageId", 5, "messageId must be a string"),
        ("teams_send_message", "to", "beta", "no argument 'to'"),
        ("teams_sleep", "force", "true", "force must be true or false"),
        ("teams_ask", "question", ["hi"], "question must be a string"),
    ],
)
def test_an_argument_of_the_wrong_type_is_refused(tool: str, name: str, value: Any, words: str) -> None:
    (service,) = [each for each in TOOLS if each.name == tool]
    with pytest.raises(InvalidInput, match=words):
        service.check(dict.fromkeys(service.required, "beta") | {name: value})


@pytest.mark.parametrize("value", [-2, 3_600_001, "5", 1.5, True, None])
def test_l9_an_invalid_timeout_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput):
        timeout_of(value)


@pytest.mark.parametrize("value", [-1, 0, 1, 3_600_000])
def test_l9_a_valid_timeout_is_accepted(value: int) -> None:
    assert timeout_of(value) == value
