"""Judge a built-in tool of Claude Code, as its PreToolUse hook.

  holdfast install claude               writes the hook into Claude Code's settings
  echo '{...}' | holdfast hook claude   what Claude Code then does before every tool

Allowed and denied calls are answered at once; what needs a person is handed to Claude Code to ask. Whatever goes wrong
here blocks the tool: the exit code is 2, which is what Claude Code takes for a no.
"""

import argparse
import asyncio
import sys
from pathlib import Path

import msgspec

from holdfast.cli.commands.proxy import TURN, begin
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
    SystemClock,
    call_id,
    check_session_id,
)
from holdfast.core.errors import InvalidInput, SessionExists, SessionHeld
from holdfast.core.events import CallIntended, CallRefused, EscalationOpened, SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.mcp import SILENT_TOOLS, ForeignTools, Shelf, written_out
from holdfast.policy import load_policy
from holdfast.store import EmbeddedStore, Home, Journal
from holdfast.world import WorldPaths

BLOCK = 2
ATTEMPTS = 100
PAUSE_SECONDS = 0.05
"""Several tools may be asked about at once, each by a process of its own; the session takes them one by one."""


class _Asked(msgspec.Struct):
    """What Claude Code sends to a PreToolUse hook."""

    session_id: str
    cwd: str
    tool_name: str
    tool_input: JsonObject
    hook_event_name: str = "PreToolUse"


def configure(parser: argparse.ArgumentParser) -> None:
    """Whose hook."""
    parser.add_argument("client", choices=("claude",), help="whose hook it is")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", default="project", help="default: project")


async def run(arguments: argparse.Namespace) -> int:
    """Answer on stdout; block on any trouble."""
    try:
        asked = msgspec.json.decode(sys.stdin.buffer.read(), type=_Asked)
        if asked.tool_name in SILENT_TOOLS or asked.tool_name.startswith("mcp__holdfast__"):
            return 0  # nothing to judge, or judged by the proxy: no opinion
        answer = await _judge(asked, arguments.policy)
    except Exception as problem:  # whatever it is, it must not let the tool run
        print(f"holdfast could not judge this call, so it is a no: {problem}", file=sys.stderr)
        return BLOCK
    sys.stdout.write(msgspec.json.encode(_in_its_words(answer)).decode() + "\n")
    return 0


async def _judge(asked: _Asked, policy_name: str) -> Answer:
    home, clock = Home.default(), SystemClock()
    home.prepare()
    folder = Path(asked.cwd)
    if not folder.is_absolute() or not folder.is_dir():
        raise InvalidInput(f"{asked.cwd!r} is no folder")
    policy = load_policy(policy_name, search=(home.policies,))
    tools = ForeignTools(annotations=Shelf(home.root).annotations())
    store = await EmbeddedStore.start(home, clock=clock)
    try:
        opened = SessionOpened(
            principal=EXTERNAL,
            folder=str(folder),
            workspace=str(folder),
            policy=policy_name,
            policy_digest=policy.digest,
            model="",
            description="tools of Claude Code, judged by a hook",
        )
        journal = await _take(store, check_session_id(f"claude-{asked.session_id}"), opened)
        gate = Gate(
            journal=journal,
            policy=policy,
            toolsets=[tools],
            paths=WorldPaths(folder, protected=(home.root,), guest_root=None),
            clock=clock,
            settings=GateSettings(repeats=10_000),
        )
        operation = f"claude.{asked.tool_name}"
        known = {tool.name: tool for tool in tools.tools()}.get(operation)
        call = Call(
            id=call_id(TURN, _calls(journal) + 1),
            operation=operation,
            arguments=written_out(known, asked.tool_input, str(folder)),
            principal=EXTERNAL,
        )
        answer = await gate.submit(call)
        if isinstance(answer, Parked):
            # Claude Code asks its own person; what they say is not told to us, and we do not claim to know it.
            await gate.escalations.expire(answer.escalation, "handed to Claude Code to ask its person")
        await journal.release()
    finally:
        await store.close()
    return answer


async def _take(store: EmbeddedStore, session: SessionId, opened: SessionOpened) -> Journal:
    for attempt in range(ATTEMPTS):
        try:
            journal = await store.create(opened, session=session)
        except SessionExists:
            pass
        else:
            await begin(journal)
            return journal
        try:
            return await store.open(session)
        except SessionHeld:
            if attempt == ATTEMPTS - 1:
                raise
            await asyncio.sleep(PAUSE_SECONDS)
    raise AssertionError("unreachable")


def _calls(journal: Journal) -> int:
    """How many calls the session has seen."""
    ids = {
        entry.event.escalation.call.id if isinstance(entry.event, EscalationOpened) else entry.event.call.id
        for entry in journal.recorded
        if isinstance(entry.event, CallIntended | CallRefused | EscalationOpened)
    }
    return len(ids)


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
