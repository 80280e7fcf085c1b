"""The contract of a toolset, tested over all of them: the public fake, the world's, a model's, the user's, the session's."""

import pytest

from holdfast.core import (
    Call,
    FunctionToolset,
    Response,
    Tool,
    Toolset,
    call_id,
)
from holdfast.guests import ScriptedEngine
from holdfast.guests.lisp import LanguageToolset
from holdfast.models import ModelToolset, ScriptedModel
from holdfast.policy import validate_arguments
from holdfast.session.tools import PersonToolset
from holdfast.testing import memory_session
from holdfast.world import MemoryWorld, StagedWorld, WorldToolset

ECHO = Tool(
    name="echo.say",
    parameters={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    roles={},
)


async def _keep(content: bytes) -> str:
    return "0" * 64


def _world() -> WorldToolset:
    world = MemoryWorld()
    world.write("a.txt", b"x")
    return WorldToolset(world, StagedWorld(world), keep=_keep)


GOOD: dict[str, tuple[Toolset, Call]] = {
    "function": (
        FunctionToolset({ECHO.name: (ECHO, lambda arguments: arguments["text"])}),
        Call(id=call_id(1, 1), operation="echo.say", arguments={"text": "x"}),
    ),
    "world": (_world(), Call(id=call_id(1, 1), operation="world.read", arguments={"path": "a.txt"})),
    "model": (
        ModelToolset(ScriptedModel(["x"])),
        Call(id=call_id(1, 1), operation="llm.complete", arguments={"prompt": "say x"}),
    ),
    "person": (
        PersonToolset(lambda _: Response(verdict="approve", reason="x")),
        Call(id=call_id(1, 1), operation="person.ask", arguments={"question": "what?"}),
    ),
    "language": (LanguageToolset(), Call(id=call_id(1, 1), operation="facts", arguments={})),
}


@pytest.mark.parametrize("name", GOOD)
def test_tools_have_unique_names_descriptions_and_schemas(name: str) -> None:
    tools = GOOD[name][0].tools()
    assert len({tool.name for tool in tools}) == len(tools) > 0
    for tool in tools:
        assert tool.parameters.get("type") == "object"
        assert tool.roles is not None, "what ships has roles; without them it is denied"


@pytest.mark.parametrize("name", GOOD)
async def test_a_well_formed_call_is_performed(name: str) -> None:
    toolset, call = GOOD[name]
    [tool] = [each for each in toolset.tools() if each.name == call.operation]
    assert validate_arguments(tool, call.arguments) is None
    performed = await toolset.perform(call, is_staged=False)
    assert performed.result in ("x", None)


@pytest.mark.parametrize("name", ["world", "model", "person"])
def test_unchanged_tools_are_the_same_tuple_object(name: str) -> None:
    toolset = GOOD[name][0]
    assert toolset.tools() is toolset.tools()


async def test_a_session_offers_all_tools_under_distinct_names() -> None:
    async with memory_session(engine=ScriptedEngine()) as session:
        names = [tool.name for tool in session._gate.tools()]
    assert len(names) == len(set(names))
    assert {"world.read", "llm.complete", "person.ask", "session.status"} <= set(names)
