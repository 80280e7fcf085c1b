"""Sessions in PostgreSQL: what an append, a turn, a job, a takeover and very many sessions cost, with goals and peers.

The server comes from the wheel and syncs every commit; `HOLDFAST_TEST_POSTGRES=URL` measures another one. Variants alternate or
follow each other in one run, so that load on the machine affects all of them alike. Processor time and round trips hardly depend
on load. `--full` has the full numbers of sessions, `--only=turns,jobs` runs some of the parts. Each run ends with what many machines would need, computed from costs that are
upper bounds; `--simulate` computes only that.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.postgres import Databases, Server

from bench._scale_fill import copy_session, fill_sessions
from bench._scale_peers import peers
from bench._scale_simulation import simulate
from bench.turn import ALLOW, InstantModel
from holdfast.app import Runtime
from holdfast.core import PERSON, Response, SessionId, SystemClock
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.policy import FixedPolicy, Policy
from holdfast.services import deliver_answer
from holdfast.session import Session, Settings
from holdfast.store import Home, Journal, WorkStore, open_store, open_work_store
from holdfast.store.postgres.database import connect
from holdfast.worker import Dispatch, Worker, install_dispatch, open_dispatch, post_message

AT_ONCE = 50
OPENED = SessionOpened(principal=PERSON, folder="/", workspace="/", policy="p", policy_digest="", model="m")
SAID = MessagePosted(turn=1, text="x" * 150, principal=PERSON)
ASK = FixedPolicy(default="escalate")
SETTINGS = Settings(acts_with="tools", restore_points="never")
HEARTBEAT_SECONDS = 8
PATIENCE_SECONDS = 600


def main() -> None:
    """Measure, and print one line for each figure with its goal."""
    if "--simulate" in sys.argv:
        simulate()
        return
    with tempfile.TemporaryDirectory(prefix="bench-scale-", dir=os.environ.get("BENCH_FOLDER")) as folder:
        Path(folder).chmod(0o755)
        given = os.environ.get("HOLDFAST_TEST_POSTGRES")
        server = None if given else Server(Path(folder) / "pg", is_fast=False)
        try:
            if server is not None:
                server.create()
                server.start()
            url = given or (server.url() if server else "")
            pid = server.pid if server is not None else None
            chosen = [
                word.removeprefix("--only=").split(",") for word in sys.argv if word.startswith("--only=")
            ]
            only = chosen[-1] if chosen else []
            asyncio.run(_measure(Path(folder), url, pid, is_full="--full" in sys.argv, only=only))
        finally:
            if server is not None:
                server.remove()
    simulate()


async def _measure(
    folder: Path, url: str, server: int | None, *, is_full: bool, only: Sequence[str] = ()
) -> None:
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print(f"{'':<62}{'figure':>14}{'goal':>12}")
    databases = Databases(url, owner=f"bench_{os.getpid()}")
    try:
        bench = await _Bench.open(folder, await databases.take(), server)
        parts: dict[str, Callable[[], Awaitable[object]]] = {
            "appends": lambda: _appends(bench),
            "turns": lambda: _turns(bench, databases),
            "jobs": lambda: _jobs(bench),
            "workers": lambda: _workers(bench, is_full=is_full),
            "takeover": lambda: _takeover(bench),
            "parked": lambda: _parked(bench, 100_000 if is_full else 5_000),
            "filled": lambda: _filled(bench, 1_000_000 if is_full else 100_000),
        }
        try:
            for part in only or parts:
                await parts[part]()
        finally:
            await bench.close()
    finally:
        await databases.drop()


class _Bench:
    """One database with our schema, a store on it, and a runtime."""

    def __init__(
        self, folder: Path, url: str, store: WorkStore, runtime: Runtime, server: int | None
    ) -> None:
        self._server = server
        self.folder = folder
        self.url = url
        self.store = store
        self.runtime = runtime
        self.dispatch: Dispatch = open_dispatch(url)
        self._homes = 0

    @classmethod
    async def open(cls, folder: Path, url: str, server: int | None) -> "_Bench":
        await install_dispatch(url)
        store = await open_work_store(Home(folder / "shared"), url, clock=SystemClock())
        runtime = await Runtime.start(home=folder / "shared", settings=SETTINGS, store=store, servers=())
        return cls(folder, url, store, runtime, server)

    def database_seconds(self) -> float:
        """Processor time of the server so far; 0 if it is not ours. Of connections that are open, so only differences count."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat") if self._server is not None else ():
            with suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12]) if int(fields[1]) == self._server else 0
        return ticks / os.sysconf("SC_CLK_TCK")

    async def close(self) -> None:
        await self.dispatch.close()
        await self.runtime.close()

    async def sessions(self, count: int) -> list[SessionId]:
        """New sessions that nobody holds."""
        made = []
        for _ in range(count):
            session = await self.runtime.create(model=InstantModel(), policy=ALLOW)
            await session.close()
            made.append(SessionId(session.id))
        return made

    async def post(self, sessions: Sequence[SessionId]) -> None:
        """Send each session a message."""
        await asyncio.gather(
            *(post_message(self.store, self.dispatch, session, "go on") for session in sessions)
        )

    async def until_idle(self) -> None:
        """Wait until every message became a turn that ended."""
        connection = await connect(self.url, is_admin=True)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await connection.fetchval(_BUSY):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await connection.close()

    async def rounds(self, count: int, sessions: Sequence[SessionId]) -> None:
        """Send each session a message, and the next ones when all have ended their turns."""
        for _ in range(count):
            await self.post(sessions)
            await self.until_idle()

    @asynccontextmanager
    async def worker(self, *, policy: Policy = ALLOW) -> AsyncIterator[None]:
        """A worker in this process."""

        async def resume(session: SessionId) -> Session:
            return await self.runtime.resume(session, model=InstantModel(), policy=policy)

        assert self.runtime.posted_requests is not None
        worker = Worker(
            store=self.store, dispatch=self.dispatch, resume=resume, requests=self.runtime.posted_requests
        )
        running = asyncio.create_task(worker.run(places=AT_ONCE))
        try:
            yield
        finally:
            worker.stop()
            await running

    @asynccontextmanager
    async def processes(
        self, count: int, *, places: int, seconds: float
    ) -> AsyncIterator[list[asyncio.subprocess.Process]]:
        """Worker processes, each with a data directory of its own."""
        started: list[asyncio.subprocess.Process] = []
        try:
            for _ in range(count):
                self._homes += 1
                started.append(
                    await asyncio.create_subprocess_exec(
                        *(sys.executable, "-m", "bench._scale_worker_main", self.url),
                        *(str(self.folder / f"home-{self._homes}"), str(places), str(seconds)),
                        stdout=asyncio.subprocess.PIPE,
                    )
                )
            for process in started:
                assert process.stdout is not None
                await process.stdout.readline()
            yield started
        finally:
            for process in started:
                if process.returncode is None:
                    process.terminate()
                await process.wait()


