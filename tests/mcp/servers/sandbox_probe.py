"""A server that tries to read, write, connect and start programs, and reports the outcome.

It speaks the legacy protocol without the MCP library: it is started in a sandbox, and loading the library each time
would take longer than the tests.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


def attempt(action: Callable[[], object]) -> str:
    """The result of an action, or why the system refused it."""
    try:
        return str(action())
    except OSError as error:
        return f"refused: {error.strerror}"


def shell(command: str) -> str:
    """The exit code and output of a child process."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=False)
    return f"{done.returncode}{done.stdout}"


TOOLS: dict[str, Callable[[str], str]] = {
    "read": lambda path: attempt(lambda: Path(path).read_text()),
    "write": lambda path: attempt(lambda: Path(path).write_text("written")),
    "truncate": lambda path: attempt(lambda: os.truncate(path, 0)),
    "remove": lambda path: attempt(lambda: os.unlink(path)),
    "connect": lambda kind: attempt(lambda: socket.socket(getattr(socket, kind)).close()),
    "shell": shell,
}


def answer(method: str, params: dict[str, object]) -> object:
    """The result of a request; None for an unknown method."""
    match method:
        case "initialize":
            info = {"name": "sandbox_probe", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        case "tools/call":
            arguments = params["arguments"]
            assert isinstance(arguments, dict)
            text = TOOLS[str(params["name"])](*arguments.values())
            return {"content": [{"type": "text", "text": text}]}
        case _:
            return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = answer(request["method"], request.get("params", {}))
        error = {"code": -32601, "message": "Method not found"}
        outcome = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome), flush=True)
