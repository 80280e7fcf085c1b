"""The real Claude Code, installed by `holdfast install claude`: what its tools may do is what the gate says.

Its model is a stand-in on this machine that uses the tools it is told to use.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.bench import SERVERS
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program

from holdfast.core import JsonObject, ModelMessage, TextPart, ToolCallPart, Usage
from holdfast.models import Reply

POLICY = """\
policy: lab
rules:
  - {name: inside, allow: "*", roles: [read-path], inside: true}
  - {name: sums, allow: friendly.add}
  - {name: says, escalate: friendly.echo, because: it echoes}
  - {name: shell, allow: claude.Bash, arguments: {command: {one_of: ["touch allowed"]}}}
"""


def respond(body: JsonObject) -> Reply:
    """Use the tool that the prompt names; then tell what came of it."""
    messages: Any = body["messages"]
    content = next(each["content"] for each in reversed(messages) if each["role"] == "user")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks:
        if block["type"] == "tool_result":
            return _say(f"tool said: {json.dumps(block['content'])}")
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    wanted = re.search(r"^use (\S+) (\{.*\})$", text, re.M)
    if wanted is None:
        return _say("well")
    call = ToolCallPart(id="toolu_1", tool=wanted[1], arguments=json.loads(wanted[2]))
    return Reply(message=ModelMessage(parts=(call,)), usage=Usage(), finish="tool-calls")


def _say(text: str) -> Reply:
    return Reply(message=ModelMessage(parts=(TextPart(text=text),)), usage=Usage(), finish="stop")


class Desk:
    """A project of a person who uses Claude Code."""

    def __init__(self, root: Path, stub: StubServer) -> None:
        self.folder, self.home = root / "work", root / "home"
        self.folder.mkdir()
        self.home.mkdir(mode=0o700)
        friendly = {"command": sys.executable, "args": [str(SERVERS / "friendly.py")]}
        (self.home / "mcp-servers.json").write_text(json.dumps({"mcpServers": {"friendly": friendly}}))
        echo = {"toolName": "echo", "args": {"text": ["none"]}}
        add = {"toolName": "add", "args": {"a": ["none"], "b": ["none"]}}
        roles = {"servers": {"friendly": {"tools": [echo, add]}}}
        (self.home / "tool-annotations.json").write_text(json.dumps(roles))
        self.policy = self.home / "lab.yaml"
        self.policy.write_text(POLICY)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "HOLDFAST_HOME": str(self.home),
            "ANTHROPIC_BASE_URL": stub.url,
            "ANTHROPIC_API_KEY": "stub-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }

    async def run(self, *command: str) -> str:
        """What a program said, run in the project to its end."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        return said.decode()

    async def holdfast(self, *words: str) -> str:
        """One of our own commands."""
        return await self.run(sys.executable, "-m", "holdfast", *words)

    async def claude(self, tool: str, arguments: JsonObject, *words: str) -> str:
        """Claude Code, asked without a terminal to use a tool."""
        prompt = f"use {tool} {json.dumps(arguments)}"
        return await self.run(claude_program(), "-p", prompt, *words)

    async def operations(self) -> list[tuple[str, str]]:
        """What the newest session's record says of its calls."""
        audit = json.loads(await self.holdfast("audit", "--json"))
        return [(entry["operation"], entry["decision"]["verdict"]) for entry in audit]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    claude_program()  # skipped before anything is opened
    async with StubServer(respond) as stub:
        yield Desk(tmp_path, stub)


async def test_its_own_tools_do_what_the_gate_allows_and_nothing_else(desk: Desk) -> None:
    await desk.holdfast("install", "claude", "-p", str(desk.policy))
    (desk.folder / "a.txt").write_text("hello")
    everything = ("--allowedTools", "Read,Write")  # its own rules allow it; the hook has the last word
    inside = await desk.claude("Read", {"file_path": str(desk.folder / "a.txt")}, *everything)
    assert "hello" in inside
    outside = desk.home.parent / "outside.txt"
    refused = await desk.claude("Write", {"file_path": str(outside), "content": "x"}, *everything)
    assert "no rule" in refused or "default" in refused
    assert not outside.exists()
    assert await desk.operations() == [("claude.Write", "deny")]
    history = await desk.holdfast("show")
    assert "use Write" in history  # what the person asked for is the turn


async def test_a_hook_that_is_gone_blocks_its_tools(desk: Desk) -> None:
    await desk.holdfast("install", "claude", "-p", str(desk.policy))
    settings = desk.folder / ".claude" / "settings.json"
    settings.write_text(settings.read_text().replace(sys.executable, "/nowhere/python"))
    (desk.folder / "a.txt").write_text("hello")
    said = await desk.claude("Read", {"file_path": str(desk.folder / "a.txt")}, "--allowedTools", "Read")
    assert "hello" not in said


async def test_its_configuration_is_accepted_and_taken_out_again(desk: Desk) -> None:
    await desk.holdfast("install", "claude")
    assert "holdfast" in await desk.run(claude_program(), "mcp", "list")
    await desk.holdfast("install", "claude", "--remove")
    assert "No MCP servers" in await desk.run(claude_program(), "mcp", "list")
    assert not [path for path in (".mcp.json", ".claude") if (desk.folder / path).exists()]


async def test_servers_are_reached_through_the_proxy_and_approved_from_another_terminal(desk: Desk) -> None:
    await desk.holdfast("install", "claude", "-p", str(desk.policy))
    config = ("--mcp-config", str(desk.folder / ".mcp.json"))
    allowed = ("--allowedTools", "mcp__holdfast__friendly__add,mcp__holdfast__friendly__echo")
    tool, given = "mcp__holdfast__friendly__echo", "hello from afar"
    asking = asyncio.create_task(desk.claude(tool, {"text": given}, *config, *allowed))
    escalations = desk.home / "sessions"
    while not list(escalations.glob("*/escalations/request-*.json")):
        assert not asking.done(), asking.result()
        await asyncio.sleep(0.05)
    assert "friendly.echo" in await desk.holdfast("approve")
    assert given in await asking


async def test_its_permission_prompt_is_answered_by_the_gate(desk: Desk) -> None:
    proxy = ["-m", "holdfast", "proxy", "--permission-prompt", "-p", str(desk.policy)]
    servers = {"mcpServers": {"holdfast": {"command": sys.executable, "args": proxy}}}
    prompting = (
        *("--mcp-config", json.dumps(servers)),
        *("--permission-prompt-tool", "mcp__holdfast__permission_prompt"),
    )
    await desk.claude("Bash", {"command": "touch allowed"}, *prompting)
    await desk.claude("Bash", {"command": "touch refused"}, *prompting)
    assert (desk.folder / "allowed").exists()
    assert not (desk.folder / "refused").exists()
