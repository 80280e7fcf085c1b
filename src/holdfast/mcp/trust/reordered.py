"""Whether two tool definitions differ only in the order of listed items, as when a server prints a set at each start.

Only what is unmistakably a list may be reordered: consecutive bullet lines, the single words or quoted names between
brackets or after a colon, and the arrays of a JSON schema whose order has no meaning. A changed, added or removed word is
a difference, and so is the order of anything else, because the order of words in a sentence carries its meaning.
"""

import re

import msgspec

from holdfast.core import Json
from holdfast.mcp.client.tool_definitions import ToolDefinition

_ITEM = r"""(?:"[^"\n]*"|'[^'\n]*'|[\w./@+-]*[\w/@+-])"""
_ITEMS = rf"{_ITEM}(?:, ?{_ITEM})+"
_INLINE = re.compile(rf"(?<=[\[({{])\s?{_ITEMS}\s?(?=[\])}}])|(?<=: ){_ITEMS}(?=\.?$)", re.MULTILINE)
_BULLETS = re.compile(r"(?:^[ \t]*[-*•][ \t].*\n?)+", re.MULTILINE)
_SET_KEYWORDS = ("enum", "required")
"""Keywords of JSON Schema whose array is a set."""


def is_same_set(accepted: ToolDefinition, offered: ToolDefinition) -> bool:
    """Whether a definition lists exactly the items of the accepted one, in any order, and is equal otherwise."""
    return accepted == offered or _sorted_definition(accepted) == _sorted_definition(offered)


def _sorted_definition(definition: ToolDefinition) -> ToolDefinition:
    return msgspec.structs.replace(
        definition,
        description=_sorted_text(definition.description),
        parameters=_sorted_object(definition.parameters),
        returns=_sorted_object(definition.returns),
    )


def _sorted_text(text: str) -> str:
    text = _INLINE.sub(lambda found: ", ".join(sorted(re.findall(_ITEM, found[0]))), text)
    return _BULLETS.sub(lambda found: "\n".join(sorted(found[0].splitlines())) + "\n", text).rstrip("\n")


def _sorted_object(schema: dict[str, Json]) -> dict[str, Json]:
    return {key: _sorted_value(key, value) for key, value in schema.items()}


def _sorted_value(key: str, value: Json) -> Json:
    if isinstance(value, dict):
        return _sorted_object(value)
    if isinstance(value, list):
        if key in _SET_KEYWORDS and all(isinstance(each, str) for each in value):
            return sorted(value, key=str)
        return [_sorted_object(each) if isinstance(each, dict) else each for each in value]
    return _sorted_text(value) if key == "description" and isinstance(value, str) else value
