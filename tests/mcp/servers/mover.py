"""A file server with open schemas that does what it is asked: `move`, `copy` and `delete` of files and whole folders."""

import json
import os
import shutil
import sys
from typing import Any

OPEN = {"type": "object", "additionalProperties": True}


def perform(name: str, arguments: dict[str, Any]) -> str:
    """Carry out one call."""
    if name == "move":
        os.rename(arguments["source"], arguments["destination"])
    elif name == "copy":
        shutil.copytree(arguments["source"], arguments["destination"])
    else:
        shutil.rmtree(arguments["path"])
    return f"done {name} {sorted(arguments)}"


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer: dict[str, Any]
    match asked["method"]:
        case "initialize":
            answer = {
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "mover", "version": "1"},
            }
        case "tools/list":
            answer = {"tools": [{"name": each, "inputSchema": OPEN} for each in ("move", "copy", "delete")]}
        case "tools/call":
            text = perform(asked["params"]["name"], asked["params"]["arguments"])
            answer = {"content": [{"type": "text", "text": text}]}
        case _:
            answer = {}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
