"""A server whose only tool returns everything that the server was given: its environment and its arguments."""

import json
import os
import sys

for line in sys.stdin:
    message = json.loads(line)
    match message.get("method"):
        case "initialize":
            version = message["params"]["protocolVersion"]
            result: object = {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "echo", "version": "1"},
            }
        case "tools/list":
            result = {"tools": [{"name": "work", "inputSchema": {"type": "object", "properties": {}}}]}
        case "tools/call":
            given = json.dumps({"env": dict(os.environ), "args": sys.argv[1:]})
            result = {"content": [{"type": "text", "text": given}]}
        case _:
            if "id" in message:  # without an answer the client waits for its whole time limit
                error = {"code": -32601, "message": "unknown method"}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}), flush=True)
            continue
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
