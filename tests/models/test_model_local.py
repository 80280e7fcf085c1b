"""A local model in its real child process; only the engine in it is a fake, whose weights file is its script."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from holdfast.core import JsonObject, ToolMessage, ToolReturn, UserMessage
from holdfast.core.errors import ContextExceeded, InvalidConfig, ModelMissing, ModelRefused, ModelUnavailable
from holdfast.models import ModelSettings, Prompt, RetryPolicy, ToolOffer, create_model, say
from holdfast.models.local import LocalModel

ENGINE = Path(__file__).parent / "fake_engine"
TOOL = ToolOffer(
    name="execute_code",
    description="Run Python.",
    parameters={"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
)
HELLO = Prompt(system="Be brief.", messages=(UserMessage(text="hello"),))
WORK = Prompt(system="Be brief.", messages=HELLO.messages, tools=(TOOL,))

Load = Callable[..., LocalModel]


@pytest.fixture
async def load(tmp_path: Path) -> AsyncIterator[Load]:
    async with AsyncExitStack() as stack:

        def start(*script: object, settings: ModelSettings | None = None) -> LocalModel:
            path = tmp_path / "weights.gguf"
            path.write_text(json.dumps(script))
            chosen = settings or ModelSettings()
            model = LocalModel(
                path,
                name="local:weights.gguf",
                settings=chosen,
                patience=RetryPolicy(chosen.total_seconds, 1),
                engine_path=ENGINE,
            )
            stack.push_async_callback(model.close)
            return model

        yield start


def asked(tmp_path: Path) -> Any:
    """What the engine was last asked, and where."""
    return json.loads((tmp_path / "weights.asked").read_text())


async def test_words_are_shown_as_they_come(load: Load) -> None:
    model = load("Guten Tag, schön.")
    shown: list[str] = []
    reply = await model.ask(HELLO, shown.append)
    assert reply.message.text == "Guten Tag, schön." == "".join(shown)
    assert len(shown) > 3


async def test_an_answer_among_tools_is_shown_without_its_wrapping(load: Load) -> None:
    model = load('{"answer": "It is \\"four\\".\\nDone."}')
    shown: list[str] = []
    reply = await model.ask(WORK, shown.append)
    assert reply.message.text == 'It is "four".\nDone.' == "".join(shown)
    assert len(shown) > 3
    assert reply.finish == "stop"


async def test_a_call_is_read_and_not_shown(load: Load) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": "print(2+2)"}}')
    shown: list[str] = []
    reply = await model.ask(WORK, shown.append)
    [call] = reply.message.tool_calls
    assert (call.tool, call.arguments) == ("execute_code", {"code": "print(2+2)"})
    assert reply.finish == "tool-calls"
    assert shown == []


async def test_the_engine_is_held_to_a_call_of_an_offered_tool_or_an_answer(
    load: Load, tmp_path: Path
) -> None:
    await load('{"answer": ""}').ask(WORK, lambda _: None)
    schema = asked(tmp_path)["request"]["response_format"]["json_schema"]["schema"]
    call, answer = schema["anyOf"]
    assert call["properties"]["tool"] == {"const": "execute_code"}
    assert call["properties"]["arguments"]["required"] == ["code"]
    assert call["additionalProperties"] is False
    assert answer["properties"] == {"answer": {"type": "string"}}


async def test_code_is_asked_for_in_lines_and_handed_on_as_one_text(load: Load, tmp_path: Path) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": ["for n in (1, 2):", "    print(n)"]}}')
    reply = await model.ask(WORK, lambda _: None)
    [call] = reply.message.tool_calls
    assert call.arguments == {"code": "for n in (1, 2):\n    print(n)"}
    schema = asked(tmp_path)["request"]["response_format"]["json_schema"]["schema"]
    code = schema["anyOf"][0]["properties"]["arguments"]["properties"]["code"]
    assert code == {"type": "array", "items": {"type": "string"}}


async def test_a_list_that_a_tool_wants_stays_a_list(load: Load) -> None:
    parameters: JsonObject = {
        "type": "object",
        "properties": {"code": {"type": "array"}},
        "required": ["code"],
    }
    model = load('{"tool": "enter", "arguments": {"code": [1, 2, 3]}}')
    prompt = Prompt(
        system="",
        messages=HELLO.messages,
        tools=(ToolOffer(name="enter", description="", parameters=parameters),),
    )
    [call] = (await model.ask(prompt, lambda _: None)).message.tool_calls
    assert call.arguments == {"code": [1, 2, 3]}


async def test_a_conversation_goes_on_after_a_call(load: Load, tmp_path: Path) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": "1/0"}}', '{"answer": "It failed."}')
    first = await model.ask(WORK, lambda _: None)
    [call] = first.message.tool_calls
    returned = ToolMessage(returns=(ToolReturn(id=call.id, tool=call.tool, content="no", is_error=True),))
    messages = (*HELLO.messages, first.message, returned)
    second = await model.ask(Prompt(system="", messages=messages, tools=(TOOL,)), lambda _: None)
    assert second.message.text == "It failed."
    sent = asked(tmp_path)["request"]["messages"]
    assert json.loads(sent[-2]["content"]) == {"tool": "execute_code", "arguments": {"code": ["1/0"]}}
    assert sent[-1]["content"].startswith("Error of execute_code: no\n")


async def test_tokens_are_counted_and_cost_nothing(load: Load) -> None:
    usage = (await load("hi").ask(HELLO, lambda _: None)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (40, 7, 30)
    assert usage.cost_usd == Decimal(0)


async def test_an_answer_at_its_limit_says_so(load: Load) -> None:
    reply = await load({"length": '{"answer": "as far as'}).ask(WORK, lambda _: None)
    assert (reply.message.text, reply.finish) == ("as far as", "length")


async def test_half_a_call_is_no_call(load: Load) -> None:
    reply = await load({"length": '{"tool": "execute_code", "arguments": {"code": "rm'}).ask(
        WORK, lambda _: None
    )
    assert reply.message.tool_calls == ()
    assert reply.finish == "length"


async def test_a_full_window_is_said_so(load: Load) -> None:
    model = load({"error": {"code": 400, "type": "exceed_context_size_error", "message": "18027 tokens"}})
    with pytest.raises(ContextExceeded, match="Context window exceeded"):
        await model.ask(HELLO, lambda _: None)


async def test_a_rejected_request_leaves_the_model_usable(load: Load) -> None:
    model = load({"error": {"code": 400, "message": "bad grammar"}}, "fine")
    with pytest.raises(ModelRefused, match="bad grammar"):
        await model.ask(HELLO, lambda _: None)
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "fine"


async def test_a_process_that_dies_is_an_error_and_the_next_request_starts_another(
    load: Load, tmp_path: Path
) -> None:
    model = load({"die": True}, "back again")
    with pytest.raises(ModelUnavailable, match=r"ended \(code 9\)"):
        await model.ask(HELLO, lambda _: None)
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "back again"


async def test_weights_that_cannot_be_loaded_are_said_so(load: Load, tmp_path: Path) -> None:
    model = load("x")
    (tmp_path / "weights.gguf").write_text("no GGUF")
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        await model.ask(HELLO, lambda _: None)


async def test_cancelling_stops_the_engine_and_the_model_answers_again(load: Load) -> None:
    model = load({"forever": True}, "here")
    began = asyncio.Event()
    asking = asyncio.create_task(model.ask(HELLO, lambda _: began.set()))
    await began.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "here"


async def test_an_endless_reply_is_cut_off(load: Load) -> None:
    model = load({"forever": True}, settings=ModelSettings(max_reply_bytes=500))
    with pytest.raises(ModelUnavailable, match="does not end"):
        await model.ask(HELLO, lambda _: None)


async def test_two_requests_at_once_take_turns(load: Load) -> None:
    model = load("one", "two")
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    replies = await asyncio.gather(model.ask(HELLO, lambda _: None), model.ask(later, lambda _: None))
    assert [reply.message.text for reply in replies] == ["one", "two"]


async def test_the_child_sees_no_key(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SOME_OTHER_TOKEN", "sk-very-secret")
    await load("hi").ask(HELLO, lambda _: None)
    assert "sk-very-secret" not in json.dumps(asked(tmp_path)["environ"])


async def test_closing_ends_the_child(load: Load, tmp_path: Path) -> None:
    model = load("hi")
    await model.ask(HELLO, lambda _: None)
    pid = asked(tmp_path)["pid"]
    await model.close()
    await model.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_window_is_the_one_that_was_configured(load: Load, tmp_path: Path) -> None:
    model = load("hi", settings=ModelSettings(context_tokens=4096))
    await model.ask(HELLO, lambda _: None)
    assert model.context_tokens == 4096 == asked(tmp_path)["n_ctx"]


async def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    model = LocalModel(
        tmp_path / "none.gguf",
        name="local:none.gguf",
        settings=ModelSettings(),
        patience=RetryPolicy(60, 1),
        engine_path=ENGINE,
    )
    with pytest.raises(ModelMissing, match="no file"):
        await model.ask(HELLO, lambda _: None)


def test_weights_that_are_not_installed_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="is not installed"):
        create_model("local:qwen2.5-coder-1.5b", weights=tmp_path)
    with pytest.raises(InvalidConfig):
        create_model("local:no-such-weights", weights=tmp_path)
