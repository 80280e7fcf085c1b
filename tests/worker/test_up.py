"""One command tries it all: a server from a wheel, the web page and workers. Nothing stays when it ends, however it ends."""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.commands import environment, holdfast
from tests.cli.test_task import runs, script
from tests.support.fork_server import forked_python
from tests.web.http import enter, send


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:  # short: the path of a socket is limited
        yield Path(folder)


@contextmanager
def up(home: Path, *, workers: int) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """The process, the address of the page, and a token for it."""
    with (home / "err").open("w") as err:
        process = subprocess.Popen(
            forked_python("-m", "holdfast", "up", "--workers", str(workers), "--port", "0"),
            env=environment(home),
            cwd=home,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        )
    assert process.stdout is not None
    try:
        link = process.stdout.readline().strip()
        assert link.startswith("http://127.0.0.1:"), (home / "err").read_text()
        url, _, code = link.partition("#enter=")
        yield process, url, enter(url, code)
    finally:
        process.kill()
        process.communicate()


def until(is_so: Callable[[], object]) -> None:
    while not is_so():  # the test's time limit ends it
        time.sleep(0.1)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.timeout(600)
def test_a_session_started_on_the_page_is_run_by_a_worker_and_nothing_stays_behind(home: Path) -> None:
    model = script(home, runs("open('a.txt', 'w').write('x')"), "I wrote a.txt.")
    store = f"postgresql://postgres@/postgres?host={environment(home)['HOLDFAST_HOME']}/postgres/socket"
    with up(home, workers=2) as (process, url, token):
        body = {"text": "write a file", "model": model, "policy": "ask-always"}
        started = send(url, "POST", "/api/sessions", token=token, body=body)
        assert started.status == 200, started
        session = started.data["session"]
        until(lambda: send(url, "GET", "/api/waiting", token=token).data)
        (waiting,) = send(url, "GET", "/api/waiting", token=token).data
        answer = {"verdict": "approve", "digest": waiting["escalation"]["digest"]}
        path = f"/api/waiting/{session}/{waiting['escalation']['id']}"
        assert send(url, "POST", path, token=token, body=answer).data["delivery"] in ("accepted", "kept")
        conversation = f"/api/sessions/{session}/conversation"
        until(lambda: b"I wrote a.txt." in send(url, "GET", conversation, token=token).body)
        assert "ended" not in (home / "err").read_text(), "no worker had to be started again"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=300) == 0, (home / "err").read_text()
    assert not list((home / "holdfast" / "postgres" / "socket").glob(".s*")), "the server has ended"
    with up(home, workers=1) as (process, url, token):
        assert send(url, "GET", f"/api/sessions/{session}", token=token).status == 200, "sessions are kept"
        server = server_pid(home)
        assert server is not None
        os.kill(server, signal.SIGQUIT)  # as in a crash
        until(lambda: server_pid(home) not in (None, server))
        until(lambda: send(url, "GET", f"/api/sessions/{session}", token=token).status == 200)
        until(lambda: len(processes(store, home)) == 2)
        pids = processes(store, home)
        os.kill(process.pid, signal.SIGKILL)
        until(lambda: not any(map(is_running, pids)))


def processes(store: str, home: Path) -> list[int]:
    found = holdfast("workers", "--store", store, "--json", home=home)
    workers = [each["pid"] for each in json.loads(found.stdout) if each["role"].startswith("worker")]
    return [server_pid(home) or 0, *workers]


def server_pid(home: Path) -> int | None:
    """The process of the server; None while there is none."""
    try:
        lines = (home / "holdfast" / "postgres" / "data" / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return None
    return int(lines[0]) if lines else None
