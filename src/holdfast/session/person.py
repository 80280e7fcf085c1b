"""Asking the person: a tool whose answer is what they say. It always waits, whatever the policy allows."""

from collections.abc import Callable

from holdfast.core import Call, Performed, Response, Tool
from holdfast.core.errors import ToolFailed

ASK_PERSON = Tool(
    name="person.ask",
    description="Ask the person one question and wait for the answer. For what only they can know or decide.",
    parameters={
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    },
    returns={"type": "string"},
    roles={},
    is_idempotent=True,
    asks_person=True,
)


class PersonToolset:
    """Gives back what the person answered; the waiting itself is the gate's."""

    def __init__(self, answer_to: Callable[[Call], Response | None]) -> None:
        self._answer_to = answer_to
        self._tools = (ASK_PERSON,)

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        response = self._answer_to(call)
        if response is None:
            raise ToolFailed("nobody was asked")
        return Performed(result=response.reason or "")
