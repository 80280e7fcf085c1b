"""The real Claude Code, configured by `holdfast install claude`: its tools do what the gate allows.

Its model is a stub on this machine that uses the tools named in the prompt. The hooks and the proxy run as forks.
"""

import asyncio
import json
import re
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.project import Project
from tests.support.fork_server import forked_python
from tests.support.provider_stub import StubServer
from tests.teams.claude_program import claude_program

from holdfast.commands import probe_sandbox
from holdfast.core import JsonObject, ModelMessage, TextPart, ToolCallPart, Usage
from holdfast.models import Reply

POLICY = """\
policy: lab
rules:
  - {name: inside, allow: "*", roles: [read-path], inside: true}
  - {name: says, escalate: friendly.echo, because: it echoes}
  - {name: shell, allow: claude.Bash, arguments: {command: {one_of: ["touch allowed"]}}}
"""

COMMANDS = """\
  - {name: run, allow: "shell.*"}
  - {name: propose, stage: "world.*", roles: [write-path, delete-path], inside: true}
"""


def respond(body: JsonObject) -> Reply:
    """Use the tools that the prompt names, one after the other; then repeat their results."""
    messages: Any = body["messages"]
    blocks = [
        block
        for message in messages
        if message["role"] == "user"
        for block in (
            [{"type": "text", "text": message["content"]}]
            if isinstance(message["content"], str)
            else message["content"]
        )
    ]
    results = [block["content"] for block in blocks if block["type"] == "tool_result"]
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    wanted = re.findall(r"^use (\S+) (\{.*\})$", text, re.M)
    if len(results) >= len(wanted):
        return _text(f"results: {json.dumps(results)}")
    tool, arguments = wanted[len(results)]
    call = ToolCallPart(id=f"toolu_{len(results)}", tool=tool, arguments=json.loads(arguments))
    return Reply(message=ModelMessage(parts=(call,)), usage=Usage(), finish="tool-calls")


def _text(text: str) -> Reply:
    return Reply(message=ModelMessage(parts=(TextPart(text=text),)), usage=Usage(), finish="stop")


