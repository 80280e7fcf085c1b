"""What a policy is asked about: the known tools, a call given as JSON, and the recorded calls of a journal.

No server is started. Tools of MCP servers are taken from their accepted definitions and the shipped annotations.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from holdfast.commands import PACKAGE_REGISTRIES, SystemSandboxes, find_registries
from holdfast.core import (
    MAX_DEPTH,
    Call,
    Json,
    JsonObject,
    Location,
    Paths,
    SandboxTier,
    SessionId,
    Tool,
    call_id,
    is_too_deep,
)
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
from holdfast.gate import own_endpoints
from holdfast.policy import (
    LexicalPaths,
    RecordedCall,
    Request,
    Resolver,
    RulePolicy,
    SessionFacts,
    annotate,
    has_tier,
    policy_files,
    tool_for,
    with_own_server,
)
from holdfast.store import Home
from holdfast.world import WorldPaths


def known_tools(home: Home) -> dict[str, Tool]:
    """The known tools by operation. Raises InvalidConfig if a file in the data directory cannot be read."""
    from holdfast.mcp import McpFiles, kind_of  # here, because a chat without servers does not load it

    files = McpFiles(home.root)
    annotations = files.annotations()
    found = {tool.name: tool for tool in annotations.tools()}
    for spec in files.servers():
        for kind in (kind_of(spec), spec.roles, spec.name):
            for verb, roles in annotations.server(kind).items():
                name = f"{spec.name}.{verb}"
                found[name] = Tool(name=name, roles=roles.arguments)
        pinned = files.pins.server(spec.name)
        for definition in pinned.tools.values() if pinned is not None else ():
            tool = annotations.apply(spec, definition)
            found[tool.name] = tool
    return found


def with_known_tools(policy: RulePolicy, home: Home, *, is_annotated: bool) -> RulePolicy:
    """The policy with the known tools added. Annotations passed by option or stored beside a compiled policy take precedence
    over the known tools; those inside a policy do not, as at the gate."""
    document = policy.document
    known = {name: annotate(tool, policy) for name, tool in known_tools(home).items()}
    is_first = is_annotated or document.source.endswith(".json")
    tools = known | document.tools if is_first else document.tools | known
    return RulePolicy(msgspec.structs.replace(document, tools=tools))


async def request_for(
    policy: RulePolicy,
    text: str,
    *,
    workspace: Path,
    protected: Sequence[Path],
    tier: SandboxTier | None,
    home: Home,
) -> Request:
    """Parse a call from JSON and resolve its targets as of now, with the facts that a session on this machine has.

    Without `tier`, a program is judged for the sandbox of this machine. Raises InvalidInput.
    """
    call = _call(text)
    tool = tool_for(policy, call.operation)
    paths: Paths = WorldPaths(
        workspace.resolve(),
        protected=[one.absolute() for one in protected],
        closed_files=policy_files(policy.document.source),
    )
    if not call.operation.startswith("world."):
        paths = _HomeExpandingPaths(paths)
    if tool is None:
        return Request(call=call, tool=None)
    targets = await Resolver().targets(tool, call.arguments, paths)
    if tier is None and has_tier(tool):
        home.prepare()
        tier = (await SystemSandboxes(home.cache).probe()).tier
    facts = SessionFacts(
        tier=tier,
        host_groups=lambda: {
            PACKAGE_REGISTRIES: find_registries(os.environ, home=Path.home(), workspace=workspace).hosts
        },
    )
    known = with_own_server(facts.for_call(tool, targets), targets, partial(own_endpoints, home))
    return Request(call=call, tool=tool, targets=targets, facts=known)


class _HomeExpandingPaths:
    """Resolves paths as external tools do: `~` is the user's home directory."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def locate(self, given: str) -> Location:
        return self._paths.locate(os.path.expanduser(given) if given.startswith("~") else given)

    def locate_name(self, given: str) -> Location:
        return self._paths.locate_name(given)

    def closed_below(self, location: Location) -> str | None:
        return self._paths.closed_below(location)

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        return [self.locate(each) for each in given]


class _CallForm(msgspec.Struct):
    """A call in our JSON form, or in one of IronCurtain's two."""

    operation: str = ""
    arguments: JsonObject = {}
    server: str = ""
    tool: str = ""
    args: JsonObject = {}
    server_name: str = msgspec.field(name="serverName", default="")
    tool_name: str = msgspec.field(name="toolName", default="")
    origins: Json = msgspec.field(name="from", default=None)
    author: Json = None


def _call(text: str) -> Call:
    hint = 'expected {"operation": "world.read", "arguments": {"path": "a.txt"}}'
    try:
        form = msgspec.json.decode(text, type=_CallForm)
    except RecursionError:
        raise InvalidInput(f"--call is nested more than {MAX_DEPTH} levels deep", hint=hint) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInput(f"--call is not a valid call: {error}", hint=hint) from None
    operation = form.operation or f"{form.server or form.server_name}.{form.tool or form.tool_name}"
    if operation == ".":
        raise InvalidInput("--call does not name an operation", hint=hint)
    if form.origins is not None or form.author is not None:
        raise InvalidInput(
            "--call does not say where its arguments came from",
            hint="use the options --from ARGUMENT=LEVEL and --author LEVEL",
        )
    arguments = form.arguments or form.args
    if is_too_deep(arguments):
        raise InvalidInput(f"--call is nested more than {MAX_DEPTH} levels deep", hint=hint)
    return Call(id=call_id(1, 1), operation=operation, arguments=arguments)


_HANDLED = frozenset(
    {SessionOpened, SessionReconfigured, SessionRewound, EscalationOpened, CallRefused, CallIntended}
)


class RecordedCalls:
    """Finds the calls in one journal after another. A call that forks share is found once."""

    def __init__(self, workspace: Callable[[SessionId], Path]) -> None:
        self._workspace = workspace
        """The workspace of a session that does not name one."""
        self._home = str(Path.home())
        self._ends: dict[SessionId, int] = {}
        """The last event seen of each session. A journal that has an event has all events before it."""

    def find(self, recorded: Iterable[RecordedEvent]) -> Iterator[RecordedCall]:
        """Yield each call with the policy's first decision: an escalation counts as one even if it was answered or nobody could
        be asked.

        Calls that the gate itself refused, because of their shape or the budget, never reached a policy and are left out.
        """
        asked: set[str] = set()
        paths = LexicalPaths()
        for entry in recorded:
            if type(entry.event) not in _HANDLED:  # most events; the match statement is slower
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
                    asked.clear()  # later calls reuse these ids
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
