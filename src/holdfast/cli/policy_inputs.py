"""The calls of a journal with what the policy of the day said of them, to be judged anew.

The tools of a home without starting anything: of its MCP servers as they were last accepted, and what ships of well-known ones.

A call as it is typed at the command line, ready to be judged.
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
    """By operation. Raises InvalidConfig where a file of the home cannot be read."""
    shelf = McpFiles(home.root)
    annotations = shelf.annotations()
    found = {tool.name: tool for tool in annotations.tools()}
    for spec in shelf.servers():
        for kind in (kind_of(spec), spec.roles, spec.name):
            for verb, roles in annotations.server(kind).items():
                name = f"{spec.name}.{verb}"
                found[name] = Tool(name=name, roles=roles.arguments)
        pinned = shelf.pins.server(spec.name)
        for definition in pinned.tools.values() if pinned is not None else ():
            tool = annotations.apply(spec, definition)
            found[tool.name] = tool
    return found


def with_known_tools(policy: RulePolicy, home: Home, *, is_annotated: bool) -> RulePolicy:
    """The policy with the tools of this home. Annotations that were given, or lie beside a compiled policy, go first; those
    within a policy, last, as at the gate."""
    document = policy.document
    known = {name: annotate(tool, policy) for name, tool in known_tools(home).items()}
    is_first = is_annotated or document.source.endswith(".json")
    tools = known | document.tools if is_first else document.tools | known
    return RulePolicy(msgspec.structs.replace(document, tools=tools))


async def request_for(
    policy: RulePolicy, text: str, *, workspace: Path, protected: Sequence[Path]
) -> Request:
    """The call in a text, its targets resolved as they are now. Raises InvalidInput."""
    call = _call(text)
    tool = tool_for(policy, call.operation)
    paths: Paths = WorldPaths(workspace.resolve(), protected=[one.absolute() for one in protected])
    if not call.operation.startswith("world."):
        paths = _HomeExpandingPaths(paths)
    targets = await Resolver().targets(tool, call.arguments, paths) if tool is not None else ()
    return Request(call=call, tool=tool, targets=targets)


class _HomeExpandingPaths:
    """Paths as tools that open them by themselves read them: `~` is the home folder."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def locate(self, given: str) -> Location:
        return self._paths.locate(os.path.expanduser(given) if given.startswith("~") else given)


class _CallForm(msgspec.Struct):
    """Our form of a call, and IronCurtain's two."""

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
        raise InvalidInput(f"--call is no call: {error}", hint=hint) from None
    operation = form.operation or f"{form.server or form.server_name}.{form.tool or form.tool_name}"
    if operation == ".":
        raise InvalidInput("--call names no operation", hint=hint)
    return Call(id=call_id(1, 1), operation=operation, arguments=form.arguments or form.args)


_HANDLED = frozenset(
    {SessionOpened, SessionReconfigured, SessionRewound, EscalationOpened, CallRefused, CallIntended}
)


class RecordedCalls:
    """Finds the calls in one journal after the other; one that forks share is found once."""

    def __init__(self, workspace: Callable[[SessionId], Path]) -> None:
        self._workspace = workspace
        """Of a session that names none."""
        self._home = str(Path.home())
        self._ends: dict[SessionId, int] = {}
        """How far the events that a session wrote are known. Whoever has some of them has all before."""

    def find(self, recorded: Iterable[RecordedEvent]) -> Iterator[RecordedCall]:
        """Each call with the first word of the policy: an escalation was one though it was answered, or nobody could be asked.

        What the gate itself refused, for its shape or for want of budget, no policy was asked about.
        """
        asked: set[str] = set()
        paths = LexicalPaths()
        for entry in recorded:
            if type(entry.event) not in _HANDLED:  # as most are; to match them takes longer
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
                    asked.clear()  # the numbers of its calls are given to others
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
