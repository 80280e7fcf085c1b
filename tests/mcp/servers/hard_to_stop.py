"""Servers that are hard to stop: one ignores signals and the end of its input, one has a child, one daemonizes."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

kind, folder = sys.argv[1], Path(sys.argv[2])


def write_pid(name: str) -> None:
    """Write our pid to a file for the test."""
    draft = folder / f"{name}.draft"
    draft.write_text(str(os.getpid()))
    draft.rename(folder / f"{name}.pid")


def ignore_signals() -> None:
    """Ignore every signal that can be ignored."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def fork(name: str, *, is_daemon: bool) -> None:
    """Start a child. A daemon has no parent among us and its own session."""
    if os.fork():
        return
    if is_daemon:
        os.setsid()
        if os.fork():
            os._exit(0)
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    ignore_signals()
    write_pid(name)
    time.sleep(60)
    os._exit(0)


if kind == "stubborn":
    ignore_signals()
    threading.Thread(target=time.sleep, args=(60,)).start()
if kind in ("forking", "daemon"):
    fork(f"child-of-{kind}", is_daemon=kind == "daemon")
    while not (folder / f"child-of-{kind}.pid").exists():
        time.sleep(0.001)
write_pid(kind)
ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": kind, "version": "1"},
    },
    "tools/list": {"tools": []},
}
for line in sys.stdin:
    request = json.loads(line)
    if "id" in request and "method" in request:
        answer = ANSWERS.get(request["method"])
        error = {"code": -32601, "message": "Method not found"}
        outcome = {"error": error} if answer is None else {"result": answer}
        print(json.dumps({"jsonrpc": "2.0", "id": request["id"]} | outcome), flush=True)
