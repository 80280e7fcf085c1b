"""Results: what a server answered, as the JSON a guest is given. Nothing that came is lost, text or not."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.core import Json
from holdfast.core.errors import ToolFailed

if TYPE_CHECKING:
    from mcp_types import CallToolResult

Present = Callable[["CallToolResult"], Json]
"""How a result is shown to who asked for it."""


def present_plainly(result: "CallToolResult") -> Json:
    """For code: the structured content where there is some, the text where that is all, else the list of blocks."""
    if result.structured_content is not None:
        structured: Json = result.structured_content
        return structured
    texts = [block.text for block in result.content if block.type == "text"]
    if texts and len(texts) == len(result.content):
        return "\n".join(texts)
    content: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)["content"] or None
    return content


def present_wholly(result: "CallToolResult") -> Json:
    """For another MCP client: the result as it came."""
    whole: Json = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return whole


def failure_of(result: "CallToolResult") -> ToolFailed:
    """The error that an `isError` result is."""
    texts = [block.text for block in result.content if block.type == "text"]
    return ToolFailed("\n".join(texts) or "the tool failed and gave no reason")
