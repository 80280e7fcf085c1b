"""`ModelToolset`: a model as a toolset. A guest calls it from its program, through the gate like any other tool."""

from decimal import Decimal

import msgspec

from holdfast.core import Amount, ArgumentRoles, Call, JsonObject, Performed, Tool, Usage, UserMessage
from holdfast.core.errors import ModelError, ToolFailed
from holdfast.models.contract import Model, Prompt
from holdfast.models.prices import price_of

DEFAULT_MAX_TOKENS = 1024
_BYTES_PER_TOKEN = 3
"""Fewer than any tokenizer needs for prose, so estimates are too high rather than too low."""
_NO_USAGE = Usage(cost_usd=Decimal(0))

_INTENT_SYSTEM = (
    "Write the program that carries out the intent, in the Lisp of this session. Reply with its text alone: "
    "no explanation and no fences."
)


class ModelToolset:
    """`llm.complete` and `llm.intent`: one prompt in, text and its exact cost out."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def tools(self) -> tuple[Tool, ...]:
        return MODEL_TOOLS

    def max_cost(self, call: Call) -> Amount:
        """An upper bound: the prompt's tokens by its length, and the longest reply it allows."""
        prompt = _prompt(call)
        text = prompt.system + "".join(each.text for each in prompt.messages if isinstance(each, UserMessage))
        usage = Usage(
            input_tokens=len(text.encode()) // _BYTES_PER_TOKEN + 1, output_tokens=prompt.max_tokens or 0
        )
        return Amount.of(msgspec.structs.replace(usage, cost_usd=price_of(self._model.name, usage)))

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        try:
            reply = await self._model.ask(_prompt(call), lambda _: None)
        except ModelError as error:
            # The request was made, whether or not it was charged.
            raise ToolFailed(str(error), hint=error.hint, usage=error.usage or _NO_USAGE) from None
        return Performed(result=reply.message.text, amount=Amount.of(reply.usage))


def _prompt(call: Call) -> Prompt:
    arguments = call.arguments
    is_intent = call.operation == "llm.intent"
    max_tokens = arguments.get("max_tokens", DEFAULT_MAX_TOKENS)
    assert isinstance(max_tokens, int)  # the gate has validated the arguments against the schema
    return Prompt(
        system=_INTENT_SYSTEM if is_intent else str(arguments.get("system", "")),
        messages=(UserMessage(text=str(arguments["intent" if is_intent else "prompt"])),),
        max_tokens=max_tokens,
    )


def _tool(name: str, description: str, text: str, optional: tuple[str, ...] = ()) -> Tool:
    texts: JsonObject = {key: {"type": "string"} for key in (text, *optional)}
    max_tokens: JsonObject = {"type": "integer", "minimum": 1, "default": DEFAULT_MAX_TOKENS}
    parameters: JsonObject = {
        "type": "object",
        "properties": texts | {"max_tokens": max_tokens},
        "required": [text],
        "additionalProperties": False,
    }
    no_role = ArgumentRoles(default=("none",))
    return Tool(
        name=name,
        description=description,
        parameters=parameters,
        returns={"type": "string"},
        roles=dict.fromkeys((*texts, "max_tokens"), no_role),
        is_read_only=True,
    )


MODEL_TOOLS = (
    _tool("llm.complete", "Ask a language model; returns its words.", "prompt", optional=("system",)),
    _tool(
        "llm.intent", "Have a program written for an intent; returns its text, which is not run.", "intent"
    ),
)