class ClaudeProject(Project):
    """A project whose owner uses Claude Code."""

    def __init__(self, root: Path, stub: StubServer) -> None:
        super().__init__(root)
        self.configure_friendly()
        self.policy = self.home / "lab.yaml"
        self.policy.write_text(POLICY)
        self.program = root / "holdfast"
        self.program.write_text(f'#!/bin/sh\nexec {shlex.join(forked_python("-m", "holdfast"))} "$@"\n')
        self.program.chmod(0o755)
        self.environment |= {
            "ANTHROPIC_BASE_URL": stub.url,
            "ANTHROPIC_API_KEY": "stub-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
        }

    async def install(self, *options: str) -> None:
        """Run `holdfast install claude`, as if our forked program were the installed one."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", [str(self.program)])
            words = ("install", "claude", "-p", str(self.policy), *options)
            installed = await asyncio.to_thread(self.run, *words)
        assert installed.returncode == 0

    async def output_of(self, *command: str) -> str:
        """The output of a program that runs in the project."""
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=self.folder,
            env=self.environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return output.decode()

    async def claude(self, *uses: tuple[str, JsonObject], options: tuple[str, ...] = ()) -> str:
        """Run Claude Code without a terminal and have it use these tools."""
        prompt = "\n".join(f"use {tool} {json.dumps(arguments)}" for tool, arguments in uses)
        return await self.output_of(claude_program(), "-p", prompt, *options)


@pytest.fixture
async def claude_project(tmp_path: Path) -> AsyncIterator[ClaudeProject]:
    claude_program()  # skips the test before anything is opened
    async with StubServer(respond) as stub:
        yield ClaudeProject(tmp_path, stub)


async def test_its_own_tools_do_what_the_gate_allows_and_nothing_else(claude_project: ClaudeProject) -> None:
    await claude_project.install()
    (claude_project.folder / "a.txt").write_text("hello")
    outside = claude_project.home.parent / "outside.txt"
    output = await claude_project.claude(
        ("Read", {"file_path": str(claude_project.folder / "a.txt")}),
        ("Write", {"file_path": str(outside), "content": "x"}),
        options=("--allowedTools", "Read,Write"),  # its own rules allow both; the hook decides
    )
    assert "hello" in output
    assert "no rule" in output or "default" in output
    assert not outside.exists()
    audit = json.loads(await claude_project.output_of(str(claude_project.program), "audit", "--json"))
    assert [(entry["operation"], entry["decision"]["verdict"]) for entry in audit] == [
        ("claude.Read", "allow"),
        ("claude.Write", "deny"),
    ]
    assert "use Write" in await claude_project.output_of(str(claude_project.program), "show")


async def test_its_bash_tool_runs_in_the_sandbox_and_its_edits_become_proposals(
    claude_project: ClaudeProject,
) -> None:
    if (await probe_sandbox(claude_project.home / "probe")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    claude_project.policy.write_text(POLICY + COMMANDS)
    await claude_project.install("--sandbox-bash")
    (claude_project.folder / "a.txt").write_text("hello\n")
    edit, look = "sed -i s/hello/edited/ a.txt", "echo inside: $(cat a.txt)"
    output = await claude_project.claude(("Bash", {"command": edit}), ("Bash", {"command": look}))
    assert "inside: edited" in output
    assert (claude_project.folder / "a.txt").read_text() == "hello\n"
    told = re.search(r"holdfast (proposals show \S+-commands)", output)
    assert told is not None
    staged = await claude_project.output_of(str(claude_project.program), *told[1].split())
    assert "-hello\n+edited" in staged


async def test_a_missing_hook_program_blocks_its_tools(claude_project: ClaudeProject) -> None:
    await claude_project.install()
    claude_project.program.unlink()
    (claude_project.folder / "a.txt").write_text("hello")
    output = await claude_project.claude(
        ("Read", {"file_path": str(claude_project.folder / "a.txt")}), options=("--allowedTools", "Read")
    )
    assert "hello" not in output


async def test_it_accepts_the_configuration_and_its_removal(claude_project: ClaudeProject) -> None:
    holdfast = forked_python("-m", "holdfast")
    await claude_project.output_of(*holdfast, "install", "claude")
    assert "holdfast" in await claude_project.output_of(claude_program(), "mcp", "list")
    await claude_project.output_of(*holdfast, "install", "claude", "--remove")
    assert "No MCP servers" in await claude_project.output_of(claude_program(), "mcp", "list")
    assert not [path for path in (".mcp.json", ".claude") if (claude_project.folder / path).exists()]


async def test_it_reaches_servers_through_the_proxy_and_another_terminal_approves(
    claude_project: ClaudeProject,
) -> None:
    await claude_project.install()
    tool, text = "mcp__holdfast__friendly__echo", "hello from the proxy"
    options = ("--mcp-config", str(claude_project.folder / ".mcp.json"), "--allowedTools", tool)
    claude = asyncio.create_task(claude_project.claude((tool, {"text": text}), options=options))
    while not claude_project.escalations():
        assert not claude.done(), claude.result()
        await asyncio.sleep(0.05)
    assert "friendly.echo" in await claude_project.output_of(str(claude_project.program), "approve")
    assert text in await claude


async def test_the_gate_answers_its_permission_prompt(claude_project: ClaudeProject) -> None:
    arguments = ["proxy", "--permission-prompt", "-p", str(claude_project.policy)]
    servers = {"mcpServers": {"holdfast": {"command": str(claude_project.program), "args": arguments}}}
    options = (
        *("--mcp-config", json.dumps(servers)),
        *("--permission-prompt-tool", "mcp__holdfast__permission_prompt"),
    )
    await claude_project.claude(
        ("Bash", {"command": "touch allowed"}), ("Bash", {"command": "touch refused"}), options=options
    )
    assert (claude_project.folder / "allowed").exists()
    assert not (claude_project.folder / "refused").exists()
