"""The parts of the language that a policy may forbid.

A run asks about each of them once, by a call under its own name and without arguments. A fixpoint asks before each round,
because a round is an iteration of the session's budget.
"""

from holdfast.core import Amount, ArgumentRoles, Call, JsonObject, Performed, Tool

ROUND = "fixpoint"
LANGUAGE = ("eval", "subeval", "memo", ROUND, "assert", "fact?", "facts")
"""Parts of the language that a policy can forbid."""


class LanguageToolset:
    """Offers the parts of the language as tools, so that a policy judges them like any other; performing them is nothing."""

    def tools(self) -> tuple[Tool, ...]:
        return LANGUAGE_TOOLS

    def most(self, call: Call) -> Amount:
        """An iteration a round, and nothing for the rest."""
        return Amount(iterations=1) if call.operation == ROUND else Amount()

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        return Performed(amount=self.most(call))


def _tool(name: str, counts: tuple[str, ...]) -> Tool:
    properties: JsonObject = {count: {"type": "integer"} for count in counts}
    return Tool(
        name=name,
        description=f"The {name} of the Lisp language.",
        parameters={"type": "object", "properties": properties, "additionalProperties": False},
        roles=dict.fromkeys(counts, ArgumentRoles(default=("none",))),
        is_idempotent=True,
        is_read_only=True,
    )


LANGUAGE_TOOLS = tuple(_tool(name, ("round",) if name == ROUND else ()) for name in LANGUAGE)
