"""How the stub of the Messages API answers the real programs: a message says what to reply.

recall            every message of the conversation so far
use TOOL {...}    a tool call, then its result
hang              starts to answer and never ends
fail 500          an error of the provider
anything else     echo[n] of it, where n counts the messages
"""

import re
from typing import Any

import msgspec
from tests.support.provider_stub import Fault, Hang, HttpError

from holdfast.core import JsonObject, ModelMessage, Part, TextPart, ThinkingPart, ToolCallPart, Usage, encode
from holdfast.models import Reply

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.S)
_MESSAGE = re.compile(
    r"\[(?P<mark>[0-9a-f]{8})(?: notice sent earlier[^\n]*)?\n(?P<text>.*?)\n(?P=mark)\]", re.S
)
USAGE = Usage(input_tokens=1000, output_tokens=10)


def respond(body: JsonObject) -> Reply | Fault:
    messages: Any = [message for message in _listed(body) if message["role"] in ("user", "assistant")]
    result = _tool_result(messages[-1])
    if result is not None:
        return _say(f"tool said: {result}")
    if not messages_in(messages[-1]):
        return _say("summary of everything so far")
    messages = [text for message in messages if message["role"] == "user" for text in messages_in(message)]
    text = messages[-1]
    verb, _, rest = text.partition(" ")
    match verb:
        case "recall":
            return _say(f"recall: {encode(messages[:-1]).decode()}")
        case "use":
            tool, _, arguments = rest.partition(" ")
            call = ToolCallPart(
                id=f"toolu_{len(messages)}", tool=tool, arguments=msgspec.json.decode(arguments)
            )
            return Reply(message=ModelMessage(parts=(call,)), usage=USAGE, finish="tool-calls")
        case "hang":
            return Hang()
        case "fail":
            return HttpError(status=int(rest))
        case "think":
            return _say(f"thought: {rest}", ThinkingPart(text="hm"))
        case _:
            return _say(f"echo[{len(messages)}]: {text}")


def _listed(body: JsonObject) -> Any:
    return body["messages"]


def messages_in(message: Any) -> list[str]:
    """The team messages in one message of the conversation."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
    return [found["text"] for found in _MESSAGE.finditer(_REMINDER.sub("", text))]


def _tool_result(message: Any) -> str | None:
    if isinstance(message["content"], str):
        return None
    for block in message["content"]:
        if block["type"] == "tool_result":
            content = block["content"]
            return content if isinstance(content, str) else " ".join(each.get("text", "") for each in content)
    return None


def _say(text: str, *before: Part) -> Reply:
    return Reply(message=ModelMessage(parts=(*before, TextPart(text=text))), usage=USAGE, finish="stop")
