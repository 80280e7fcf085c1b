"""The tool registry: a name belongs to the first toolset that offers it."""

from holdfast.core import FunctionToolset, Ok, Tool
from holdfast.guests import script
from holdfast.testing import memory_session

TOOL = Tool(name="desk.look", parameters={"type": "object"}, roles={})
LOOK = script({"call": TOOL.name, "arguments": {}, "as": "seen"}, {"value": {"$": "seen"}})


def registry_of(answer: str) -> FunctionToolset:
    return FunctionToolset({TOOL.name: (TOOL, lambda _: answer)})


async def test_a_later_toolset_cannot_replace_a_tool_of_an_earlier_one() -> None:
    first, second = registry_of("first"), registry_of("second")
    async with memory_session(toolsets=[first, second]) as session:
        assert await session.execute(LOOK) == Ok(value="first")
    assert not second.performed
