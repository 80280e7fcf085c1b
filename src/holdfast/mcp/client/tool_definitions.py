"""Tool definitions: what a server says of its tools, taken as a claim and not as a fact."""

import re

import msgspec

from holdfast.core import Json, JsonObject, Value, escape_invisible
from holdfast.mcp.client.resources import EXTRAS

MAX_TOOLS = 1000
MAX_DEFINITION_BYTES = 256 << 10
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Definition(Value):
    """One tool as its server describes it. The hints are the server's own and never make a verdict milder."""

    name: str
    title: str = ""
    description: str = ""
    parameters: JsonObject = msgspec.field(default_factory=dict)
    returns: JsonObject = msgspec.field(default_factory=dict)
    is_read_only: bool | None = None
    is_destructive: bool | None = None
    is_idempotent: bool | None = None


class Refusal(Value):
    """A tool that is not offered, and why."""

    name: str
    reason: str


def read_definitions(tools: list[JsonObject]) -> tuple[tuple[Definition, ...], tuple[Refusal, ...]]:
    """The definitions in a server's tool list, and those that nobody should be able to call."""
    refused: list[Refusal] = []
    read: dict[str, list[Definition]] = {}
    for raw in tools[:MAX_TOOLS]:
        definition = _definition(raw)
        if not _NAME.fullmatch(definition.name):
            refused.append(
                Refusal(
                    name=escape_invisible(definition.name)[:200],
                    reason="its name has characters that no tool's name may have",
                )
            )
        elif definition.name in EXTRAS:
            refused.append(Refusal(name=definition.name, reason="this name is ours"))
        elif len(msgspec.json.encode(raw)) > MAX_DEFINITION_BYTES:
            refused.append(
                Refusal(
                    name=definition.name,
                    reason=f"its definition is larger than {MAX_DEFINITION_BYTES >> 10} KiB",
                )
            )
        else:
            read.setdefault(_look(definition.name), []).append(definition)
    if len(tools) > MAX_TOOLS:
        refused.append(
            Refusal(name="*", reason=f"the server lists {len(tools)} tools, only {MAX_TOOLS} are looked at")
        )
    offered = [alike[0] for alike in read.values() if len(alike) == 1]
    for alike in read.values():
        if len(alike) > 1:
            refused.extend(
                Refusal(
                    name=each.name,
                    reason="another tool of this server has the same name, or one that looks the same",
                )
                for each in alike
            )
    return tuple(offered), tuple(refused)


def _look(name: str) -> str:
    """Names that a person takes for the same have one look."""
    return name.casefold().translate(str.maketrans("-.01i", "__oll"))


def _definition(raw: JsonObject) -> Definition:
    annotations = raw.get("annotations")
    hints = annotations if isinstance(annotations, dict) else {}
    return Definition(
        name=str(raw.get("name", "")),
        title=_text(raw.get("title") or hints.get("title")),
        description=_text(raw.get("description")),
        parameters=_schema(raw.get("inputSchema")),
        returns=_schema(raw.get("outputSchema")),
        is_read_only=_hint(hints.get("readOnlyHint")),
        is_destructive=_hint(hints.get("destructiveHint")),
        is_idempotent=_hint(hints.get("idempotentHint")),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _schema(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _hint(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None
