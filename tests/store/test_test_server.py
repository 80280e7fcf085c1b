"""The PostgreSQL server of the tests leaves nothing behind, however the tests end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

USER = """
import sys
from tests.support.postgres import shared_server
with shared_server(sys.argv[1]) as url:
    print(url, flush=True)
    sys.stdin.read()
"""
ROOT = Path(__file__).parents[2]


def test_the_server_ends_with_the_last_process_that_uses_it_even_if_that_is_killed() -> None:
    run = f"leftovers-{os.getpid()}"
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USER, run],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    outputs = [user.stdout for user in users]
    urls = {output.readline().strip() for output in outputs if output is not None}
    assert len(urls) == 1, "one server for both"
    folder = Path(urls.pop().partition("host=")[2]).parent
    server = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
    for user in users:
        assert _is_running(server)
        user.send_signal(signal.SIGKILL)
        user.communicate()
    while _is_running(server) or folder.exists():  # the test's time limit ends it
        time.sleep(0.05)


def _is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
