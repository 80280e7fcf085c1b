"""The parts of the language that a policy may forbid: 001's allowedOperations.

A run asks about each of them once, by a call under its own name and without arguments.
"""

from holdfast.core import Amount, Call, Performed, Tool

LANGUAGE = ("eval", "subeval", "memo", "fixpoint", "assert", "fact?", "facts")
"""Parts of the language that a policy can forbid."""


class LanguageToolset:
    """Offers the parts of the language as tools, so that a policy judges them like any other; performing them is nothing."""

    def tools(self) -> tuple[Tool, ...]:
        return tuple(
            Tool(
                name=name,
                description=f"The {name} of the Lisp language.",
                parameters={"type": "object", "properties": {}, "additionalProperties": False},
                roles={},
                is_idempotent=True,
                is_read_only=True,
            )
            for name in LANGUAGE
        )

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        return Performed(amount=Amount())
