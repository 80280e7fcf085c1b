"""`holdfast teams serve` as other programs run it: a process, over stdio and HTTP, with the official client."""

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from tests.support.fork_server import forked_python

import holdfast
from holdfast.cli import main

TEAMS_TOOLS = {"teams_ask", "teams_send_message", "teams_notify", "teams_report"}
OPERATORS_TOOLS = {"teams_status", "teams_threads", "teams_wake", "teams_sleep", "teams_cancel", "teams_fork"}


class ServerHome:
    """A data directory with a roster of two teams with scripted members."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.home.mkdir(mode=0o700)
        self.project = project = root / "project"
        project.mkdir()
        (self.home / "teams.yaml").write_text(
            f"teams:\n  a: {{project: {project}, member: scripted}}\n"
            f"  b: {{project: {project}, member: scripted, asked_by: [a]}}\n"
        )
        self.environment = {"PATH": os.environ["PATH"], "HOLDFAST_HOME": str(self.home), "HOME": str(root)}

    def command(self, *words: str) -> list[str]:
        return forked_python("-m", "holdfast", "teams", "serve", *words)

    def over_stdio(self, *words: str) -> Client:
        """The official client, which starts the server."""
        program, *arguments = self.command(*words)
        return Client(
            stdio_client(StdioServerParameters(command=program, args=arguments, env=self.environment))
        )

    @asynccontextmanager
    async def over_http(self) -> AsyncIterator[tuple[str, dict[str, str]]]:
        """Run the server as a process; yield its URL and a token for each caller."""
        process = await asyncio.create_subprocess_exec(
            *self.command("--http", "0"),
            stdout=asyncio.subprocess.PIPE,
            env=self.environment,
        )
        assert process.stdout is not None
        try:
            lines = bytearray()
            while not lines.rstrip().endswith(b"}\n}") and not lines.rstrip().endswith(b"}}"):
                lines += await process.stdout.readline()
            answer = json.loads(lines)
            yield answer["url"], answer["tokens"]
        finally:
            process.send_signal(signal.SIGTERM)
            await process.communicate()


@pytest.fixture
def server_home(tmp_path: Path) -> ServerHome:
    return ServerHome(tmp_path)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    content = result.content[0]
    assert isinstance(content, mcp_types.TextContent)
    answer = json.loads(content.text)
    assert result.structured_content == (answer if isinstance(answer, dict) else {"result": answer})
    return answer


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[Client]:
    http = create_mcp_http_client(headers={"Authorization": f"Bearer {token}"})
    async with http, Client(streamable_http_client(url, http_client=http)) as client:
        yield client


async def test_a_stdio_client_asks_as_its_configured_sender(server_home: ServerHome) -> None:
    async with server_home.over_stdio("--from", "a") as client:
        assert client.server_info
        assert (client.server_info.name, client.server_info.version) == (
            "holdfast-teams",
            holdfast.__version__,
        )
        assert {tool.name for tool in (await client.list_tools()).tools} == TEAMS_TOOLS
        answered = await call(client, "teams_ask", team="b", question="hi")
        forged = await call(client, "teams_ask", team="b", question="hi", fromTeam="external")
        unknown = await call(client, "teams_ask", team="c", question="hi")
        waited = await call(client, "teams_send_message", toTeam="b", message="again")
        left = await call(client, "teams_notify", toTeam="b", message="green", ttlDays=2)
        wrong = await call(client, "teams_ask", team="b", question="hi", timeout="5")
        nulls = await call(
            client, "teams_ask", team="b", question="hi", fromTeam=None, timeout=None, thread=None
        )
        missing = await call(client, "teams_ask", team="b", question=None)
    assert (answered["text"], answered["status"]) == ("echo[1]: hi", "answered")
    assert nulls["text"] == "echo[4]: hi"  # after the notice
    assert missing["error"] == "teams_ask needs the argument 'question'"
    assert forged["code"] == "ask-refused"
    assert unknown["code"] == "unknown-team"
    assert waited["text"] == "echo[2]: again"
    assert left["expires_ms"] - left["left_ms"] == 2 * 86_400_000
    assert wrong["code"] == "invalid-input"


async def test_f32_a_failed_outcome_is_an_error_of_the_protocol(server_home: ServerHome) -> None:
    roster = server_home.home / "teams.yaml"
    roster.write_text(
        roster.read_text()
        + f"  gone: {{project: {server_home.project}, member: claude, program: no-such-program}}\n"
    )
    async with server_home.over_stdio("--operator") as client:
        answered = await client.call_tool("teams_ask", {"team": "a", "question": "hi"})
        failed = await client.call_tool("teams_ask", {"team": "gone", "question": "hi"})
        await client.call_tool("teams_notify", {"toTeam": "gone", "message": "hi"})
        not_woken = await client.call_tool("teams_wake", {"team": "gone"})
        report = await client.call_tool("teams_report", {"team": "gone"})
    assert not answered.is_error
    assert failed.is_error
    assert not_woken.is_error
    assert not report.is_error
    assert isinstance(failed.content[0], mcp_types.TextContent)
    outcome = json.loads(failed.content[0].text)["outcome"]
    assert outcome["code"] == "member-missing"
    assert "npm install -g @anthropic-ai/claude-code" in outcome["hint"]


@pytest.mark.parametrize("how", ["serve over stdio", "ask"])
async def test_f32_a_member_asked_by_any_command_can_ask_other_teams(
    server_home: ServerHome, how: str
) -> None:
    program = Path(__file__).with_name("acp_agent.py")
    member = f"member: acp, gate: asks, program: {sys.executable}, arguments: [-I, {program}]"
    roster = server_home.home / "teams.yaml"
    roster.write_text(f"{roster.read_text()}  relay: {{project: {server_home.project}, {member}}}\n")
    if how == "ask":
        process = await asyncio.create_subprocess_exec(
            *forked_python("-m", "holdfast", "teams", "ask", "relay", "relay a kelp"),
            stdout=asyncio.subprocess.PIPE,
            env=server_home.environment,
        )
        text = (await process.communicate())[0].decode()
    else:
        async with server_home.over_stdio() as client:
            text = (await call(client, "teams_ask", team="relay", question="relay a kelp"))["text"]
    assert "echo[1]: kelp" in text


async def test_a_stdio_server_can_be_interrupted_while_its_client_is_silent(server_home: ServerHome) -> None:
    process = await asyncio.create_subprocess_exec(
        *server_home.command(),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=server_home.environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    try:
        async with asyncio.timeout(60):
            assert b'"id":1' in await process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
    finally:
        process.stdin.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_stdio_operator_has_every_tool(server_home: ServerHome) -> None:
    async with server_home.over_stdio("--operator") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TEAMS_TOOLS | OPERATORS_TOOLS
        assert await call(client, "teams_wake", team="b", fromTeam="a") == {"awake": True, "reply": None}
        await call(client, "teams_ask", team="b", question="hi", fromTeam="a")
        forked = await call(client, "teams_fork", team="b", fromTeam="a", toThread="aside")
        assert forked["pair"] == "a -> b #aside"
        asked = await call(client, "teams_ask", team="b", question="recall", fromTeam="a", thread="aside")
        assert asked["text"] == 'recall: ["hi"]'
        assert set(await call(client, "teams_threads", team="b", fromTeam="a")) == {
            "a -> b",
            "a -> b #aside",
        }
        assert await call(client, "teams_sleep", team="b", fromTeam="a", thread="aside") == {"asleep": True}
        states = {line["pair"]: line["state"] for line in await call(client, "teams_status")}
        assert states == {"a -> b": "asleep", "a -> b #aside": "asleep"}
        assert await call(client, "teams_cancel", team="b", fromTeam="a") == {"cancelled": False}


async def test_an_http_caller_is_identified_by_its_token_and_others_are_rejected(
    server_home: ServerHome,
) -> None:
    async with server_home.over_http() as (url, tokens):
        assert set(tokens) == {"a", "b", "external", "operator"}
        async with connected(url, tokens["a"]) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == TEAMS_TOOLS
            sent = await call(client, "teams_send_message", toTeam="b", message="hi", waitForResponse=False)
            answered = await call(client, "teams_ask", team="b", question="recall")
            report = await call(client, "teams_report", team="b")
        async with connected(url, tokens["external"]) as client:
            refused = await call(client, "teams_ask", team="b", question="hi")
        async with connected(url, tokens["operator"]) as client:
            (line,) = await call(client, "teams_status")
        with pytest.raises(BaseExceptionGroup):
            async with connected(url, "no such token") as client:
                await client.list_tools()
        host, port = url.split("/")[2].split(":")
        assert host == "127.0.0.1"
        with socket.socket() as other:
            # Not on other interfaces: loopback has more addresses than the one we serve on.
            assert other.connect_ex(("127.0.0.2", int(port))) != 0
    assert sent["state"] in ("queued", "working", "answered")
    assert answered["text"] == 'recall: ["hi"]'
    assert [each["state"] for each in report["messages"]] == ["answered", "answered"]
    assert refused["code"] == "ask-refused"
    assert (line["pair"], line["messages"]) == ("a -> b", 2)


async def test_f29_a_token_is_valid_across_restarts_until_it_is_revoked(
    server_home: ServerHome, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_HOME", str(server_home.home))
    async with server_home.over_http() as (_, before):
        pass
    async with server_home.over_http() as (url, tokens):
        assert tokens == before
        shown = await asyncio.to_thread(main, ["teams", "token", "a", "--json"])
        assert (shown, json.loads(capsys.readouterr().out)) == (0, {"a": tokens["a"]})
        async with connected(url, tokens["a"]) as client:
            assert (await call(client, "teams_ask", team="b", question="hi"))["status"] == "answered"
        assert await asyncio.to_thread(main, ["teams", "token", "a", "--revoke"]) == 0
        fresh = capsys.readouterr().out.split()[1]
        assert fresh != tokens["a"]
        with pytest.raises(BaseExceptionGroup):
            async with connected(url, tokens["a"]) as client:
                await client.list_tools()
        async with connected(url, fresh) as client:
            assert (await call(client, "teams_ask", team="b", question="hi"))["status"] == "answered"
        assert await asyncio.to_thread(main, ["teams", "token", "nobody"]) == 2
    (kept,) = server_home.home.glob("teams/*/tokens.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert kept.parent.stat().st_mode & 0o077 == 0


async def test_a_message_sent_before_a_kill_is_delivered_by_the_next_server(server_home: ServerHome) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-c", _SEND),
        env=server_home.environment,
        cwd=Path(__file__).parents[2],
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    assert process.returncode == -signal.SIGKILL
    message = output.decode().strip()
    async with server_home.over_stdio("--from", "a") as client, asyncio.timeout(60):
        while True:
            (sent,) = (await call(client, "teams_report", team="b"))["messages"]
            if sent["state"] not in ("queued", "working"):
                break
    assert (sent["message"], sent["state"]) == (message, "answered")
    assert sent["reply"]["text"] == "echo[1]: kelp"


_SEND = """
import asyncio, os, signal
from pathlib import Path
from holdfast.cli.open_teams import open_broker
from holdfast.store import Home
from holdfast.teams import load_roster

async def main():
    home = Home.default()
    file = home.root / "teams.yaml"
    async with open_broker(load_roster(file), file, home) as (broker, _):
        async with broker._dispatcher.session_lock(broker.session_id(broker.roster.pair("a", "b"))):
            sent = await broker.send("a", "b", "kelp")
            print(sent.message, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
