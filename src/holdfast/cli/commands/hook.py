"""Judge the built-in tools of Claude Code as its PreToolUse hook; its other hooks report when a turn starts, ends or waits.

  holdfast install claude               add the hook to Claude Code's settings
  echo '{...}' | holdfast hook claude   what Claude Code runs before every tool

With --sandbox-bash its Bash tool runs in the command sandbox: your files stay as they are, and `holdfast proposals` shows what
its commands changed.

The hook allows or denies a call at once. If the policy requires approval, Claude Code asks its user. Any error blocks
the tool: the exit code is then 2, which Claude Code treats as a denial. While Claude Code waits for its user, the targets of
[notify] in config.toml get a notification.
"""

import argparse
import asyncio
import os
import shlex
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

import msgspec

from holdfast.app import Runtime
from holdfast.cli.commands.proxy import open_runtime
from holdfast.cli.redaction import secret_sources
from holdfast.commands import MAX_TIMEOUT_SECONDS
from holdfast.config import load_config
from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    Failed,
    Json,
    JsonObject,
    Parked,
    Refused,
    Returned,
    SessionId,
    SystemClock,
)
from holdfast.core.approval_text import describe_effect, describe_reason
from holdfast.core.errors import InvalidInput, SessionHeld, SessionNotFound
from holdfast.gate import GateSettings
from holdfast.mcp import UNJUDGED_TOOLS, ExternalTools, McpFiles, client_files, with_default_path
from holdfast.process.own_command import module_command
from holdfast.services import NotificationSender, agent_waits
from holdfast.session import ExternalAgentSession, Settings
from holdfast.store import Home

BLOCK_EXIT_CODE = 2
MAX_ATTEMPTS = 100
PAUSE_SECONDS = 0.05
"""Claude Code may run several hooks at once, each in its own process; the session accepts one at a time."""
DEFAULT_BASH_MS, MAX_BASH_MS = 120_000, 600_000
"""How long Claude Code waits for a command, and how long at most, unless its environment says otherwise."""
BASH_MARGIN_MS = 30_000
"""For the start of the sandbox, the wait for another command, and the collection of what the program changed."""


