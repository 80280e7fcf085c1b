"""The generateContent format of Google."""

from collections.abc import Iterator

from tests.support.provider_stub.faults import HttpError
from tests.support.provider_stub.wire import StreamEvent, count_messages, numbered, pieces

from holdfast.core import Json, JsonObject, TextPart, ThinkingPart
from holdfast.models.contract import Reply

_STOPS = {"stop": "STOP", "tool-calls": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GeminiWire:
    """`POST /v1beta/models/NAME:streamGenerateContent`."""

    name = "gemini"

    def count_replies(self, body: JsonObject) -> int:
        return count_messages("model", body.get("contents"))

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        for index, part in numbered(reply):
            match part:
                case TextPart(text=text):
                    for piece in pieces(text, size):
                        yield self.text_event(piece, model=model)
                case ThinkingPart(text=text):
                    for piece in pieces(text, size):
                        yield _chunk(model, {"text": piece, "thought": True})
                case call:
                    function: JsonObject = {"name": call.tool, "args": call.arguments}
                    yield _chunk(model, {"functionCall": function | {"id": call.id or f"call_{index}"}})
        yield _chunk(model, {"text": ""}, finish=_STOPS[reply.finish], usage=_usage(reply))

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        yield self.text_event(text, model=model)

    def text_event(self, text: str, *, model: str) -> StreamEvent:
        return _chunk(model, {"text": text})

    def error(self, fault: HttpError) -> JsonObject:
        status = fault.kind or _STATUSES.get(fault.status, "INTERNAL")
        return {"error": {"code": fault.status, "message": fault.message, "status": status}}


def _usage(reply: Reply) -> JsonObject:
    usage = reply.usage
    return {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }


def _chunk(
    model: str, part: Json, *, finish: str | None = None, usage: JsonObject | None = None
) -> StreamEvent:
    candidate: JsonObject = {"index": 0, "content": {"role": "model", "parts": [part]}}
    if finish:
        candidate["finishReason"] = finish
    chunk: JsonObject = {"candidates": [candidate], "modelVersion": model, "responseId": "stub"}
    return None, chunk | ({"usageMetadata": usage} if usage else {})
