"""The shape a local model's reply is held to: a call of one tool or an answer, as one JSON object.

Small models cannot be relied on to keep a format by themselves; with this schema as a grammar they cannot leave it. Code is
asked for as a list of lines: in one JSON string they put whole programs on one line, which is no Python.
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
result. Only when the results show that the whole task is done, answer the person: {"answer": TEXT}.
"""
_CODE_RULES = """\
Code is a list of lines, indented as in a file. Do the whole task in one program, and print the result. To count the words \
of one file and write the number into another:
{"tool": NAME, "arguments": {"code": ["with open('/workspace/in.txt') as file:", "    words = file.read().split()", \
"with open('/workspace/out.txt', 'w') as file:", "    file.write(str(len(words)))", "print(len(words), 'words written')"]}}
"""
_CODE = "code"
_GOING_ON = """
The task was: {task}
If a part of it is missing, call a tool that does it. If nothing is missing, answer the person with the result."""


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
    calls = [_object({"tool": {"const": tool.name}, "arguments": _parameters(tool)}) for tool in tools]
    return {"anyOf": [*calls, _object({"answer": {"type": "string"}})]}


def arguments_of(tool: str, said: JsonObject, tools: Sequence[ToolOffer]) -> JsonObject:
    """The arguments of a call as its tool takes them: lines of code put together."""
    lines = said.get(_CODE)
    if not isinstance(lines, list) or not any(each.name == tool and _takes_code(each) for each in tools):
        return said
    return {**said, _CODE: "\n".join(map(str, lines))}


def _takes_code(tool: ToolOffer) -> bool:
    properties = tool.parameters.get("properties")
    code = properties.get(_CODE) if isinstance(properties, dict) else None
    return isinstance(code, dict) and code.get("type") == "string"


def _parameters(tool: ToolOffer) -> JsonObject:
    """What the tool takes, with code as a list of lines."""
    properties = tool.parameters.get("properties")
    if not _takes_code(tool) or not isinstance(properties, dict):
        return tool.parameters
    lines: JsonObject = {"type": "array", "items": {"type": "string"}}
    return {**tool.parameters, "properties": {**properties, _CODE: lines}}


def _object(properties: JsonObject) -> Json:
    required: Json = list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _messages(prompt: Prompt) -> Json:
    system = prompt.system
    if prompt.tools:
        listed = "\n".join(
            f"- {tool.name}: {tool.description} arguments: {encode(_parameters(tool)).decode()}"
            for tool in prompt.tools
        )
        rules = _RULES + (_CODE_RULES if any(map(_takes_code, prompt.tools)) else "")
        system = f"{system}\n\n{rules}The tools:\n{listed}"
    messages: list[Json] = [{"role": "system", "content": system}] if system else []
    task = ""
    for message in prompt.messages:
        task = message.text if isinstance(message, UserMessage) else task
        messages.append(_message(message, task, is_shaped=bool(prompt.tools)))
    return messages


def _message(message: Message, task: str, *, is_shaped: bool) -> Json:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(returns=returns):
            told = "\n".join(
                f"{'Error' if returned.is_error else 'Result'} of {returned.tool}: {returned.content}"
                for returned in returns
            )
            return {"role": "user", "content": told + _GOING_ON.format(task=task)}
        case ModelMessage():
            return {"role": "assistant", "content": _said(message) if is_shaped else message.text}


def _said(message: ModelMessage) -> str:
    """A reply as the model would have written it, so that it sees its own format kept."""
    said = []
    for part in message.parts:
        match part:
            case ToolCallPart(tool=tool, arguments=arguments):
                lined = {
                    name: value.split("\n") if name == _CODE and isinstance(value, str) else value
                    for name, value in arguments.items()
                }
                said.append(encode({"tool": tool, "arguments": lined}).decode())
            case TextPart(text=text):
                said.append(encode({"answer": text}).decode())
            case _:  # a thought is not sent back
                pass
    return "\n".join(said)
