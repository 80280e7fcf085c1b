"""Runs code as these tests do: with one key and two tools."""

from collections.abc import Awaitable, Callable

from holdfast.core import Answer, JsonObject, Returned, Tool
from holdfast.guests import Guest, GuestLimits, Run, RunRequest

KEY = b"a key for tests, and only for them"
TOOLS = (Tool(name="desk.add", parameters={"properties": {"left": {}, "right": {}}}), Tool(name="desk.ask"))

OnCall = Callable[[str, JsonObject], Awaitable[Answer]]


async def add(operation: str, arguments: JsonObject) -> Answer:
    """The tool of these tests."""
    return Returned(value=int(str(arguments["left"])) + int(str(arguments["right"])))


async def run(guest: Guest, code: str, on_call: OnCall = add, **limits: float) -> Run:
    """Run code as a session would."""
    bounds = GuestLimits(**limits)  # type: ignore[arg-type]
    return await guest.run(
        RunRequest(code=code, tools=TOOLS, limits=bounds, seed=7, now_ms=1_767_225_600_000), on_call
    )
