"""The schema of a local model's reply: one JSON object, either a tool call or an answer.

Small models do not keep to a format reliably, so the engine enforces this schema as a grammar. Code is requested as a
list of lines, because in a single JSON string small models write a whole program on one line, which is not valid Python.
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
_AFTER_RESULT = """
The task was: {task}
If a part of it is missing, call a tool that does it. If nothing is missing, answer the person with the result."""


def request(prompt: Prompt, *, max_tokens: int, temperature: float) -> JsonObject:
    """The body of the chat completion request."""
    body: JsonObject = {
        "messages": _messages(prompt),
        "max_tokens": max_tokens,
        "temperature": temperature,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if prompt.tools:
        schema: JsonObject = {"name": "reply", "schema": reply_schema(prompt.tools)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def reply_schema(tools: Sequence[ToolOffer]) -> JsonObject:
    """The JSON Schema of a reply: a call of one of the tools, or an answer."""
    calls = [_object({"tool": {"const": tool.name}, "arguments": _parameters(tool)}) for tool in tools]
    return {"anyOf": [*calls, _object({"answer": {"type": "string"}})]}


def join_code_lines(tool: str, arguments: JsonObject, tools: Sequence[ToolOffer]) -> JsonObject:
    """The arguments as the tool expects them, with lines of code joined."""
    lines = arguments.get(_CODE)
    if not isinstance(lines, list) or not any(each.name == tool and _takes_code(each) for each in tools):
        return arguments
    return {**arguments, _CODE: "\n".join(map(str, lines))}


def _takes_code(tool: ToolOffer) -> bool:
    properties = tool.parameters.get("properties")
    code = properties.get(_CODE) if isinstance(properties, dict) else None
    return isinstance(code, dict) and code.get("type") == "string"


def _parameters(tool: ToolOffer) -> JsonObject:
    """The tool's parameters, with code as a list of lines."""
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
        messages.append(_message(message, task, has_tools=bool(prompt.tools)))
    return messages


def _message(message: Message, task: str, *, has_tools: bool) -> Json:
    match message:
        case UserMessage(text=text):
            return {"role": "user", "content": text}
        case ToolMessage(returns=returns):
            results = "\n".join(
                f"{'Error' if returned.is_error else 'Result'} of {returned.tool}: {returned.content}"
                for returned in returns
            )
            return {"role": "user", "content": results + _AFTER_RESULT.format(task=task)}
        case ModelMessage():
            return {"role": "assistant", "content": _as_written(message) if has_tools else message.text}


def _as_written(message: ModelMessage) -> str:
    """A reply in the form the model wrote it, as an example of the format."""
    objects = []
    for part in message.parts:
        match part:
            case ToolCallPart(tool=tool, arguments=arguments):
                with_lines = {
                    name: value.split("\n") if name == _CODE and isinstance(value, str) else value
                    for name, value in arguments.items()
                }
                objects.append(encode({"tool": tool, "arguments": with_lines}).decode())
            case TextPart(text=text):
                objects.append(encode({"answer": text}).decode())
            case _:  # reasoning is not sent back
                pass
    return "\n".join(objects)
