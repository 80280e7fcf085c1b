"""The Responses format of OpenAI."""

from collections.abc import Iterator

from tests.support.provider_stub.chat import openai_error
from tests.support.provider_stub.faults import HttpError
from tests.support.provider_stub.wire import StreamEvent, numbered, pieces, raw_arguments

from holdfast.core import Json, JsonObject, Part, TextPart, ThinkingPart
from holdfast.models.contract import Reply


class ResponsesWire:
    """`POST /v1/responses`."""

    name = "responses"

    def count_replies(self, body: JsonObject) -> int:
        items = body.get("input")
        assert isinstance(items, list)
        spoken = [_is_from_model(item) for item in items]
        return sum(now and not before for before, now in zip([False, *spoken], spoken, strict=False))

    def events(self, reply: Reply, *, model: str, size: int) -> Iterator[StreamEvent]:
        items = [_item(index, part) for index, part in numbered(reply)]
        yield _lifecycle("response.created", _response(model, status="in_progress", items=[]))
        for index, (part, item) in enumerate(zip(reply.message.parts, items, strict=True)):
            yield _item_event("response.output_item.added", index, item | _emptied(part))
            match part:
                case TextPart(text=text):
                    for piece in pieces(text, size):
                        yield _text_delta(index, piece)
                case ThinkingPart(text=text):
                    for piece in pieces(text, size):
                        yield _summary_delta(index, piece)
                case call:
                    for piece in pieces(raw_arguments(call.arguments), size):
                        yield _arguments_delta(index, piece)
            yield _item_event("response.output_item.done", index, item)
        status = "incomplete" if reply.finish in ("length", "refused") else "completed"
        whole = _response(model, status=status, items=list(items)) | {"usage": _usage(reply)}
        if status == "incomplete":
            reason = "max_output_tokens" if reply.finish == "length" else "content_filter"
            whole["incomplete_details"] = {"reason": reason}
        yield _lifecycle(f"response.{status}", whole)

    def opening(self, *, model: str, text: str) -> Iterator[StreamEvent]:
        yield _lifecycle("response.created", _response(model, status="in_progress", items=[]))
        part = TextPart(text="")
        yield _item_event("response.output_item.added", 0, _item(0, part) | _emptied(part))
        yield self.text_event(text, model=model)

    def text_event(self, text: str, *, model: str) -> StreamEvent:
        return _text_delta(0, text)

    def error(self, fault: HttpError) -> JsonObject:
        return openai_error(fault)


def _is_from_model(item: Json) -> bool:
    assert isinstance(item, dict)
    return item.get("role") == "assistant" or item.get("type") in ("function_call", "reasoning")


def _item(index: int, part: Part) -> JsonObject:
    match part:
        case TextPart(text=text):
            content: Json = [{"type": "output_text", "text": text, "annotations": []}]
            return {
                "type": "message",
                "id": f"msg_{index}",
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case ThinkingPart(text=text):
            summary: Json = [{"type": "summary_text", "text": text}]
            return {
                "type": "reasoning",
                "id": f"rs_{index}",
                "summary": summary,
                "encrypted_content": "c2VhbGVk",
            }
        case call:
            return {
                "type": "function_call",
                "id": f"fc_{index}",
                "call_id": call.id or f"call_{index}",
                "name": call.tool,
                "arguments": raw_arguments(call.arguments),
                "status": "completed",
            }


def _emptied(part: Part) -> JsonObject:
    match part:
        case TextPart():
            return {"content": [], "status": "in_progress"}
        case ThinkingPart():
            return {"summary": []}
        case _:
            return {"arguments": "", "status": "in_progress"}


def _response(model: str, *, status: str, items: list[Json]) -> JsonObject:
    return {
        "id": "resp_stub",
        "object": "response",
        "created_at": 1_767_225_600,
        "status": status,
        "model": model,
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _usage(reply: Reply) -> JsonObject:
    usage = reply.usage
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _lifecycle(kind: str, response: Json) -> StreamEvent:
    return kind, {"type": kind, "response": response, "sequence_number": 0}


def _item_event(kind: str, index: int, item: Json) -> StreamEvent:
    return kind, {"type": kind, "output_index": index, "item": item, "sequence_number": 0}


def _text_delta(index: int, delta: str) -> StreamEvent:
    kind = "response.output_text.delta"
    place: JsonObject = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
    return kind, place | {"type": kind, "delta": delta, "logprobs": [], "sequence_number": 0}


def _summary_delta(index: int, delta: str) -> StreamEvent:
    kind = "response.reasoning_summary_text.delta"
    place: JsonObject = {"item_id": f"rs_{index}", "output_index": index, "summary_index": 0}
    return kind, place | {"type": kind, "delta": delta, "sequence_number": 0}


def _arguments_delta(index: int, delta: str) -> StreamEvent:
    kind = "response.function_call_arguments.delta"
    return kind, {
        "type": kind,
        "item_id": f"fc_{index}",
        "output_index": index,
        "delta": delta,
        "sequence_number": 0,
    }
