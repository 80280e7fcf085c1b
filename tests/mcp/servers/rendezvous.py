"""A server that starts to answer only after another one was started: `rendezvous.py OWN_MARK OTHER_MARK`."""

import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

own, other = Path(sys.argv[1]), Path(sys.argv[2])
server = MCPServer("rendezvous")


@server.tool(structured_output=False)
def meet() -> str:
    """Confirm that both servers run."""
    return "met"


if __name__ == "__main__":
    own.touch()
    while not other.exists():
        time.sleep(0.01)
    server.run("stdio")
