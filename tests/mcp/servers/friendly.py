"""A well-behaved server: text, numbers, images, errors, progress, its environment, and a way to exit."""

import asyncio
import base64
import os
import sys
from pathlib import Path

import mcp_types
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("friendly")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(structured_output=False)
def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool(structured_output=False)
def picture() -> list[mcp_types.ContentBlock]:
    """An image with a caption."""
    data = base64.b64encode(b"\x89PNG").decode()
    return [
        mcp_types.TextContent(type="text", text="a dot"),
        mcp_types.ImageContent(type="image", data=data, mime_type="image/png"),
    ]


@server.tool(structured_output=False)
def fail(reason: str) -> str:
    """Fail on purpose."""
    raise ToolError(reason)


@server.tool(structured_output=False)
def environment() -> str:
    """The names of all environment variables."""
    return "\n".join(sorted(os.environ))


@server.tool(structured_output=False)
def folder() -> str:
    """The working directory."""
    return os.getcwd()


@server.tool(structured_output=False)
async def count(to: int, context: Context) -> str:
    """Count, reporting progress."""
    for n in range(1, to + 1):
        await context.report_progress(n, to, f"at {n}")
    return f"counted to {to}"


@server.tool(structured_output=False)
async def wait_forever(marker: str) -> str:
    """Never answer. Create one file at the start, and another when the call is cancelled."""
    Path(f"{marker}.started").touch()
    try:
        await asyncio.Event().wait()
    finally:
        Path(marker).touch()
    return "unreachable"


@server.tool(structured_output=False)
def die(code: int) -> str:
    """Exit without an answer."""
    print("exiting as requested", file=sys.stderr, flush=True)
    os._exit(code)


@server.resource("note://today")
def today() -> str:
    """A note."""
    return "buy milk"


@server.prompt()
def greet(name: str) -> str:
    """A greeting."""
    return f"Say hello to {name}."


if __name__ == "__main__":
    server.run("stdio")
