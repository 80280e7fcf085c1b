"""Tool definitions: what a server says of its tools, taken as a claim and not as a fact."""

import re
import unicodedata

import msgspec

from holdfast.core import Json, JsonObject, Value, digest
from holdfast.mcp.extras import EXTRAS

MAX_TOOLS = 1000
MAX_DEFINITION_BYTES = 256 << 10
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_PLAIN = frozenset("\n\t")


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

    @property
    def digest(self) -> str:
        """Names this exact definition."""
        return digest(self)


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
                    name=visible(definition.name)[:200],
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


def visible(text: str) -> str:
    """The text with everything a person would not see written out: `a\\u200bb` becomes `a⟨U+200B⟩b`."""
    return "".join(
        char if char in _PLAIN or char == " " or not _is_hidden(char) else f"⟨U+{ord(char):04X}⟩"
        for char in text
    )


def has_hidden(text: str) -> bool:
    """Whether some of the text would not be seen."""
    return any(char not in _PLAIN and char != " " and _is_hidden(char) for char in text)


def _is_hidden(char: str) -> bool:
    # Control, format (zero width, bidi, tags), surrogate, private use, unassigned, odd spaces; variation selectors and
    # fillers are letters or marks to Unicode and nothing to the eye.
    point = ord(char)
    return (
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs")
        or 0xFE00 <= point <= 0xFE0F
        or 0xE0100 <= point <= 0xE01EF
        or point in (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
    )


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
