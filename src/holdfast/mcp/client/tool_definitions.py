"""Tool definitions: what a server claims about its tools, parsed and filtered."""

import re

import msgspec

from holdfast.core import Json, JsonObject, Value, escape_invisible
from holdfast.mcp.client.resources import EXTRAS

MAX_TOOLS = 1000
MAX_DEFINITION_BYTES = 256 << 10
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class ToolDefinition(Value):
    """One tool as its server describes it. Its hints never make a verdict less strict."""

    name: str
    title: str = ""
    description: str = ""
    parameters: JsonObject = msgspec.field(default_factory=dict)
    returns: JsonObject = msgspec.field(default_factory=dict)
    is_read_only: bool | None = None
    is_destructive: bool | None = None
    is_idempotent: bool | None = None


class RefusedTool(Value):
    """A tool that is not offered, and the reason."""

    name: str
    reason: str


def read_definitions(tools: list[JsonObject]) -> tuple[tuple[ToolDefinition, ...], tuple[RefusedTool, ...]]:
    """Split a server's tool list into the definitions to offer and the tools to refuse."""
    refused: list[RefusedTool] = []
    read: dict[str, list[ToolDefinition]] = {}
    for raw in tools[:MAX_TOOLS]:
        definition = _definition(raw)
        if not _NAME.fullmatch(definition.name):
            refused.append(
                RefusedTool(
                    name=escape_invisible(definition.name)[:200],
                    reason="its name has characters that a tool name must not have",
                )
            )
        elif definition.name in EXTRAS:
            refused.append(RefusedTool(name=definition.name, reason="this name is reserved for Holdfast"))
        elif len(msgspec.json.encode(raw)) > MAX_DEFINITION_BYTES:
            refused.append(
                RefusedTool(
                    name=definition.name,
                    reason=f"its definition is larger than {MAX_DEFINITION_BYTES >> 10} KiB",
                )
            )
        else:
            read.setdefault(_confusable_form(definition.name), []).append(definition)
    if len(tools) > MAX_TOOLS:
        refused.append(
            RefusedTool(
                name="*", reason=f"the server lists {len(tools)} tools; only the first {MAX_TOOLS} are read"
            )
        )
    offered = [alike[0] for alike in read.values() if len(alike) == 1]
    for alike in read.values():
        if len(alike) > 1:
            refused.extend(
                RefusedTool(
                    name=each.name,
                    reason="another tool of this server has the same name or one that looks the same",
                )
                for each in alike
            )
    return tuple(offered), tuple(refused)


def _confusable_form(name: str) -> str:
    """The form that names share if a person may confuse them."""
    return name.casefold().translate(str.maketrans("-.01i", "__oll"))


def _definition(raw: JsonObject) -> ToolDefinition:
    annotations = raw.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return ToolDefinition(
        name=str(raw.get("name", "")),
        title=_string(raw.get("title") or hints.get("title")),
        description=_string(raw.get("description")),
        parameters=_object(raw.get("inputSchema")),
        returns=_object(raw.get("outputSchema")),
        is_read_only=_boolean(hints.get("readOnlyHint")),
        is_destructive=_boolean(hints.get("destructiveHint")),
        is_idempotent=_boolean(hints.get("idempotentHint")),
    )


def _string(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _boolean(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None
