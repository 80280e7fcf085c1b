"""Fixtures of the web tests: a real server process, and a real browser that all tests of a worker share."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.commands import environment, run
from tests.support.fork_server import forked_python
from tests.web.browser_thread import BrowserThread, OpenedPage
from tests.web.http import enter

__all__ = ["run"]


@dataclass(frozen=True, slots=True)
class WebServer:
    """A running `holdfast web`."""

    home: Path
    """The home directory of its user; the data directory is `holdfast` in it."""
    link: str
    url: str
    token: str
    process: "subprocess.Popen[str]"


@contextmanager
def running_server(
    home: Path, *, port: int = 0, enters: bool = True, origin: str | None = None
) -> Iterator[WebServer]:
    """Start `holdfast web`, and end it with the block."""
    offered = ("--origin", origin) if origin is not None else ()
    process = subprocess.Popen(
        forked_python("-m", "holdfast", "web", "--port", str(port), "--no-browser", *offered),
        env=environment(home),
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().strip()
        assert link.startswith(origin or "http://127.0.0.1:"), (link, process.poll())
        url = link.partition("#")[0]
        token = enter(url, link.partition("enter=")[2]) if enters else ""
        yield WebServer(home=home, link=link, url=url, token=token, process=process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[BrowserThread]:
    """The browser of this worker."""
    thread = BrowserThread()
    yield thread
    thread.close()


@pytest.fixture(scope="module")
def tab(server: "WebServer", browser: BrowserThread) -> Iterator[OpenedPage]:
    """A page that the tests of a module share: each goes to its address, and leaves the settings of the page as they were."""
    with browser.open(server.url, token=server.token) as opened:
        yield opened


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebServer]:
    """A server that the tests of a module share."""
    home = tmp_path_factory.mktemp("web")
    os.chmod(home, 0o700)
    with running_server(home) as running:
        yield running
