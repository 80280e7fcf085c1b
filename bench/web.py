"""The web server: how long it takes until a browser sees an event of another process, an answer, and a list of what waits.

event       from the append of another process until the frame arrives at a client of the stream
answer      from the request until the process that holds the session has recorded the answer
waiting     the list of 1,000 calls that wait, in homes of 1,000 and of 20,000 sessions
page        the newest 50 sessions in the same homes
assets      the bytes of all scripts and styles
"""

import asyncio
import http.client
import json
import statistics
import tempfile
import time
from pathlib import Path

from tests.store.sample_events import asked, opened, said
from tests.web.asgi import web_client
from tests.web.conftest import WebServer, running_server
from tests.web.http import send
from tests.web.test_static import STATIC

from holdfast.app import Runtime
from holdfast.core import SystemClock
from holdfast.session import Settings
from holdfast.store import Home, open_store

EVENTS, ANSWERS = 200, 60


def main() -> None:
    """Print the figures."""
    with (
        tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder,
        running_server(Path(folder)) as server,
    ):
        show("event to the stream", asyncio.run(events(server)))
        show("answer recorded by the holder", asyncio.run(answers(server)))
    for number in (1_000, 20_000):
        with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
            asyncio.run(lists(Path(folder), number))
    sizes = [path.stat().st_size for path in STATIC.rglob("*") if path.suffix in (".js", ".css")]
    print(f"assets: {sum(sizes):,} bytes in {len(sizes)} files")


def show(name: str, seconds: list[float]) -> None:
    """Print the median and the 95th percentile."""
    ordered = sorted(each * 1000 for each in seconds)
    print(
        f"{name}: p50 {statistics.median(ordered):.1f} ms, p95 {ordered[int(len(ordered) * 0.95)]:.1f} ms, n {len(ordered)}"
    )


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


async def answers(server: WebServer) -> list[float]:
    """Hold sessions with waiting calls here, answer them through the server."""
    runtime = await Runtime.start(home=server.home / "holdfast", settings=Settings(), servers=())
    try:
        took: list[float] = []
        for number in range(ANSWERS):
            session = await runtime.create(policy="ask-always", needs_model=False)
            await session.execute(f"open('{number}.txt', 'w').write('x')")
            [escalation] = session.escalations()
            body = {"verdict": "deny", "digest": escalation.digest}
            began = time.perf_counter()
            path = f"/api/waiting/{session.id}/{escalation.id}"
            answer = await asyncio.to_thread(
                lambda path=path, body=body: send(server.url, "POST", path, token=server.token, body=body)  # type: ignore[misc]
            )
            took.append(time.perf_counter() - began)
            assert json.loads(answer.body)["delivery"] == "accepted", answer
            await session.close()
        return took
    finally:
        await runtime.close()


async def lists(home: Path, number: int) -> None:
    """Time the lists of a home with so many sessions, of which 1,000 wait."""
    store = await open_store(Home(home), clock=SystemClock(), redact=bytes)
    for place in range(number):
        journal = await store.create(opened())
        if place % (number // 1_000) == 0:
            event = asked(1, f"e{place}")
            await journal.append(said(1), _without_limit(event))
        await journal.release()
    await store.close()
    async with web_client(home) as client:
        for path in ("/api/waiting", "/api/sessions?limit=50"):
            took = []
            for _ in range(7):
                began = time.perf_counter()
                answer = await client.get(path)
                took.append(time.perf_counter() - began)
            shown = len(answer.data) if path == "/api/waiting" else len(answer.data["sessions"])
            show(f"{path} in a home of {number:,} sessions ({shown} rows)", took)


def _without_limit(event: object) -> object:
    import msgspec

    assert hasattr(event, "escalation")
    return msgspec.structs.replace(
        event, escalation=msgspec.structs.replace(event.escalation, expires_ms=None)
    )  # type: ignore[type-var]
