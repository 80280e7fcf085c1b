"""The web server and its page: how long it takes until a browser shows an event, an answer, a list, a long session and a long diff.

event        from the append of another process until the frame arrives at a client of the stream, and until the page shows it
answer       from the request until the process that holds the session has recorded the answer, and until another page shows it; and
             the part of the server alone, which records the answer where nobody holds the session
lists        what waits (1,000 calls), the newest 50 sessions and usage, in homes of 1,000 and of 100,000 sessions: wall and CPU time
page         the first paint, a list of 1,000 sessions, and the newest of 100,000
session      of 10,000 events: until its end is shown, and the frames while it scrolls
diff         of 20,000 lines: until its first hunk is shown
assets       the bytes of all scripts and styles; memory of an idle server

kills        of the server and of tabs: events lost or shown twice (the tests of tests/web/test_kills.py, long form)
tests        thirty tests in the browser; and those that fail if a random key approves, an attack succeeds, axe finds something, or a
             page reports an error, a violation of its content security policy or a request to another host. So does every visit here.

Each figure stands beside its goal with a verdict, and the end names those that were missed. The load of the machine is printed
first: wall times on a loaded machine are upper bounds.
HOLDFAST_BENCH_SESSIONS sets the size of the large home.
"""

import asyncio
import gzip
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from tests.cli.commands import environment
from tests.store.sample_events import asked, ended, opened, replied, said
from tests.web import browser as chromium
from tests.web.asgi import web_client
from tests.web.browser_thread import BrowserThread
from tests.web.conftest import WebServer, running_server
from tests.web.http import send
from tests.web.test_static import STATIC

from holdfast.app import Runtime
from holdfast.core import SessionId, SystemClock
from holdfast.core.events import Event
from holdfast.session import Settings
from holdfast.store import Home, Store, open_store

if TYPE_CHECKING:
    from playwright.async_api import Page

EVENTS, ANSWERS, LOADS = 200, 60, 5
SMALL, LARGE = 1_000, int(os.environ.get("HOLDFAST_BENCH_SESSIONS", "100000"))
TOGETHER = 250
"""Sessions that are created at once, so that they share commits."""

