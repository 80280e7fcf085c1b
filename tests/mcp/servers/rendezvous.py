"""A server that answers nobody before another one has begun: `meeting.py OWN_MARK OTHER_MARK`."""

import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

own, other = Path(sys.argv[1]), Path(sys.argv[2])
server = MCPServer("meeting")


@server.tool(structured_output=False)
def meet() -> str:
    """Say that both are there."""
    return "met"


if __name__ == "__main__":
    own.touch()
    while not other.exists():
        time.sleep(0.01)
    server.run("stdio")
