"""Killed servers and closed tabs: whoever reads the events of all sessions gets each of them once."""

import asyncio
import http.client
import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from tests.store.sample_events import opened, said
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import WebServer, running_server

from holdfast.core import SystemClock
from holdfast.store import Home, open_store

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.timeout(600)
"""A browser on a slow machine takes its time."""

SEEN = """async () => {
  const { onNews } = await import("/static/stream.js");
  window.seen = [];
  onNews((news) => { if (news.event === "message-posted") window.seen.push(news.seq); });
}"""


@contextmanager
def appended(home: Path) -> Iterator[list[int]]:
    """Another process's work: messages of one session, one after another, while the block runs. Gives their numbers."""
    written: list[int] = []
    stop = threading.Event()

    async def write() -> None:
        store = await open_store(Home(home), clock=SystemClock(), redact=bytes)
        try:
            journal = await store.create(opened())
            for number in itertools.count(1):
                if stop.is_set():
                    return
                await journal.append(said(number, f"message {number}"))
                written.append(journal.recorded[-1].seq)
                await asyncio.sleep(0.02)
        finally:
            await store.close()

    thread = threading.Thread(target=asyncio.run, args=(write(),))
    thread.start()
    try:
        yield written
    finally:
        stop.set()
        thread.join()


def read_on(server: WebServer, last: int | None, upto: int) -> list[tuple[int, int]]:
    """The row and number of the messages behind a row, up to a number, as a page that comes back reads them."""
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)
    headers = {"Authorization": f"Bearer {server.token}"}
    if last is not None:
        headers["Last-Event-ID"] = str(last)
    try:
        connection.request("GET", "/api/stream", headers=headers)
        response = connection.getresponse()
        assert response.status == 200
        found: list[tuple[int, int]] = []
        while not found or found[-1][1] < upto:
            line = response.readline()
            assert line.strip() != b"event: reset"
            if line.startswith(b"data: "):
                frame = json.loads(line[6:])
                if frame.get("event") == "message-posted":
                    found.append((frame["row"], frame["seq"]))
        return found
    finally:
        connection.close()


def kill(server: WebServer) -> None:
    """Kill the process that serves; its file names it."""
    files = (server.home / "holdfast" / "web-servers").glob("*.json")
    newest = max(files, key=lambda file: int(file.stem.partition("-")[2]))
    os.kill(int(newest.stem.partition("-")[0]), signal.SIGKILL)
    server.process.wait(timeout=60)


def kill_servers(home: Path, number: int) -> None:
    """Kill the server again and again while a reader follows it."""
    seen: list[tuple[int, int]] = []
    with appended(home / "holdfast") as written:
        while not written:
            threading.Event().wait(0.01)
        for _ in range(number):
            with running_server(home) as server:
                seen += read_on(server, seen[-1][0] if seen else None, written[-1])
                kill(server)
    numbers = [seq for _, seq in seen]
    assert len(numbers) >= number
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def test_a_reader_gets_every_event_once_over_killed_servers(tmp_path: Path) -> None:
    kill_servers(tmp_path, 2)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_reader_gets_every_event_once_over_fifty_killed_servers(tmp_path: Path) -> None:
    kill_servers(tmp_path, 50)


def close_tabs(home: Path, browser: BrowserThread, number: int) -> None:
    """Close the oldest of three tabs, which reads the stream for all, again and again."""
    with running_server(home) as server, appended(home / "holdfast") as written:

        async def watch(page: "Page") -> list[list[int]]:
            await page.get_by_role("heading", name="Inbox").wait_for()
            tabs = [page]
            done: list[list[int]] = []
            for _ in range(number):
                while len(tabs) < 3:
                    tab = await page.context.new_page()
                    await tab.goto(server.url)
                    await tab.get_by_role("heading", name="Inbox").wait_for()
                    await tab.evaluate(SEEN)
                    tabs.append(tab)
                oldest = tabs.pop(0)
                if oldest is not page:
                    done.append(await oldest.evaluate("() => window.seen"))
                await oldest.close()
                for tab in tabs:  # the next one reads, and the other one is told
                    mark = written[-1]
                    await tab.wait_for_function("(mark) => window.seen.at(-1) > mark", arg=mark)
            return [*done, *[await tab.evaluate("() => window.seen") for tab in tabs]]

        for seen in browser.visit(server.url, watch, token=server.token):
            assert seen == list(range(seen[0], seen[0] + len(seen)))


def test_every_tab_gets_every_event_once_while_others_are_closed(
    tmp_path: Path, browser: BrowserThread
) -> None:
    close_tabs(tmp_path, browser, 2)


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_every_tab_gets_every_event_once_while_fifty_others_are_closed(
    tmp_path: Path, browser: BrowserThread
) -> None:
    close_tabs(tmp_path, browser, 50)
