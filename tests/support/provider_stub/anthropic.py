"""The Messages format of Anthropic."""

from collections.abc import Iterator

from tests.support.provider_stub.faults import HttpError
from tests.support.provider_stub.wire import StreamEvent, count_messages, numbered, pieces, raw_arguments

from holdfast.core import Json, JsonObject, TextPart, ThinkingPart, new_token
from holdfast.models.contract import Reply

_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOPS = {"stop": "end_turn", "tool-calls": "tool_use", "length": "max_tokens", "refused": "refusal"}


class AnthropicWire:
    """`POST /v1/messages`."""

    name = "anthropic"

    def count_replies(self, body: JsonObject) -> int:
        return count_messages("assistant", body.get("messages"))

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        usage = reply.usage
        cached, fresh = usage.cached_tokens, usage.input_tokens - usage.cached_tokens
        yield _start(model, input_tokens=fresh, cached_tokens=cached)
        for index, part in numbered(reply):
            match part:
                case TextPart(text=text):
                    yield _block(index, {"type": "text", "text": ""})
                    for piece in pieces(text, size):
                        yield _delta(index, {"type": "text_delta", "text": piece})
                case ThinkingPart(text=text):
                    yield _block(index, {"type": "thinking", "thinking": "", "signature": ""})
                    for piece in pieces(text, size):
                        yield _delta(index, {"type": "thinking_delta", "thinking": piece})
                    yield _delta(index, {"type": "signature_delta", "signature": "c2lnbmVk"})
                case call:
                    yield _block(
                        index,
                        {
                            "type": "tool_use",
                            "id": call.id or f"toolu_{index}",
                            "name": call.tool,
                            "input": {},
                        },
                    )
                    for piece in pieces(raw_arguments(call.arguments), size):
                        yield _delta(index, {"type": "input_json_delta", "partial_json": piece})
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        stop: JsonObject = {"stop_reason": _STOPS[reply.finish], "stop_sequence": None}
        yield (
            "message_delta",
            {"type": "message_delta", "delta": stop, "usage": {"output_tokens": usage.output_tokens}},
        )
        yield "message_stop", {"type": "message_stop"}

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        yield _start(model, input_tokens=11, cached_tokens=0)
        yield _block(0, {"type": "text", "text": ""})
        yield self.text_event(text, model=model)

    def text_event(self, text: str, *, model: str) -> StreamEvent:
        return _delta(0, {"type": "text_delta", "text": text})

    def error(self, fault: HttpError) -> JsonObject:
        kind = fault.kind or _KINDS.get(fault.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": fault.message}}


def _start(model: str, *, input_tokens: int, cached_tokens: int) -> StreamEvent:
    message: JsonObject = {
        "id": f"msg_{new_token()}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": cached_tokens,
            "output_tokens": 1,
        },
    }
    return "message_start", {"type": "message_start", "message": message}


def _block(index: int, block: Json) -> StreamEvent:
    return "content_block_start", {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: Json) -> StreamEvent:
    return "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
