"""Inputs of `holdfast policy`: the tools of a home, the call given on the command line, and the calls of a journal.

No MCP server is started. Its tools are the ones last accepted, plus the annotations that ship for well-known servers.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from holdfast.core import Call, JsonObject, Location, Paths, SessionId, Tool, call_id
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationOpened,
    RecordedEvent,
    SessionOpened,
    SessionReconfigured,
    SessionRewound,
)
from holdfast.mcp import McpFiles, kind_of
from holdfast.policy import LexicalPaths, RecordedCall, Request, Resolver, RulePolicy, annotate, tool_for
from holdfast.store import Home
from holdfast.world import WorldPaths


def known_tools(home: Home) -> dict[str, Tool]:
    """The tools of a home by operation. Raises InvalidConfig if a file of the home cannot be read."""
    mcp_files = McpFiles(home.root)
    annotations = mcp_files.annotations()
    found = {tool.name: tool for tool in annotations.tools()}
    for spec in mcp_files.servers():
        for kind in (kind_of(spec), spec.roles, spec.name):
            for verb, roles in annotations.server(kind).items():
                name = f"{spec.name}.{verb}"
                found[name] = Tool(name=name, roles=roles.arguments)
        pinned = mcp_files.pins.server(spec.name)
        for definition in pinned.tools.values() if pinned is not None else ():
            tool = annotations.apply(spec, definition)
            found[tool.name] = tool
    return found


def with_tools(policy: RulePolicy, home: Home, *, is_annotated: bool) -> RulePolicy:
    """The policy with the tools of this home. Annotations from a file take precedence over the home; annotations inside a
    policy do not, as at the gate."""
    document = policy.document
    known = {name: annotate(tool, policy) for name, tool in known_tools(home).items()}
    is_first = is_annotated or document.source.endswith(".json")
    tools = known | document.tools if is_first else document.tools | known
    return RulePolicy(msgspec.structs.replace(document, tools=tools))


async def request_for(
    policy: RulePolicy, text: str, *, workspace: Path, protected: Sequence[Path]
) -> Request:
    """The request for a call given as JSON, its targets resolved on this machine. Raises InvalidInput."""
    call = _call(text)
    tool = tool_for(policy, call.operation)
    paths: Paths = WorldPaths(workspace.resolve(), protected=[one.absolute() for one in protected])
    if not call.operation.startswith("world."):
        paths = _ToolPaths(paths)
    targets = await Resolver().targets(tool, call.arguments, paths) if tool is not None else ()
    return Request(call=call, tool=tool, targets=targets)


class _ToolPaths:
    """Paths as external tools read them: `~` is the home folder."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def locate(self, given: str) -> Location:
        return self._paths.locate(os.path.expanduser(given) if given.startswith("~") else given)


class _CallForm(msgspec.Struct):
    """A call in our form, or in one of IronCurtain's two."""

    operation: str = ""
    arguments: JsonObject = {}
    server: str = ""
    tool: str = ""
    args: JsonObject = {}
    server_name: str = msgspec.field(name="serverName", default="")
    tool_name: str = msgspec.field(name="toolName", default="")


def _call(text: str) -> Call:
    hint = 'expected {"operation": "world.read", "arguments": {"path": "a.txt"}}'
    try:
        form = msgspec.json.decode(text, type=_CallForm)
    except msgspec.DecodeError as error:
        raise InvalidInput(f"--call is not a valid call: {error}", hint=hint) from None
    operation = form.operation or f"{form.server or form.server_name}.{form.tool or form.tool_name}"
    if operation == ".":
        raise InvalidInput("--call names no operation", hint=hint)
    return Call(id=call_id(1, 1), operation=operation, arguments=form.arguments or form.args)


_HANDLED = frozenset(
    {SessionOpened, SessionReconfigured, SessionRewound, EscalationOpened, CallRefused, CallIntended}
)


class RecordedCalls:
    """Finds the recorded calls of many journals, with the policy's first decision. A call that forks share is found once."""

    def __init__(self, workspace: Callable[[SessionId], Path]) -> None:
        self._workspace = workspace
        """The default workspace of a session."""
        self._home = str(Path.home())
        self._ends: dict[SessionId, int] = {}
        """The last known sequence number of each session. A fork that has an event has all events before it."""

    def find(self, recorded: Iterable[RecordedEvent]) -> Iterator[RecordedCall]:
        """Each call with the policy's first decision, which is escalate even if the escalation was answered or impossible.

        Calls that the gate refused by itself, for their shape or the budget, never reached the policy and are left out.
        """
        asked: set[str] = set()
        paths = LexicalPaths()
        for entry in recorded:
            if type(entry.event) not in _HANDLED:  # most events, and cheaper than to match them
                continue
            is_new = entry.seq > self._ends.get(entry.session, 0)
            if is_new:
                self._ends[entry.session] = entry.seq
            match event := entry.event:
                case SessionOpened():
                    folder = event.workspace or str(self._workspace(entry.session))
                    paths = LexicalPaths(folder, home=self._home)
                case SessionReconfigured(workspace=folder) if folder:
                    paths = LexicalPaths(folder, home=self._home)
                case SessionRewound():
                    asked.clear()  # later calls reuse the ids
                case EscalationOpened(escalation=escalation):
                    asked.add(escalation.call.id)
                    if is_new:
                        yield RecordedCall(escalation.call, escalation.decision, entry.session, paths)
                case CallRefused() | CallIntended() if is_new and event.call.id not in asked:
                    decision = event.decision
                    if decision.source.endswith("(no-handler)"):
                        decision = msgspec.structs.replace(decision, verdict="escalate")
                    if decision.source != "gate":
                        yield RecordedCall(event.call, decision, entry.session, paths)
                case _:
                    pass
