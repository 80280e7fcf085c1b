"""Servers that hold on to life: one ignores signals and the end of its input, one has a child, one forks away."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

kind, folder = sys.argv[1], Path(sys.argv[2])


def note(name: str) -> None:
    """Leave our pid where the test looks."""
    draft = folder / f"{name}.draft"
    draft.write_text(str(os.getpid()))
    draft.rename(folder / f"{name}.pid")


def cling() -> None:
    """Ignore everything that can be ignored, for a minute."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(60)


def fork(name: str, *, away: bool) -> None:
    """Leave a child behind; one that goes away is nobody's child and in a session of its own."""
    if os.fork():
        return
    if away:
        os.setsid()
        if os.fork():
            os._exit(0)
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    note(name)
    cling()
    os._exit(0)


if kind == "stubborn":
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=time.sleep, args=(60,)).start()
if kind == "forking":
    fork("child", away=False)
if kind == "daemon":
    fork("runaway", away=True)
    while not (folder / "runaway.pid").exists():
        time.sleep(0.001)
note(kind)
while kind == "forking" and not (folder / "child.pid").exists():
    time.sleep(0.001)
MCPServer(kind).run("stdio")
