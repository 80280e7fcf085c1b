"""No server outlives our process, however the process ends."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.mcp.toolset_harness import SERVERS
from tests.support.fork_server import forked_python

HOST = """
import asyncio, sys
from pathlib import Path
from holdfast.mcp import McpToolset, Pins, ServerSpec

async def main():
    toolsets = [
        McpToolset(
            ServerSpec(name=name, command=sys.executable, args=(sys.argv[1], name, sys.argv[2])),
            workspace=Path(sys.argv[2]), pins=Pins(),
        )
        for name in sys.argv[3:]
    ]
    await asyncio.gather(*(each.start() for each in toolsets))
    print("ready", flush=True)
    if sys.stdin.readline():
        await asyncio.gather(*(each.close() for each in toolsets))
        print("closed", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""

KINDS = ("plain", "stubborn", "forking", "daemon")


def _start(python: Sequence[str], folder: Path) -> tuple["subprocess.Popen[str]", list[int]]:
    (folder / "host.py").write_text(HOST)
    host = subprocess.Popen(
        [*python, str(folder / "host.py"), str(SERVERS / "hard_to_stop.py"), str(folder), *KINDS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == "ready\n"
    pids = [int(path.read_text()) for path in folder.glob("*.pid")]
    assert len(pids) == len(KINDS) + 2
    return host, pids


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_after_kill_9_every_server_is_gone(tmp_path: Path) -> None:
    host, pids = _start([sys.executable], tmp_path)
    assert all(map(_is_alive, pids))
    os.kill(host.pid, signal.SIGKILL)
    killed_at = time.monotonic()
    host.communicate()
    while any(map(_is_alive, pids)):
        assert time.monotonic() - killed_at < 30, [pid for pid in pids if _is_alive(pid)]
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_closing_stops_servers_that_ignore_signals_or_fork(tmp_path: Path) -> None:
    host, pids = _start(forked_python(), tmp_path)
    assert host.stdin is not None
    assert host.stdout is not None
    host.stdin.write("close\n")
    host.stdin.flush()
    assert host.stdout.readline() == "closed\n"
    assert not any(map(_is_alive, pids))
    host.communicate()