SHOWN = """(() => {
  window.shown = {};
  const look = () => {
    for (const [name, [selector, words]] of Object.entries(WANTED)) {
      if (name in window.shown) continue;
      for (const each of document.querySelectorAll(selector)) {
        if (each.textContent.includes(words)) { window.shown[name] = performance.now(); break; }
      }
    }
  };
  new MutationObserver(look).observe(document, { childList: true, subtree: true, characterData: true });
})()"""
"""Notes when the page first has an element with some words, in milliseconds since the navigation."""
PAINTED = """new PerformanceObserver((list) => {
  for (const each of list.getEntriesByName("first-contentful-paint")) window.shown.paint = each.startTime;
}).observe({ type: "paint", buffered: true })"""
ARRIVED = """() => {
  window.arrived = {};
  const note = () => { for (const found of document.body.textContent.matchAll(/bench-\\d+-end/g)) window.arrived[found[0]] ??= Date.now(); };
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""
"""Notes when the page first shows each marked text, by the clock of the machine."""
SETTLED = """() => {
  window.settled = {};
  const note = () => { for (const each of document.querySelectorAll(".card.settled")) window.settled[each.textContent.match(/bench-(\\d+)\\.txt/)?.[1]] ??= Date.now(); };
  new MutationObserver(note).observe(document.body, { childList: true, subtree: true, characterData: true });
}"""
FRAMES = """() => new Promise((done) => {
  const times = [];
  let last = performance.now(), step = 0;
  const frame = (now) => {
    times.push(now - last); last = now;
    scrollBy(0, step++ < 60 ? -300 : 300);
    if (step < 120) requestAnimationFrame(frame); else done(times.slice(2));
  };
  requestAnimationFrame(frame);
})"""


MISSED: list[str] = []
BROWSER_TESTS = (
    "test_inbox",
    "test_changes",
    "test_conversation",
    "test_attacks",
    "test_phone",
    "test_pages",
)
GUARDING_TESTS = ("test_accidents", "test_attacks", "test_guard", "test_pages", "test_threats")
TESTS = 30


def main() -> None:
    """Print the figures, each beside its goal."""
    chromium.install()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    sizes()
    judge("memory of an idle server", memory(), 80, "MB")
    browser = BrowserThread()
    try:
        with folder() as home, running_server(home) as server:
            show("event to the stream", asyncio.run(events(server)), p50=10, p95=30)
            show("event to the page", shown_events(server, browser), p50=10, p95=30)
            show("answer recorded by the holder", asyncio.run(answers(server)), p50=15, p95=40)
            show("answer to another page", shown_answers(server, browser), p50=15, p95=40)
        with folder() as home:
            show("answer, the part of the server", asyncio.run(server_answers(home)), p95=10)
        with folder() as home:
            asyncio.run(long_session(home))
            diff = asyncio.run(long_diff(home))
            with running_server(home) as server:
                open_long(server, browser, diff)
        for number in (SMALL, LARGE):
            with folder() as home:
                asyncio.run(lists(home, number))
                with running_server(home) as server:
                    open_list(server, browser, number)
    finally:
        browser.close()
    kills()
    guarding_tests()
    browser_tests()
    print(f"missed: {'; '.join(MISSED)}" if MISSED else "every goal was reached")


def judge(name: str, value: float, goal: float, unit: str) -> None:
    """Print a figure beside its goal."""
    is_reached = value <= goal
    print(f"{name}: {value:,.1f} {unit}, goal {goal:,g} {unit}: {'reached' if is_reached else 'MISSED'}")
    if not is_reached:
        MISSED.append(f"{name} {value:,.1f} {unit} (goal {goal:,g})")


class folder(tempfile.TemporaryDirectory[str]):
    """A folder for one part."""

    def __init__(self) -> None:
        super().__init__(prefix="holdfast-bench-")

    def __enter__(self) -> Path:  # type: ignore[override]
        return Path(super().__enter__())


def show(name: str, seconds: list[float], *, p50: float | None = None, p95: float | None = None) -> None:
    """Print the median and the 95th percentile, and whether they reach their goals."""
    ordered = sorted(each * 1000 for each in seconds)
    slow = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    print(
        f"{name}: p50 {statistics.median(ordered):.1f} ms, p95 {slow:.1f} ms, n {len(ordered)}, "
        f"load {os.getloadavg()[0]:.0f}"
    )
    if p50 is not None:
        judge(f"    {name}, p50", statistics.median(ordered), p50, "ms")
    if p95 is not None:
        judge(f"    {name}, p95", slow, p95, "ms")


def sizes() -> None:
    """The bytes of the page: as they are, and as they travel, file by file and as one."""
    contents = {
        path.name: path.read_bytes() for path in sorted(STATIC.rglob("*")) if path.suffix in (".js", ".css")
    }
    judge("all scripts and styles", sum(map(len, contents.values())) / 1000, 120, "KB")
    judge("the largest file", max(map(len, contents.values())) / 1000, 60, "KB")
    judge("gzip, as one", len(gzip.compress(b"".join(contents.values()))) / 1000, 40, "KB")
    packed = {name: len(gzip.compress(each)) for name, each in contents.items()}
    judge(f"gzip, {len(packed)} files one by one", sum(packed.values()) / 1000, 40, "KB")
    largest = sorted(packed.items(), key=lambda each: -each[1])[:5]
    print(f"    of it {', '.join(f'{name} {size / 1000:.1f}' for name, size in largest)}")


def memory() -> float:
    """The resident memory of an idle server, in megabytes. It is started on its own: those of tests share our memory."""
    with folder() as home:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "web", "--port", "0", "--no-browser"],
            env=environment(home),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        with process.stdout:
            process.stdout.readline()
            time.sleep(1)  # until it idles
            status = Path(f"/proc/{process.pid}/status").read_text()
        process.terminate()
        process.wait()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def events(server: WebServer) -> list[float]:
    """Append from this process, read the stream of the server process."""
    store = await open_store(Home(server.home / "holdfast"), clock=SystemClock(), redact=bytes)
    connection = http.client.HTTPConnection(server.url.partition("//")[2].rstrip("/"), timeout=60)
    try:
        journal = await store.create(opened())
        connection.request("GET", "/api/stream", headers={"Authorization": f"Bearer {server.token}"})
        response = connection.getresponse()
        await asyncio.to_thread(response.readline)
        took: list[float] = []
        for number in range(EVENTS):
            await asyncio.sleep(0.02)
            reading = asyncio.ensure_future(asyncio.to_thread(_until, response, f"bench {number} end"))
            await asyncio.sleep(0)
            await journal.append(said(1, f"bench {number} end"))
            durable = time.perf_counter()
            took.append(await reading - durable)
        return took
    finally:
        connection.close()
        await store.close()


def _until(response: http.client.HTTPResponse, words: str) -> float:
    while words.encode() not in response.readline():
        pass
    return time.perf_counter()


def shown_events(server: WebServer, browser: BrowserThread) -> list[float]:
    """From the append of this process until the page of the session shows it."""
    durable: dict[str, float] = {}

    async def work(page: "Page") -> list[float]:
        store = await open_store(Home(server.home / "holdfast"), clock=SystemClock(), redact=bytes)
        try:
            journal = await store.create(opened(name="bench-live"))
            await journal.append(said(1))
            await page.goto(f"{server.url}#/s/{journal.session}")
            await page.locator(".said.message").first.wait_for()
            await page.evaluate(ARRIVED)
            for number in range(EVENTS // 2):
                await asyncio.sleep(0.03)
                await journal.append(said(number + 2, f"bench-{number}-end"))
                durable[f"bench-{number}-end"] = time.time()
            await page.get_by_text(f"bench-{EVENTS // 2 - 1}-end").wait_for()
            found = await page.evaluate("() => window.arrived")
        finally:
            await store.close()
        return [found[words] / 1000 - at for words, at in durable.items()]

    return browser.visit(server.url, work, token=server.token)


async def answers(server: WebServer) -> list[float]:
    """Hold sessions with waiting calls here, answer them through the server from a process of its own: this one goes on with them."""
    took: list[float] = []
    with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as client:
        client.submit(_send_answer, server.url, "", "/api/nothing", {}).result()  # until it has started

        async def answer(path: str, body: object) -> None:
            sent = client.submit(_send_answer, server.url, server.token, path, body)
            seconds, given = await asyncio.wrap_future(sent)
            took.append(seconds)
            assert given["delivery"] == "accepted", given

        await _answered(server, answer)
    return took


def _send_answer(url: str, token: str, path: str, body: object) -> tuple[float, dict[str, str]]:
    began = time.perf_counter()
    done = send(url, "POST", path, token=token, body=body)
    return time.perf_counter() - began, json.loads(done.body)


def shown_answers(server: WebServer, browser: BrowserThread) -> list[float]:
    """From the answer until the inbox of another page shows that it is settled."""
    sent: dict[str, float] = {}

    async def work(page: "Page") -> list[float]:
        await page.get_by_role("heading", name="Inbox").wait_for()
        await page.evaluate(SETTLED)

        async def answer(path: str, body: object) -> None:
            name = f"bench-{len(sent)}"
            await page.get_by_role("article").filter(has_text=f"{name}.txt").wait_for()
            sent[str(len(sent))] = time.time()
            await asyncio.to_thread(send, server.url, "POST", path, token=server.token, body=body)
            await page.wait_for_function("(name) => name in window.settled", arg=name.partition("-")[2])

        await _answered(server, answer)
        found = await page.evaluate("() => window.settled")
        return [found[number] / 1000 - at for number, at in sent.items()]

    return browser.visit(server.url, work, token=server.token)


async def _answered(server: WebServer, answer: Callable[[str, object], Awaitable[None]]) -> None:
    """Hold one session after another with a call that waits, and let it be answered."""
    runtime = await Runtime.start(home=server.home / "holdfast", settings=Settings(), servers=())
    try:
        for number in range(ANSWERS):
            session = await runtime.create(policy="ask-always", needs_model=False)
            await session.execute(f"open('bench-{number}.txt', 'w').write('x')")
            [escalation] = session.escalations()
            await answer(
                f"/api/waiting/{session.id}/{escalation.id}",
                {"verdict": "deny", "digest": escalation.digest},
            )
            await session.close()
    finally:
        await runtime.close()


async def server_answers(home: Path) -> list[float]:
    """Answer calls of sessions that nobody holds, from a device that may only answer, so that no session continues meanwhile."""
    runtime = await Runtime.start(home=home / "holdfast", settings=Settings(), servers=())
    try:
        for number in range(ANSWERS):
            session = await runtime.create(policy="ask-always", needs_model=False)
            await session.execute(f"open('bench-{number}.txt', 'w').write('x')")
            await session.close()
    finally:
        await runtime.close()
    took: list[float] = []
    async with web_client(home / "holdfast") as operator:
        client = operator.as_device("answer")
        for call in (await client.get("/api/waiting")).data:
            body = {"verdict": "deny", "digest": call["escalation"]["digest"]}
            began = time.perf_counter()
            answer = await client.post(f"/api/waiting/{call['session']}/{call['escalation']['id']}", body)
            took.append(time.perf_counter() - began)
            assert answer.data["delivery"] == "recorded", answer
    return took


async def lists(home: Path, number: int) -> None:
    """Time the lists of a home with so many sessions, of which 1,000 wait."""
    store = await open_store(Home(home / "holdfast"), clock=SystemClock(), redact=bytes)
    for start in range(0, number, TOGETHER):
        await asyncio.gather(*(_create(store, place, number) for place in range(start, start + TOGETHER)))
    await store.close()
    async with web_client(home / "holdfast") as client:
        began = time.process_time()
        await client.get("/api/usage")
        print(f"the first look at usage: {(time.process_time() - began) * 1000:.0f} ms of CPU")
        for path in ("/api/waiting", "/api/sessions?limit=50", "/api/usage"):
            took, spent = [], []
            for _ in range(9):
                began, cpu = time.perf_counter(), time.process_time()
                answer = await client.get(path)
                took.append(time.perf_counter() - began)
                spent.append(time.process_time() - cpu)
            rows = answer.data if path == "/api/waiting" else answer.data.get("sessions", [])
            is_waiting = path == "/api/waiting"
            show(
                f"{path} in a home of {number:,} sessions ({len(rows)} rows)",
                took,
                p50=50 if is_waiting else None,
            )
            print(f"    CPU: {min(spent) * 1000:.1f} ms at best, the first {spent[0] * 1000:.1f} ms")
            if is_waiting:
                judge("    CPU in the middle", statistics.median(spent) * 1000, 50, "ms")


async def _create(store: Store, place: int, number: int) -> None:
    journal = await store.create(opened())
    if place % (number // 1_000) == 0:
        event = asked(1, f"e{place}")
        escalation = msgspec.structs.replace(event.escalation, expires_ms=None)
        await journal.append(said(1), replied(1), msgspec.structs.replace(event, escalation=escalation))
    await journal.release()


async def load(page: "Page", url: str, name: str) -> list[float]:
    """How long it takes until the page shows an element, load by load. The first load also starts a process of the browser."""
    took: list[float] = []
    await page.goto("about:blank")
    for place in range(LOADS + 1):
        await (page.reload() if place else page.goto(url))
        await page.wait_for_function("(name) => name in (window.shown ?? {})", arg=name)
        took.append(await page.evaluate("(name) => window.shown[name]", name) / 1000)
    print(f"    in a new process of the browser: {took[0] * 1000:.0f} ms")
    return took[1:]


def open_list(server: WebServer, browser: BrowserThread, number: int) -> None:
    """The first paint of the page, and the newest sessions on the screen."""

    async def work(page: "Page") -> None:
        await page.add_init_script(SHOWN.replace("WANTED", '{"row": [".line", "turn"]}'))
        await page.add_init_script(PAINTED)
        url = f"{server.url}#/sessions"
        show(f"first paint, {number:,} sessions", await load(page, url, "paint"), p50=150)
        goal = 200 if number == SMALL else 150
        show(f"the newest of {number:,} sessions on the screen", await load(page, url, "row"), p50=goal)

    browser.visit(server.url, work, token=server.token)


async def long_session(home: Path) -> None:
    """A session of 10,000 events."""
    store = await open_store(Home(home / "holdfast"), clock=SystemClock(), redact=bytes)
    journal = await store.create(opened(name="long"), session=SessionId("long-session"))
    for start in range(1, 3_334, 100):
        events: list[Event] = []
        for number in range(start, start + 100):
            events += [said(number, f"message {number}"), replied(number, f"reply {number}"), ended(number)]
        await journal.append(*events)
    await store.close()


async def long_diff(home: Path) -> str:
    """A session with a staged change of 20,000 lines."""
    runtime = await Runtime.start(home=home / "holdfast", settings=Settings(), servers=())
    try:
        session = await runtime.create(policy="project", needs_model=False)
        await session.execute("open('long.txt', 'w').write(''.join(f'line {n}\\n' for n in range(20000)))")
        return session.id
    finally:
        await runtime.close()


def open_long(server: WebServer, browser: BrowserThread, diff: str) -> None:
    """Open a long session, scroll it, and open a long diff."""
    wanted = '{"end": [".said.reply", "reply 3400"], "hunk": [".diff .add", "line 0"]}'

    async def work(page: "Page") -> None:
        await page.add_init_script(SHOWN.replace("WANTED", wanted))
        opening = await load(page, f"{server.url}#/s/long-session", "end")
        show("session of 10,000 events opened", opening, p50=300)
        frames = [each / 1000 for each in await page.evaluate(FRAMES)]
        show("a frame while it scrolls", frames, p95=33)
        hunks = await load(page, f"{server.url}#/s/{diff}/changes", "hunk")
        show("first hunk of a diff of 20,000 lines", hunks, p50=300)

    browser.visit(server.url, work, token=server.token)


def kills() -> None:
    """Kill servers and tabs in the middle of events; the tests count what is lost or doubled."""
    failed = _run_tests("kills", "soak or not soak", "test_kills")
    judge("tests with kills that lost or doubled an event", failed, 0, "")


def guarding_tests() -> None:
    """The short form of 6,000 random keys and clicks; attacks in the browser and on the wire; axe on every page."""
    failed = _run_tests("accidents, attacks and axe", "not soak", *GUARDING_TESTS)
    judge("tests in which a random input approved, an attack succeeded or axe found something", failed, 0, "")


def _run_tests(name: str, form: str, *files: str) -> float:
    """How many of these tests fail."""
    began = time.perf_counter()
    words = ["-n", "2", "-m", form, *(f"tests/web/{each}.py" for each in files)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=False
    )
    last = done.stdout.strip().splitlines()[-1]
    print(f"{name}: {last} in {time.perf_counter() - began:.0f} s")
    if done.returncode not in (0, 1):
        return float("inf")
    return float(sum(int(number) for number in re.findall(r"(\d+) (?:failed|error)", last)))


def browser_tests() -> None:
    """Run thirty tests in the browser, in two processes."""
    files = [f"tests/web/{name}.py" for name in BROWSER_TESTS]
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-m", "not soak", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    names = sorted(line for line in listed.stdout.splitlines() if "::" in line)
    chosen = [each for each in names if "hundred_payloads" not in each][:TESTS]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", *chosen],
        capture_output=True,
        text=True,
        check=False,
    )
    took = time.perf_counter() - began
    print(f"tests in the browser: {done.stdout.strip().splitlines()[-1]}")
    judge(f"{len(chosen)} tests in the browser", took if not done.returncode else float("inf"), 20, "s")


if __name__ == "__main__":
    main()
