"""The Chat Completions format of OpenAI, which Ollama, llama.cpp, vLLM and LM Studio also use."""

from collections.abc import Iterator

from tests.support.provider_stub.faults import HttpError
from tests.support.provider_stub.wire import StreamEvent, count_messages, numbered, pieces, raw_arguments

from holdfast.core import Json, JsonObject, TextPart, ThinkingPart
from holdfast.models.contract import Reply

_STOPS = {"stop": "stop", "tool-calls": "tool_calls", "length": "length", "refused": "content_filter"}


class ChatWire:
    """`POST /v1/chat/completions`."""

    name = "chat"

    def count_replies(self, body: JsonObject) -> int:
        return count_messages("assistant", body.get("messages"))

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        yield _chunk(model, {"role": "assistant", "content": ""})
        calls = 0
        for _, part in numbered(reply):
            match part:
                case TextPart(text=text):
                    for piece in pieces(text, size):
                        yield self.text_event(piece, model=model)
                case ThinkingPart(text=text):
                    for piece in pieces(text, size):
                        yield _chunk(model, {"reasoning_content": piece})
                case call:
                    yield _call(model, calls, id=call.id or f"call_{calls}", name=call.tool)
                    for piece in pieces(raw_arguments(call.arguments), size):
                        yield _call(model, calls, arguments=piece)
                    calls += 1
        yield _chunk(model, {}, finish=_STOPS[reply.finish])
        yield None, _envelope(model) | {"choices": [], "usage": _usage(reply)}
        yield None, "[DONE]"

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        yield _chunk(model, {"role": "assistant", "content": ""})
        yield self.text_event(text, model=model)

    def text_event(self, text: str, *, model: str) -> StreamEvent:
        return _chunk(model, {"content": text})

    def error(self, fault: HttpError) -> JsonObject:
        return openai_error(fault)


def openai_error(fault: HttpError) -> JsonObject:
    """The body of an error in both formats of OpenAI."""
    error: JsonObject = {
        "type": fault.kind or "server_error",
        "code": fault.kind or None,
        "message": fault.message,
        "param": None,
    }
    return {"error": error}


def _usage(reply: Reply) -> JsonObject:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _envelope(model: str) -> JsonObject:
    return {
        "id": "chatcmpl-stub",
        "object": "chat.completion.chunk",
        "created": 1_767_225_600,
        "model": model,
    }


def _chunk(model: str, delta: Json, *, finish: str | None = None) -> StreamEvent:
    return None, _envelope(model) | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _call(
    model: str, index: int, *, id: str | None = None, name: str | None = None, arguments: str = ""
) -> StreamEvent:
    function: JsonObject = {"arguments": arguments}
    call: JsonObject = {"index": index, "function": function}
    if id is not None:
        call |= {"id": id, "type": "function"}
        function["name"] = name
    return _chunk(model, {"tool_calls": [call]})
