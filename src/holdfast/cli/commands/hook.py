"""Judge a built-in tool of Claude Code, as its PreToolUse hook; its other hooks say when a turn begins and ends.

  holdfast install claude               writes the hook into Claude Code's settings
  echo '{...}' | holdfast hook claude   what Claude Code then does before every tool

Allowed and denied calls are answered at once; what needs a person is handed to Claude Code to ask. Whatever goes wrong
here blocks the tool: the exit code is 2, which is what Claude Code takes for a no.
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
from holdfast.cli.commands.proxy import running
from holdfast.cli.redaction import who_has_keys
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
"""Several tools may be asked about at once, each by a process of its own; the session takes them one by one."""


class _Asked(msgspec.Struct):
    """What Claude Code sends to a hook."""

    session_id: str
    cwd: str
    hook_event_name: Literal["PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd"] = "PreToolUse"
    tool_name: str = ""
    tool_input: JsonObject = {}
    prompt: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Whose hook."""
    parser.add_argument("client", choices=("claude",), help="whose hook it is")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")


async def run(arguments: argparse.Namespace) -> int:
    """Answer on stdout; block on any trouble."""
    try:
        asked = msgspec.json.decode(sys.stdin.buffer.read(), type=_Asked)
        if asked.hook_event_name != "PreToolUse":
            return await _note(asked, arguments.policy)
        if asked.tool_name in UNJUDGED_TOOLS or asked.tool_name.startswith("mcp__holdfast__"):
            return 0  # nothing to judge, or judged by the proxy: no opinion
        answer = await _judge(asked, arguments.policy)
    except Exception as problem:  # whatever it is, it must not let the tool run
        print(f"holdfast could not judge this call, so it is a no: {problem}", file=sys.stderr)
        return BLOCK
    sys.stdout.write(msgspec.json.encode(_in_its_words(answer)).decode() + "\n")
    return 0


async def _note(asked: _Asked, policy: str) -> int:
    """What the person asked for begins a turn, so that the record says what the calls were for; an answer ends it."""
    try:
        async with _running() as runtime:
            if asked.hook_event_name == "UserPromptSubmit":
                async with _kept(runtime, asked, policy) as keeper:
                    await keeper.begin(asked.prompt)
            elif await _is_begun(runtime, asked):
                async with _kept(runtime, asked, policy) as keeper:
                    await keeper.end()
    except Exception as problem:  # nothing was to be allowed here, so nothing is held up
        print(f"holdfast could not note this {asked.hook_event_name}: {problem}", file=sys.stderr)
        return 1
    return 0


def _running() -> AbstractAsyncContextManager[Runtime]:
    """A configuration that cannot be read stops no tool: all that is taken of it is what to keep out of the record."""
    servers, asking = who_has_keys(Home.default().root)
    return running(Settings(asking=asking), servers)


async def _is_begun(runtime: Runtime, asked: _Asked) -> bool:
    """Whether there is anything to end: a conversation that was left before a word was said is no session."""
    try:
        await runtime.store.summary(_session(asked))
    except SessionNotFound:
        return False
    return True


def _session(asked: _Asked) -> SessionId:
    return SessionId(f"claude-{asked.session_id}")


async def _judge(asked: _Asked, policy: str) -> Answer:
    async with _running() as runtime:
        tools = ExternalTools(annotations=McpFiles(runtime.home.root).annotations())
        operation = f"claude.{asked.tool_name}"
        known = {tool.name: tool for tool in tools.tools()}.get(operation)
        async with _kept(runtime, asked, policy, tools) as keeper:
            call = Call(
                id=await keeper.next_call(),
                operation=operation,
                arguments=with_default_path(known, asked.tool_input, asked.cwd),
                principal=EXTERNAL,
            )
            answer = await keeper.submit(call)
            if isinstance(answer, Parked):
                # Claude Code asks its own person; what they say is not told to us, and we do not claim to know it.
                await keeper.withdraw(answer.escalation, "handed to Claude Code to ask its person")
    return answer


@asynccontextmanager
async def _kept(
    runtime: Runtime, asked: _Asked, policy: str, *tools: ExternalTools
) -> AsyncIterator[ExternalAgentSession]:
    """The gate of this conversation of Claude Code, once no other process has it."""
    folder = Path(asked.cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidInput(f"{asked.cwd!r} is no folder")
    for attempt in range(ATTEMPTS):
        async with AsyncExitStack() as stack:
            try:
                keeper = await stack.enter_async_context(
                    runtime.gate(
                        *tools,
                        workspace=folder,
                        transport="hook",
                        description="tools of Claude Code, judged by a hook",
                        policy=policy,
                        session=_session(asked),
                        settings=GateSettings(max_repeats=10_000),
                    )
                )
            except SessionHeld:
                if attempt == ATTEMPTS - 1:
                    raise
            else:
                yield keeper
                return
        await asyncio.sleep(PAUSE_SECONDS)


def _in_its_words(answer: Answer) -> JsonObject:
    match answer:
        case Returned():
            decision, reason = "allow", "allowed by policy"
        case Refused():
            decision, reason = "deny", f"{answer.reason} (rule {answer.rule})"
        case Failed():
            decision, reason = "deny", answer.reason
        case Parked():
            decision, reason = "ask", "Holdfast's policy wants a person's yes for this"
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }
    }
