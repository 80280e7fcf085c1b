"""A model that a guest calls from its program."""

from decimal import Decimal

import pytest

from holdfast.core import Call, JsonObject, Usage, UserMessage, call_id
from holdfast.core.errors import ToolFailed
from holdfast.models import ModelToolset, Prompt, Reply, ScriptedModel, say


def call(operation: str, arguments: JsonObject) -> Call:
    return Call(id=call_id(1, 1), operation=operation, arguments=arguments)


async def test_a_completion_returns_text_and_its_exact_cost() -> None:
    counted = Usage(input_tokens=70, output_tokens=30, cost_usd=Decimal("0.0125"))
    toolset = ModelToolset(ScriptedModel([Reply(message=say("42").message, usage=counted)]))
    performed = await toolset.perform(call("llm.complete", {"prompt": "6 x 7"}), is_staged=False)
    assert performed.result == "42"
    assert (performed.amount.tokens, performed.amount.cost_usd) == (100, Decimal("0.0125"))


async def test_an_unknown_price_stays_unknown() -> None:
    toolset = ModelToolset(ScriptedModel([Reply(message=say("42").message, usage=Usage(input_tokens=1))]))
    performed = await toolset.perform(call("llm.complete", {"prompt": "6 x 7"}), is_staged=False)
    assert performed.amount.cost_usd is None


async def test_the_arguments_reach_the_model() -> None:
    prompts: list[Prompt] = []

    def record(prompt: Prompt) -> Reply:
        prompts.append(prompt)
        return say("ok")

    toolset = ModelToolset(ScriptedModel([record]))
    arguments: JsonObject = {"prompt": "why", "system": "Be brief.", "max_tokens": 9}
    await toolset.perform(call("llm.complete", arguments), is_staged=False)
    await toolset.perform(call("llm.intent", {"intent": "count the files"}), is_staged=False)
    assert prompts[0] == Prompt(system="Be brief.", messages=(UserMessage(text="why"),), max_tokens=9)
    assert prompts[1].messages == (UserMessage(text="count the files"),)
    assert prompts[1].max_tokens == 1024


async def test_an_error_of_the_model_is_a_failed_tool() -> None:
    with pytest.raises(ToolFailed, match="0 replies"):
        await ModelToolset(ScriptedModel([])).perform(call("llm.complete", {"prompt": "x"}), is_staged=False)


def test_every_argument_has_a_role_and_no_other_is_accepted() -> None:
    for tool in ModelToolset(ScriptedModel([])).tools():
        assert tool.roles is not None
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        assert set(tool.roles) == set(properties)
        assert tool.parameters["additionalProperties"] is False
