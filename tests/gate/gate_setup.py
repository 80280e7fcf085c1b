"""A gate over one journal with a tool that reads paths and a person who can be asked, for the bypass tests."""

from collections.abc import Callable

from holdfast.core import (
    PERSON,
    ArgumentRoles,
    Call,
    FakeClock,
    FunctionToolset,
    Json,
    JsonObject,
    Limits,
    Parked,
    Paths,
    Response,
    Tool,
    call_id,
)
from holdfast.core.events import (
    MessagePosted,
    SessionOpened,
)
from holdfast.gate import Gate, GateSettings, SavedGrants
from holdfast.guests import script
from holdfast.models import use
from holdfast.policy import FixedPolicy, LexicalPaths, Policy
from holdfast.store import Journal, MemoryStore, Store

TEXT: JsonObject = {"type": "string"}
PATHS: JsonObject = {"type": "array", "items": TEXT}
READ = Tool(
    name="files.read",
    parameters={"type": "object", "properties": {"paths": PATHS}, "required": ["paths"]},
    roles={"paths": ArgumentRoles(default=("read-path",))},
)
YES = Response(verdict="approve")
ASKS = use(
    "execute_code",
    {"code": script({"call": "world.write", "arguments": {"path": "a", "content": ""}})},
)
"""A reply of the model that ends in a question to the person."""


def read(*paths: str, number: int = 1, turn: int = 1) -> Call:
    return Call(id=call_id(turn, number), operation=READ.name, arguments={"paths": list(paths)})


class GateSetup:
    """A gate over one journal with one tool that reads paths, and a person who is asked."""

    def __init__(
        self,
        journal: Journal,
        *,
        policy: Policy | None = None,
        paths: Paths | None = None,
        settings: GateSettings | None = None,
        toolset: FunctionToolset | None = None,
        function: Callable[[JsonObject], Json] = lambda _: "read",
        saved_grants: SavedGrants | None = None,
    ) -> None:
        self.journal = journal
        self.clock = FakeClock()
        self.tools = toolset or FunctionToolset({READ.name: (READ, function)})
        self.gate = Gate(
            journal=journal,
            policy=policy or FixedPolicy(default="escalate"),
            toolsets=[self.tools],
            paths=paths or LexicalPaths(),
            clock=self.clock,
            settings=settings,
            saved_grants=saved_grants,
        )

    async def asked(self, call: Call) -> Parked:
        parked = await self.gate.submit(call)
        assert isinstance(parked, Parked)
        return parked

    async def answer(self, parked: Parked, response: Response = YES) -> None:
        await self.gate.resolve(parked.escalation, response, principal=PERSON, transport="test")


async def record(store: Store | None = None, limits: Limits | None = None) -> Journal:
    """A session with one message; in memory unless a store is given."""
    opened = SessionOpened(
        principal=PERSON,
        folder="/",
        workspace="",
        policy="",
        policy_digest="",
        model="",
        limits=limits or Limits(),
    )
    journal = await (store or MemoryStore(clock=FakeClock())).create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return journal
