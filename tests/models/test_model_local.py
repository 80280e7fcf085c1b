"""A local model in its real child process. Only the engine is fake; the model file is its script."""

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
from holdfast.core.errors import ContextExceeded, ModelMissing, ModelRefused, ModelUnavailable
from holdfast.models import ModelSettings, Prompt, ReplyPiece, RetryPolicy, ToolOffer, create_model, say
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
            path = tmp_path / "model.gguf"
            path.write_text(json.dumps(script))
            settings = settings or ModelSettings()
            model = LocalModel(
                path,
                name="local:model.gguf",
                settings=settings,
                retry_policy=RetryPolicy(settings.timeout_seconds, 1),
                engine_path=ENGINE,
            )
            stack.push_async_callback(model.close)
            return model

        yield start


def last_request(tmp_path: Path) -> Any:
    """The engine's last request and environment."""
    return json.loads((tmp_path / "model.request").read_text())


async def test_text_is_streamed(load: Load) -> None:
    model = load("Guten Tag, schön.")
    shown: list[ReplyPiece] = []
    reply = await model.ask(HELLO, shown.append)
    assert reply.message.text == "Guten Tag, schön." == "".join(piece.text for piece in shown)
    assert len(shown) > 3


async def test_an_answer_is_streamed_without_its_json(load: Load) -> None:
    model = load('{"answer": "It is \\"four\\".\\nDone."}')
    shown: list[ReplyPiece] = []
    reply = await model.ask(WORK, shown.append)
    assert reply.message.text == 'It is "four".\nDone.' == "".join(piece.text for piece in shown)
    assert len(shown) > 3
    assert reply.finish == "stop"


async def test_a_call_is_parsed_and_not_shown(load: Load) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": "print(2+2)"}}')
    shown: list[ReplyPiece] = []
    reply = await model.ask(WORK, shown.append)
    [call] = reply.message.tool_calls
    assert (call.tool, call.arguments) == ("execute_code", {"code": "print(2+2)"})
    assert reply.finish == "tool-calls"
    assert shown == []


async def test_the_grammar_permits_only_a_call_of_an_offered_tool_or_an_answer(
    load: Load, tmp_path: Path
) -> None:
    await load('{"answer": ""}').ask(WORK, lambda _: None)
    schema = last_request(tmp_path)["request"]["response_format"]["json_schema"]["schema"]
    call, answer = schema["anyOf"]
    assert call["properties"]["tool"] == {"const": "execute_code"}
    assert call["properties"]["arguments"]["required"] == ["code"]
    assert call["additionalProperties"] is False
    assert answer["properties"] == {"answer": {"type": "string"}}


async def test_code_is_requested_in_lines_and_joined(load: Load, tmp_path: Path) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": ["for n in (1, 2):", "    print(n)"]}}')
    reply = await model.ask(WORK, lambda _: None)
    [call] = reply.message.tool_calls
    assert call.arguments == {"code": "for n in (1, 2):\n    print(n)"}
    schema = last_request(tmp_path)["request"]["response_format"]["json_schema"]["schema"]
    code = schema["anyOf"][0]["properties"]["arguments"]["properties"]["code"]
    assert code == {"type": "array", "items": {"type": "string"}}


async def test_a_list_argument_of_a_tool_stays_a_list(load: Load) -> None:
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


async def test_a_conversation_continues_after_a_call(load: Load, tmp_path: Path) -> None:
    model = load('{"tool": "execute_code", "arguments": {"code": "1/0"}}', '{"answer": "It failed."}')
    first = await model.ask(WORK, lambda _: None)
    [call] = first.message.tool_calls
    returned = ToolMessage(returns=(ToolReturn(id=call.id, tool=call.tool, content="no", is_error=True),))
    messages = (*HELLO.messages, first.message, returned)
    second = await model.ask(Prompt(system="", messages=messages, tools=(TOOL,)), lambda _: None)
    assert second.message.text == "It failed."
    sent = last_request(tmp_path)["request"]["messages"]
    assert json.loads(sent[-2]["content"]) == {"tool": "execute_code", "arguments": {"code": ["1/0"]}}
    assert sent[-1]["content"].startswith("Error of execute_code: no\n")


async def test_tokens_are_counted_and_cost_nothing(load: Load) -> None:
    usage = (await load("hi").ask(HELLO, lambda _: None)).usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_tokens) == (40, 7, 30)
    assert usage.cost_usd == Decimal(0)