def _show(what: str, figure: str, goal: str = "", *, is_met: bool | None = None) -> None:
    verdict = "" if is_met is None else "  met" if is_met else "  MISSED"
    print(f"{what:<62}{figure:>14}{goal:>12}{verdict}", flush=True)


async def _timed(work: Callable[[], Awaitable[object]], rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        await work()
        times.append(time.perf_counter() - start)
    return times


async def _appends(bench: _Bench) -> None:
    local = await open_store(Home(bench.folder / "local"), clock=SystemClock())
    journals = {"SQLite": await local.create(OPENED), "PostgreSQL": await bench.store.create(OPENED)}
    times: dict[str, list[float]] = {"fdatasync of 400 bytes": []}
    file = os.open(bench.folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(300):
        start = time.perf_counter()
        os.write(file, b"x" * 400)
        os.fdatasync(file)
        times["fdatasync of 400 bytes"].append(time.perf_counter() - start)
        for name, journal in journals.items():
            times.setdefault(name, []).extend(await _timed(lambda journal=journal: journal.append(SAID), 1))  # type: ignore[misc]
    os.close(file)
    await journals["PostgreSQL"].release()
    await local.close()
    raw = statistics.median(times["fdatasync of 400 bytes"])
    for name, values in times.items():
        ratio = statistics.median(values) / raw
        goal = ("2.5 x", ratio <= 2.5) if name == "PostgreSQL" else ("", None)
        _show(
            f"append, fenced and durable, {name}, ms",
            f"{statistics.median(values) * 1e3:.2f} = {ratio:.1f} x",
            goal[0],
            is_met=goal[1],
        )


async def _turns(bench: _Bench, databases: Databases) -> None:
    sessions = [await bench.runtime.create(model=InstantModel(), policy=ALLOW) for _ in range(AT_ONCE)]
    await asyncio.gather(*(session.send("go on") for session in sessions))
    trips, used = _statements(bench.store), time.process_time()
    times = await _timed(lambda: sessions[0].send("go on"), 60)
    middle = statistics.median(times) * 1e3
    _show("real turn with one call, one session, ms", f"{middle:.1f}", "5", is_met=middle <= 5)
    _show("  its round trips to append", f"{(_statements(bench.store) - trips) / 60:.1f}")
    _show("  its processor time here, ms", f"{(time.process_time() - used) / 60 * 1e3:.2f}")
    trips, server = _statements(bench.store), bench.database_seconds()
    rate, cpu = await _rate(lambda number: sessions[number].send("go on"), 8)
    _show(f"turns/s of a process, {AT_ONCE} sessions", f"{rate:.0f}", "1000", is_met=rate >= 1000)
    _show("  round trips a turn", f"{(_statements(bench.store) - trips) / (8 * AT_ONCE):.2f}")
    _show("  processor time a turn here, ms", f"{cpu:.2f}")
    used = (bench.database_seconds() - server) / (8 * AT_ONCE)
    _show("  processor time a turn in the database, ms", f"{used * 1e3:.2f}")
    for session in sessions:
        await session.close()
    await _peer_turns(await databases.take(), rate)


async def _rate(turn: Callable[[int], Awaitable[object]], rounds: int) -> tuple[float, float]:
    """Turns a second of many sessions at once, and milliseconds of processor time a turn."""

    async def some(number: int) -> None:
        for _ in range(rounds):
            await turn(number)

    start, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*map(some, range(AT_ONCE)))
    count = rounds * AT_ONCE
    return count / (time.perf_counter() - start), (time.process_time() - used) / count * 1e3


def _statements(store: WorkStore) -> int:
    return int(getattr(store, "_writer").statements)  # noqa: B009


async def _peer_turns(url: str, ours: float) -> None:
    best = 0.0
    for name, open_peer in peers().items():
        async with open_peer(url) as turn:
            await turn("warm")
            times = await _timed(lambda turn=turn: turn("one"), 20)  # type: ignore[misc]
            rate, cpu = await _rate(lambda number, turn=turn: turn(f"s{number}"), 2)  # type: ignore[misc]
        best = max(best, rate)
        _show(f"{name}: turn, ms", f"{statistics.median(times) * 1e3:.1f}")
        _show(f"{name}: turns/s, {AT_ONCE} sessions", f"{rate:.0f}")
        _show(f"{name}: processor time a turn, ms", f"{cpu:.1f}")
    if best:
        _show("our turns/s to the best peer's", f"{ours / best:.1f} x", "10 x", is_met=ours / best >= 10)
    else:
        print("no peer is installed: use make bench NAME=scale")


async def _jobs(bench: _Bench) -> None:
    ids = await bench.sessions(AT_ONCE)
    async with bench.worker():
        await bench.rounds(1, ids)
        for name, rounds in (("sessions kept", 20), ("each session opened", 1)):
            if rounds == 1:
                ids = await bench.sessions(4 * AT_ONCE)
            start, used, server = time.perf_counter(), time.process_time(), bench.database_seconds()
            await bench.rounds(rounds, ids)
            count = rounds * len(ids)
            rate = count / (time.perf_counter() - start)
            goal = ("600", rate >= 600) if rounds > 1 else ("", None)
            _show(
                f"turns/s through the queue, posting included, {name}", f"{rate:.0f}", goal[0], is_met=goal[1]
            )
            _show("  processor time a turn here, ms", f"{(time.process_time() - used) / count * 1e3:.2f}")
            busy = (bench.database_seconds() - server) / count
            _show("  processor time a turn in the database, ms", f"{busy * 1e3:.2f}")
        times = await _timed(lambda: _first_event(bench, ids[0]), 30)
        middle = statistics.median(times) * 1e3
        _show("posted to first event of the turn, ms", f"{middle:.1f}", "20", is_met=middle <= 20)
        await bench.until_idle()


async def _first_event(bench: _Bench, session: SessionId) -> None:
    seq = (await bench.store.summary(session)).events
    with bench.store.watch() as watch:
        await post_message(bench.store, bench.dispatch, session, "go on")
        while (await bench.store.summary(session)).events == seq:
            await watch.changed()


async def _workers(bench: _Bench, *, is_full: bool) -> None:
    places, seconds, turns = (25, 0.5, 40) if is_full else (10, 0.5, 12)
    rates: dict[int, float] = {}
    for count in (1, 2, 4) if is_full else (1, 4):
        async with bench.processes(count, places=places, seconds=seconds):
            ids = await bench.sessions(count * places)
            await bench.post(ids)  # opened once before
            await bench.until_idle()
            start = time.perf_counter()
            for _ in range(turns // 4):
                await bench.post(ids)
            await bench.until_idle()
            rates[count] = (turns // 4) * len(ids) / (time.perf_counter() - start)
        ideal = count * places / (2 * seconds)
        _show(
            f"turns/s of {count} workers, {places} places, model 2 x {seconds} s",
            f"{rates[count]:.1f} of {ideal:.0f}",
        )
    scaling = rates[4] / (4 * rates[1])
    _show("four workers to four times one", f"{scaling:.2f}", "0.9", is_met=scaling >= 0.9)


async def _takeover(bench: _Bench) -> None:
    async with bench.processes(1, places=10, seconds=600) as first:
        (session,) = await bench.sessions(1)
        seq = (await bench.store.summary(session)).events
        await bench.post([session])
        while (await bench.store.summary(session)).events < seq + 2:  # noqa: ASYNC110 - it asks the model
            await asyncio.sleep(0.02)
        async with bench.processes(1, places=10, seconds=0.0):
            holder = await bench.store.holder(session)
            first[0].kill()
            start = time.perf_counter()
            async with asyncio.timeout(PATIENCE_SECONDS):
                while (now := await bench.store.holder(session)) is None or now == holder:
                    if now is None and (await bench.store.summary(session)).activity == "ready":
                        break
                    await asyncio.sleep(0.02)
            passed = time.perf_counter() - start
            await bench.until_idle()
    goal = HEARTBEAT_SECONDS + 2
    _show(
        "kill -9 of a worker to its turn running elsewhere, s",
        f"{passed:.1f}",
        f"{goal}",
        is_met=passed <= goal,
    )


async def _parked(bench: _Bench, count: int) -> None:
    session = await bench.runtime.create(model=InstantModel(), policy=ASK)
    await session.send("go on")
    await session.close()
    like = list(await bench.store.read(SessionId(session.id)))
    before = await _bytes(bench.url)
    ids = await copy_session(bench.url, like, count)
    size = (await _bytes(bench.url) - before) / count
    held = await _value(bench.url, _HELD)
    _show(f"{count:,} parked approvals: leases and jobs of theirs", f"{held}", "0", is_met=held == 0)
    _show("  bytes each, with journal and indexes", f"{size:.0f}")
    page = await _timed(lambda: bench.store.session_page(limit=50, activity="waiting"), 20)
    _show("  a page of 50 of them, ms", f"{statistics.median(page) * 1e3:.1f}")
    async with bench.worker(policy=ASK):
        times = await _timed(lambda: _answer_one(bench, ids.pop()), 10)
    _show("  answered to turn ended, ms", f"{statistics.median(times) * 1e3:.0f}")


async def _answer_one(bench: _Bench, session: SessionId) -> None:
    (waiting,) = await bench.store.waiting(session)
    approve = Response(verdict="approve")
    await deliver_answer(
        bench.runtime.home,
        bench.store,
        session,
        waiting.escalation,
        approve,
        transport="bench",
        clock=SystemClock(),
    )
    await bench.until_idle()
    assert (await bench.store.summary(session)).activity == "ready"


async def _filled(bench: _Bench, count: int) -> None:
    empty = [await bench.store.create(OPENED) for _ in range(20)]
    before = [time for journal in empty for time in await _timed(lambda j=journal: j.append(SAID), 10)]  # type: ignore[misc]
    start = time.perf_counter()
    await fill_sessions(bench.url, count, list(empty[0].recorded))
    _show(f"{count:,} sessions more, s to fill", f"{time.perf_counter() - start:.0f}")
    full: list[Journal] = [await bench.store.create(OPENED) for _ in range(20)]
    after: list[float] = []
    again: list[float] = []
    for one, other in zip(full, empty, strict=True):  # alternating
        after += await _timed(lambda j=one: j.append(SAID), 10)  # type: ignore[misc]
        again += await _timed(lambda j=other: j.append(SAID), 10)  # type: ignore[misc]
    for journal in (*empty, *full):
        await journal.release()
    ratio = statistics.median(after + again) / statistics.median(before)
    _show("  append to the same before", f"{ratio:.2f} x", "1.5 x", is_met=ratio <= 1.5)
    listed = statistics.median(await _timed(lambda: bench.store.sessions(limit=50), 50)) * 1e3
    _show("  list 50, ms", f"{listed:.1f}", "2", is_met=listed <= 2)


async def _bytes(url: str) -> int:
    return int(await _value(url, "SELECT pg_database_size(current_database())"))


_BUSY = "SELECT EXISTS (SELECT FROM request) OR EXISTS (SELECT FROM lease WHERE worker IS NOT NULL)"
_HELD = """
SELECT (SELECT count(*) FROM holdfast.lease WHERE worker IS NOT NULL AND session LIKE 'parked-%')
    + (SELECT count(*) FROM holdfast.pgqueuer WHERE convert_from(payload, 'UTF8') LIKE 'parked-%')
"""


async def _value(url: str, statement: str) -> int:
    connection = await connect(url, is_admin=True)
    try:
        return int(await connection.fetchval(statement))
    finally:
        await connection.close()


if __name__ == "__main__":
    main()
