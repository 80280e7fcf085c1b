"""The shape a local model's reply is held to: a call of one tool or an answer, as one JSON object.

Small models cannot be relied on to keep a format by themselves; with this schema as a grammar they cannot leave it.
"""

from collections.abc import Sequence

from holdfast.core import (
    Json,
    JsonObject,
    Message,
    ModelMessage,
    TextPart,
    ToolCallPart,
    ToolMessage,
    UserMessage,
    encode,
)
from holdfast.models.contract import Prompt, ToolOffer

_RULES = """\
Reply with one JSON object and nothing else. You know nothing about files or data until you have looked with a tool, and \
nothing is done until a tool has done it. So first call a tool: {"tool": NAME, "arguments": {...}}. You then get its \
result. Only when the results show that the task is done: {"answer": TEXT}. In code, write each statement on a line of its \
own: a line break in a string is \\n. The tools:
"""

_GOING_ON = "\nIf something of the task is still to be done, call a tool for it. Otherwise answer, with what the result says."


def request(prompt: Prompt, *, max_tokens: int, temperature: float) -> JsonObject:
    """The chat completion to ask for."""
    asked: JsonObject = {
        "messages": _messages(prompt),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools:
        schema: JsonObject = {"name": "reply", "schema": reply_schema(prompt.tools)}
        asked["response_format"] = {"type": "json_schema", "json_schema": schema}
    return asked


def reply_schema(tools: Sequence[ToolOffer]) -> JsonObject:
    """The union of a call of each tool and an answer."""
    calls = [_object({"tool": {"const": tool.name}, "arguments": tool.parameters}) for tool in tools]
    return {"anyOf": [*calls, _object({"answer": {"type": "string"}})]}


def _object(properties: JsonObject) -> Json:
    required: Json = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _messages(prompt: Prompt) -> Json:
    system = prompt.system
    if prompt.tools:
        listed = "\n".join(
            f"- {tool.name}: {tool.description} arguments: {encode(tool.parameters).decode()}"
            for tool in prompt.tools
        )
        system = f"{system}\n\n{_RULES}{listed}"
    messages: list[Json] = [{"role": "system", "content": system}] if system else []
    messages += [_message(message, is_shaped=bool(prompt.tools)) for message in prompt.messages]
    return messages


def _message(message: Message, *, is_shaped: bool) -> Json:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(returns=returns):
            told = "\n".join(
                f"{'Error' if returned.is_error else 'Result'} of {returned.tool}: {returned.content}"
                for returned in returns
            )
            return {"role": "user", "content": told + _GOING_ON}
        case ModelMessage():
            return {"role": "assistant", "content": _said(message) if is_shaped else message.text}


def _said(message: ModelMessage) -> str:
    """A reply as the model would have written it, so that it sees its own format kept."""
    said = []
    for part in message.parts:
        match part:
            case ToolCallPart(tool=tool, arguments=arguments):
                said.append(encode({"tool": tool, "arguments": arguments}).decode())
            case TextPart(text=text):
                said.append(encode({"answer": text}).decode())
            case _:  # a thought is not sent back
                pass
    return "\n".join(said)