async def test_an_answer_at_the_token_limit_ends_with_length(load: Load) -> None:
    reply = await load({"length": '{"answer": "as far as'}).ask(WORK, lambda _: None)
    assert (reply.message.text, reply.finish) == ("as far as", "length")


async def test_an_incomplete_call_is_dropped(load: Load) -> None:
    reply = await load({"length": '{"tool": "execute_code", "arguments": {"code": "rm'}).ask(
        WORK, lambda _: None
    )
    assert reply.message.tool_calls == ()
    assert reply.finish == "length"


async def test_a_full_context_window_is_reported(load: Load) -> None:
    model = load({"error": {"code": 400, "type": "exceed_context_size_error", "message": "18027 tokens"}})
    with pytest.raises(ContextExceeded, match="Context window exceeded"):
        await model.ask(HELLO, lambda _: None)


async def test_a_rejected_request_leaves_the_model_usable(load: Load) -> None:
    model = load({"error": {"code": 400, "message": "bad grammar"}}, "fine")
    with pytest.raises(ModelRefused, match="bad grammar"):
        await model.ask(HELLO, lambda _: None)
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "fine"


async def test_a_process_that_dies_is_restarted_by_the_next_request(load: Load, tmp_path: Path) -> None:
    model = load({"die": True}, "back again")
    with pytest.raises(ModelUnavailable, match=r"ended \(code 9\)"):
        await model.ask(HELLO, lambda _: None)
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "back again"


async def test_a_file_that_cannot_be_loaded_is_unavailable(load: Load, tmp_path: Path) -> None:
    model = load("x")
    (tmp_path / "model.gguf").write_text("not GGUF")
    with pytest.raises(ModelUnavailable, match="could not be loaded"):
        await model.ask(HELLO, lambda _: None)


async def test_after_a_cancelled_request_the_model_answers_again(load: Load) -> None:
    model = load({"forever": True}, "here")
    started = asyncio.Event()
    request = asyncio.create_task(model.ask(HELLO, lambda _: started.set()))
    await started.wait()
    request.cancel()
    with pytest.raises(asyncio.CancelledError):
        await request
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    assert (await model.ask(later, lambda _: None)).message.text == "here"


async def test_an_endless_reply_is_cut_off(load: Load) -> None:
    model = load({"forever": True}, settings=ModelSettings(max_reply_bytes=500))
    with pytest.raises(ModelUnavailable, match="is longer than max_reply_bytes"):
        await model.ask(HELLO, lambda _: None)


async def test_concurrent_requests_run_one_after_the_other(load: Load) -> None:
    model = load("one", "two")
    later = Prompt(system="", messages=(*HELLO.messages, say("x").message, UserMessage(text="again")))
    replies = await asyncio.gather(model.ask(HELLO, lambda _: None), model.ask(later, lambda _: None))
    assert [reply.message.text for reply in replies] == ["one", "two"]


async def test_the_child_does_not_inherit_keys(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    monkeypatch.setenv("SOME_OTHER_TOKEN", "sk-very-secret")
    await load("hi").ask(HELLO, lambda _: None)
    assert "sk-very-secret" not in json.dumps(last_request(tmp_path)["environ"])


async def test_closing_ends_the_child(load: Load, tmp_path: Path) -> None:
    model = load("hi")
    await model.ask(HELLO, lambda _: None)
    pid = last_request(tmp_path)["pid"]
    await model.close()
    await model.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_context_window_can_be_configured(load: Load, tmp_path: Path) -> None:
    model = load("hi", settings=ModelSettings(context_tokens=4096))
    await model.ask(HELLO, lambda _: None)
    assert model.context_tokens == 4096 == last_request(tmp_path)["n_ctx"]


async def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    model = LocalModel(
        tmp_path / "none.gguf",
        name="local:none.gguf",
        settings=ModelSettings(),
        retry_policy=RetryPolicy(60, 1),
        engine_path=ENGINE,
    )
    with pytest.raises(ModelMissing, match="no file"):
        await model.ask(HELLO, lambda _: None)


async def test_a_name_without_a_path_is_a_file_in_the_models_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"tiny\.gguf"):
        create_model("local:tiny", models_folder=tmp_path)
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    assert create_model("local:tiny", models_folder=tmp_path).name == "local:tiny"
