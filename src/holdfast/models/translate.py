"""Translation between our messages and those of pydantic-ai.

`ModelMessage.wire` keeps a reply in the library's form, with the format version and the provider. That provider gets the
reply back unchanged, including signatures; for any other provider it is rebuilt from its parts.
"""

from collections.abc import Mapping, Sequence

import msgspec
from pydantic import ValidationError
from pydantic_ai import messages as library
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition
from pydantic_core import PydanticSerializationError

from holdfast.core import (
    Finish,
    JsonObject,
    ModelMessage,
    Part,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolMessage,
    UserMessage,
    Value,
    encode,
)
from holdfast.models.contract import Prompt
from holdfast.models.surrogates import repair_surrogates

WIRE_FORMAT = 1


class ProviderPayload(Value):
    """The content of `ModelMessage.wire`."""

    format: int
    provider: str
    response: msgspec.Raw


class MalformedReply(Exception):
    """The provider sent something that is not a reply: arguments that are not an object, or a stream without an end."""


_FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "tool_call": "tool-calls",
    "length": "length",
    "content_filter": "refused",
}


def to_library(prompt: Prompt, provider: str) -> list[library.ModelMessage]:
    """The conversation for a request. Adjacent messages of our side are merged, because providers require alternating roles."""
    messages: list[library.ModelMessage] = []
    for message in prompt.messages:
        if isinstance(message, ModelMessage):
            if response := _response(message, provider):
                messages.append(response)
            continue
        parts = _request_parts(message, prompt.contents)
        last = messages[-1] if messages else None
        if isinstance(last, library.ModelRequest):
            last.parts = [*last.parts, *parts]
        else:
            messages.append(library.ModelRequest(parts=parts))
    if prompt.system:
        for request in messages:
            if isinstance(request, library.ModelRequest):
                request.instructions = prompt.system
    return messages


def parameters(prompt: Prompt) -> ModelRequestParameters:
    """The tools and system instructions of a request."""
    tools = [
        ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.parameters)
        for tool in prompt.tools
    ]
    instructions = [library.InstructionPart(content=prompt.system)] if prompt.system else None
    return ModelRequestParameters(function_tools=tools, instruction_parts=instructions)


def from_library(response: library.ModelResponse, provider: str) -> tuple[ModelMessage, Finish]:
    """Translate a complete response. Raises MalformedReply if it is not one."""
    if response.finish_reason is None or response.finish_reason == "error" or response.state != "complete":
        raise MalformedReply("the reply has no end marker")
    finish = _FINISHES[response.finish_reason]
    response, is_complete = _without_cut_calls(response) if finish == "length" else (response, True)
    parts = _parts(response)
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    if len({call.id for call in calls}) != len(calls):
        parts, is_complete = _with_unique_ids(parts), False
    if calls and finish == "stop":
        finish = "tool-calls"
    wire = _wire(response, provider) if is_complete else None
    return ModelMessage(parts=parts, wire=wire), finish


def _parts(response: library.ModelResponse) -> tuple[Part, ...]:
    """Translate its parts. The library does not check what the provider sends, so a name may be a number, or a value may not
    fit into a journal. Raises MalformedReply in both cases.
    """
    try:
        parts = [part for given in response.parts for part in _part(given)]
        return msgspec.json.decode(msgspec.json.encode(parts), type=tuple[Part, ...])
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise MalformedReply(f"a part has the wrong type ({error})") from None


def _request_parts(
    message: UserMessage | ToolMessage, contents: Mapping[str, bytes]
) -> list[library.ModelRequestPart]:
    if isinstance(message, UserMessage):
        attached = [
            library.BinaryContent(data=contents[each.digest], media_type=each.media_type)
            for each in message.attachments
            if each.digest in contents
        ]
        return [library.UserPromptPart(content=[message.text, *attached] if attached else message.text)]
    return [
        library.ToolReturnPart(
            tool_name=returned.tool,
            content=returned.content,
            tool_call_id=returned.id,
            outcome="failed" if returned.is_error else "success",
        )
        for returned in message.returns
    ]


def _response(message: ModelMessage, provider: str) -> library.ModelResponse | None:
    kept = _read_wire(message.wire, provider) if message.wire else None
    if kept is not None:
        return kept
    parts: list[library.ModelResponsePart] = []
    for part in message.parts:
        match part:
            case TextPart(text=text) if text:
                parts.append(library.TextPart(content=text))
            case ToolCallPart():
                parts.append(
                    library.ToolCallPart(tool_name=part.tool, args=part.arguments, tool_call_id=part.id)
                )
            case _:  # reasoning goes back only in the form its provider signed
                pass
    return library.ModelResponse(parts=parts) if parts else None


def _read_wire(text: str, provider: str) -> library.ModelResponse | None:
    try:
        wire = msgspec.json.decode(text, type=ProviderPayload)
        if wire.format != WIRE_FORMAT or wire.provider != provider:
            return None
        kept = library.ModelMessagesTypeAdapter.validate_json(b"[" + bytes(wire.response) + b"]")[0]
    except (msgspec.DecodeError, ValidationError):
        return None
    return kept if isinstance(kept, library.ModelResponse) else None


def _wire(response: library.ModelResponse, provider: str) -> str | None:
    """The response in the library's form, or None if our parts contain all of it."""
    is_plain = all(
        isinstance(part, library.TextPart | library.ThinkingPart | library.ToolCallPart)
        and not (part.id or part.provider_details or getattr(part, "signature", None))
        for part in response.parts
    )
    if is_plain:
        return None
    try:
        body = library.ModelMessagesTypeAdapter.dump_json(
            [response], exclude_none=True, exclude={"__all__": {"usage", "timestamp"}}, warnings="error"
        )
    except PydanticSerializationError:
        return None  # a field has the wrong type; our own parts are valid and sufficient
    kept = msgspec.Raw(body.strip()[1:-1])
    return encode(ProviderPayload(format=WIRE_FORMAT, provider=provider, response=kept)).decode()


def _part(given: library.ModelResponsePart) -> Sequence[Part]:
    match given:
        case library.TextPart(content=text):
            return [TextPart(text=repair_surrogates(text))] if text else []
        case library.ThinkingPart(content=text):
            return [ThinkingPart(text=repair_surrogates(text))] if text else []
        case library.ToolCallPart():
            return [ToolCallPart(id=given.tool_call_id, tool=given.tool_name, arguments=_arguments(given))]
        case _:  # images, files and the provider's own tools; we never request any
            return []


def _arguments(call: library.ToolCallPart) -> JsonObject:
    if isinstance(call.args, dict):
        return call.args
    try:
        return msgspec.json.decode(repair_surrogates(call.args or "{}"), type=JsonObject)
    except (msgspec.DecodeError, RecursionError):
        raise MalformedReply(f"the arguments of {call.tool_name!r} are not a JSON object") from None


def _without_cut_calls(response: library.ModelResponse) -> tuple[library.ModelResponse, bool]:
    """Drop incomplete calls: a reply that reached its token limit may end in the middle of one."""
    kept = [
        part for part in response.parts if not isinstance(part, library.ToolCallPart) or _is_complete(part)
    ]
    is_complete = len(kept) == len(response.parts)
    response.parts = kept
    return response, is_complete


def _is_complete(call: library.ToolCallPart) -> bool:
    try:
        _arguments(call)
    except MalformedReply:
        return False
    return True


def _with_unique_ids(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(
        ToolCallPart(id=f"{part.id or 'call'}-{number}", tool=part.tool, arguments=part.arguments)
        if isinstance(part, ToolCallPart)
        else part
        for number, part in enumerate(parts)
    )