class _HookInput(msgspec.Struct):
    """What Claude Code sends to a hook."""

    session_id: str
    cwd: str
    hook_event_name: Literal["PreToolUse", "UserPromptSubmit", "Stop", "SessionEnd", "Notification"] = (
        "PreToolUse"
    )
    tool_name: str = ""
    tool_input: JsonObject = {}
    prompt: str = ""
    notification_type: str = ""
    message: str = ""


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument("client", choices=("claude",), help="the program that runs the hook")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")
    parser.add_argument(
        "--sandbox-bash",
        action="store_true",
        help="run commands of the Bash tool in the command sandbox, so that what they change becomes proposals",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Print the decision; block the tool on any error."""
    try:
        request = msgspec.json.decode(sys.stdin.buffer.read(), type=_HookInput)
        if request.hook_event_name == "Notification":
            return await _notify(request)
        if request.hook_event_name != "PreToolUse":
            return await _record_turn(request, arguments.policy)
        if request.tool_name in UNJUDGED_TOOLS or request.tool_name.startswith("mcp__holdfast__"):
            return 0  # nothing to judge, or the proxy judges it
        if arguments.sandbox_bash and request.tool_name == "Bash":
            sys.stdout.write(msgspec.json.encode(_sandboxed(request, arguments.policy)).decode() + "\n")
            return 0
        answer, question = await _judge(request, arguments.policy)
    except Exception as problem:  # no error may let the tool run
        print(f"holdfast could not judge this call, so it is denied: {problem}", file=sys.stderr)
        return BLOCK_EXIT_CODE
    sys.stdout.write(msgspec.json.encode(_hook_output(answer, question)).decode() + "\n")
    return 0


async def _record_turn(request: _HookInput, policy: str) -> int:
    """Start a turn with the user's prompt, so that the record shows what the calls were for; or end it."""
    try:
        async with _open_runtime() as runtime:
            if request.hook_event_name == "UserPromptSubmit":
                async with _open_gate(runtime, request, policy) as gate:
                    await gate.begin(request.prompt)
            elif await _session_exists(runtime, request):
                async with _open_gate(runtime, request, policy) as gate:
                    await gate.end()
    except Exception as problem:  # nothing to allow here, so nothing to block
        print(f"holdfast could not record this {request.hook_event_name}: {problem}", file=sys.stderr)
        return 1
    return 0


async def _notify(request: _HookInput) -> int:
    """Tell the targets of notifications that Claude Code waits for its user, who looks elsewhere."""
    if request.notification_type not in ("", "permission_prompt", "elicitation_dialog"):
        return 0
    home, clock = Home.default(), SystemClock()
    sender = NotificationSender(load_config(home).notify.targets, home=home, environ=os.environ, clock=clock)
    folder = Path(request.cwd).name
    sender.post(agent_waits(_session_id(request), "Claude Code", folder, request.message, clock.now_ms()))
    await sender.close()
    return 0


def _open_runtime() -> AbstractAsyncContextManager[Runtime]:
    """Open the runtime. Only the secrets to redact are read from the configuration, so a broken one blocks no tool."""
    servers, found = secret_sources(Home.default().root)
    settings = Settings(model_requests=found.model_requests, notify=found.notify, messengers=found.messengers)
    return open_runtime(settings, servers)


async def _session_exists(runtime: Runtime, request: _HookInput) -> bool:
    """Whether the conversation has a session; one without a prompt has none."""
    try:
        await runtime.store.summary(_session_id(request))
    except SessionNotFound:
        return False
    return True


def _session_id(request: _HookInput) -> SessionId:
    return SessionId(f"claude-{request.session_id}")


async def _judge(request: _HookInput, policy: str) -> tuple[Answer, str]:
    """The answer, and for a question what Claude Code shows to its user."""
    async with _open_runtime() as runtime:
        tools = ExternalTools(annotations=McpFiles(runtime.home.root).annotations())
        operation = f"claude.{request.tool_name}"
        known = {tool.name: tool for tool in tools.tools()}.get(operation)
        async with _open_gate(runtime, request, policy, tools) as gate:
            call = Call(
                id=await gate.next_call(),
                operation=operation,
                arguments=with_default_path(known, request.tool_input, request.cwd),
                principal=EXTERNAL,
            )
            answer, question = await gate.submit(call), ""
            if isinstance(answer, Parked):
                if (asked := gate.escalation(answer.escalation)) is not None:
                    question = f"{describe_effect(asked)}. Holdfast asks: {describe_reason(asked)}"
                # Claude Code asks its own user and does not report the answer, so the record claims none.
                await gate.withdraw(answer.escalation, "left to Claude Code, which asks its user")
    return answer, question


@asynccontextmanager
async def _open_gate(
    runtime: Runtime, request: _HookInput, policy: str, *tools: ExternalTools
) -> AsyncIterator[ExternalAgentSession]:
    """Open the gate of this conversation once no other process holds its session."""
    folder = Path(request.cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidInput(f"{request.cwd!r} is not a folder")
    for attempt in range(MAX_ATTEMPTS):
        async with AsyncExitStack() as stack:
            try:
                gate = await stack.enter_async_context(
                    runtime.gate(
                        *tools,
                        workspace=folder,
                        transport="hook",
                        description="tools of Claude Code, judged by a hook",
                        policy=policy,
                        session=_session_id(request),
                        settings=GateSettings(max_repeats=10_000),
                        closed_files=client_files(folder, Path.home(), *_project_folder()),
                    )
                )
            except SessionHeld:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
            else:
                yield gate
                return
        await asyncio.sleep(PAUSE_SECONDS)


def _project_folder() -> tuple[Path, ...]:
    """The folder that Claude Code was started in; it may have changed to another since."""
    given = os.environ.get("CLAUDE_PROJECT_DIR", "")
    return (Path(given),) if os.path.isabs(given) else ()


def _sandboxed(request: _HookInput, policy: str) -> JsonObject:
    """The Bash call, rewritten to run in the sandbox. `holdfast run` judges the command and what it changes."""
    command = request.tool_input.get("command")
    if not isinstance(command, str):
        raise InvalidInput("the Bash tool was called without a command")
    if request.tool_input.get("run_in_background"):
        reason = (
            "a command in the background would keep the sandbox from every other command; run it to its end, or start "
            "it with the tool shell__start of `holdfast proxy --shell`"
        )
        return _decision("deny", reason)
    session = f"{_session_id(request)}-commands"
    milliseconds, given = _time_limits(request.tool_input.get("timeout"))
    where = ("--in", session, "-w", request.cwd, "-p", policy, "--timeout", f"{milliseconds / 1000:g}")
    words = (*module_command(), "run", *where, "--", command)
    rewritten: JsonObject = {**request.tool_input, "command": shlex.join(words), "timeout": given}
    return _decision("allow", "it runs in the sandbox of Holdfast", updatedInput=rewritten)


def _time_limits(asked: Json) -> tuple[int, int]:
    """How long the program may run, and how long Claude Code is to wait for it, in milliseconds.

    Claude Code moves a command that takes longer into the background, where it would keep the sandbox from every other one.
    So the sandbox stops the program first.
    """
    usual = _milliseconds("BASH_DEFAULT_TIMEOUT_MS", DEFAULT_BASH_MS)
    longest = max(_milliseconds("BASH_MAX_TIMEOUT_MS", MAX_BASH_MS), usual)
    wanted = int(asked) if isinstance(asked, int | float) and asked > 0 else usual
    margin = min(BASH_MARGIN_MS, longest // 2)
    given = min(wanted + margin, longest)
    return min(max(given - margin, 1000), MAX_TIMEOUT_SECONDS * 1000), given


def _milliseconds(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) > 0 else default


def _hook_output(answer: Answer, question: str) -> JsonObject:
    match answer:
        case Returned():
            decision, reason = "allow", "allowed by policy"
        case Refused():
            decision, reason = "deny", f"{answer.reason} (rule {answer.rule})"
        case Failed():
            decision, reason = "deny", answer.reason
        case Parked():
            decision, reason = "ask", question or "Holdfast's policy requires approval for this call"
    return _decision(decision, reason)


def _decision(decision: str, reason: str, **more: Json) -> JsonObject:
    return {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
            **more,
        }
    }
