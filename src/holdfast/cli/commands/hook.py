"""Decide about a built-in tool call of Claude Code, as its PreToolUse hook; other hooks record when turns start and end.

  holdfast install claude               write the hook into Claude Code's settings
  echo '{...}' | holdfast hook claude   what Claude Code then runs before every tool call

Allowed and denied calls are answered at once. For a call that needs approval, Claude Code asks its user. Any error here blocks the
tool: the exit code is 2, which Claude Code treats as a denial.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.app import Runtime
from holdfast.cli.commands.proxy import open_runtime
from holdfast.cli.redaction import secret_sources
from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    Failed,
    JsonObject,
    Parked,
    Refused,
    Returned,
    SessionId,
)
from holdfast.core.errors import InvalidInput, SessionHeld, SessionNotFound
from holdfast.gate import GateSettings
from holdfast.mcp import UNJUDGED_TOOLS, ExternalTools, McpFiles, with_default_path
from holdfast.session import ExternalAgentSession, Settings
from holdfast.store import Home

BLOCK = 2
ATTEMPTS = 100
PAUSE_SECONDS = 0.05
"""Several hook processes may run at once; the session admits one at a time."""


class _HookInput(msgspec.Struct):
    """The input of a Claude Code hook."""

    session_id: str
    cwd: str
    hook_event_name: Literal["PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd"] = "PreToolUse"
    tool_name: str = ""
    tool_input: JsonObject = {}
    prompt: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("client", choices=("claude",), help="the client that runs the hook")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")


async def run(arguments: argparse.Namespace) -> int:
    """Answer on stdout; block the tool on any error."""
    try:
        hook_input = msgspec.json.decode(sys.stdin.buffer.read(), type=_HookInput)
        if hook_input.hook_event_name != "PreToolUse":
            return await _record_turn_event(hook_input, arguments.policy)
        if hook_input.tool_name in UNJUDGED_TOOLS or hook_input.tool_name.startswith("mcp__holdfast__"):
            return 0  # no policy decision needed, or the proxy makes it
        answer = await _judge(hook_input, arguments.policy)
    except Exception as problem:  # no error may let the tool run
        print(f"holdfast could not evaluate this call, so it is denied: {problem}", file=sys.stderr)
        return BLOCK
    sys.stdout.write(msgspec.json.encode(_hook_output(answer)).decode() + "\n")
    return 0


async def _record_turn_event(hook_input: _HookInput, policy: str) -> int:
    """Start a turn at a prompt, so that the journal says what the calls were for, and end it with the answer."""
    try:
        async with _running() as runtime:
            if hook_input.hook_event_name == "UserPromptSubmit":
                async with _open_gate(runtime, hook_input, policy) as gate_session:
                    await gate_session.begin(hook_input.prompt)
            elif await _session_exists(runtime, hook_input):
                async with _open_gate(runtime, hook_input, policy) as gate_session:
                    await gate_session.end()
    except Exception as problem:  # no call depends on it, so nothing is blocked
        print(f"holdfast could not record this {hook_input.hook_event_name}: {problem}", file=sys.stderr)
        return 1
    return 0


def _running() -> AbstractAsyncContextManager[Runtime]:
    """A runtime that works without a readable configuration, which is needed only to redact secrets."""
    servers, asking = secret_sources(Home.default().root)
    return open_runtime(Settings(asking=asking), servers)


async def _session_exists(runtime: Runtime, hook_input: _HookInput) -> bool:
    """Whether there is a turn to end: a conversation without a prompt has no session."""
    try:
        await runtime.store.summary(_session(hook_input))
    except SessionNotFound:
        return False
    return True


def _session(hook_input: _HookInput) -> SessionId:
    return SessionId(f"claude-{hook_input.session_id}")


async def _judge(hook_input: _HookInput, policy: str) -> Answer:
    async with _running() as runtime:
        tools = ExternalTools(annotations=McpFiles(runtime.home.root).annotations())
        operation = f"claude.{hook_input.tool_name}"
        known = {tool.name: tool for tool in tools.tools()}.get(operation)
        async with _open_gate(runtime, hook_input, policy, tools) as gate_session:
            call = Call(
                id=await gate_session.next_call(),
                operation=operation,
                arguments=with_default_path(known, hook_input.tool_input, hook_input.cwd),
                principal=EXTERNAL,
            )
            answer = await gate_session.submit(call)
            if isinstance(answer, Parked):
                # Claude Code asks its user and does not report the answer to us.
                await gate_session.withdraw(answer.escalation, "handed to Claude Code to ask its user")
    return answer


@asynccontextmanager
async def _open_gate(
    runtime: Runtime, hook_input: _HookInput, policy: str, *tools: ExternalTools
) -> AsyncIterator[ExternalAgentSession]:
    """The gate session of this Claude Code conversation, once no other process holds it."""
    folder = Path(hook_input.cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidInput(f"{hook_input.cwd!r} is not a folder")
    for attempt in range(ATTEMPTS):
        async with AsyncExitStack() as stack:
            try:
                gate_session = await stack.enter_async_context(
                    runtime.gate(
                        *tools,
                        workspace=folder,
                        transport="hook",
                        description="tools of Claude Code, judged by a hook",
                        policy=policy,
                        session=_session(hook_input),
                        settings=GateSettings(repeats=10_000),
                    )
                )
            except SessionHeld:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                yield gate_session
                return
        await asyncio.sleep(PAUSE_SECONDS)


def _hook_output(answer: Answer) -> JsonObject:
    match answer:
        case Returned():
            decision, reason = "allow", "allowed by policy"
        case Refused():
            decision, reason = "deny", f"{answer.reason} (rule {answer.rule})"
        case Failed():
            decision, reason = "deny", answer.reason
        case Parked():
            decision, reason = "ask", "Holdfast's policy requires approval for this call"
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }
