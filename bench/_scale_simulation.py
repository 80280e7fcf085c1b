"""A simulation of many live sessions with the measured costs: what is used up first, and how many workers it takes.

A discrete simulation with a seed: equal runs print equal tables. Messages arrive at random; a turn waits for a place, then takes
three bursts of processor time in its worker and in the database, each followed by a shared flush, with two answers of the model and a
tool in between. It simulates the queues in front of these, not the sessions that wait for a person, which use nothing but rows.
"""

import heapq
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

LIVE = (1_000, 10_000, 100_000, 1_000_000)
SECONDS = 60.0
WARM_SECONDS = 30.0


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What one turn costs, as `bench/scale` measured it on two cores that did much else: upper bounds."""

    worker_seconds: float = 0.0080
    """Processor time in the worker, of a session that it kept, with posting its message."""
    database_seconds: float = 0.0045
    """Processor time of the server for nine appends in groups, the lease, the request and the job."""
    flush_seconds: float = 0.0005
    log_bytes: float = 6_500
    """Of write-ahead log."""
    stored_bytes: float = 3_100
    """Journal and indexes."""
    connections: int = 8
    """Of one worker."""


@dataclass(frozen=True, kw_only=True)
class Habits:
    """How sessions are used."""

    pause_seconds: float = 600.0
    """Between the messages of a live session."""
    model_seconds: float = 4.0
    """One answer of the model, on average; lognormal."""
    tool_seconds: float = 0.5
    asks: float = 0.05
    """The part of the turns that wait for a person, for an hour."""


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """What an operator has."""

    workers: int
    places: int
    database_cores: int = 16
    max_connections: int = 400
    log_bytes_per_second: float = 100e6


@dataclass
class Seen:
    """What a run showed."""

    waits: list[float] = field(default_factory=list)
    """From the message to the first record of its turn."""
    turns: int = 0
    worker_busy: float = 0.0
    database_busy: float = 0.0
    places_used: float = 0.0


def run(live: int, fleet: Fleet, costs: Costs, habits: Habits, *, seed: int = 1) -> Seen:
    """Simulate a minute; the first half fills the places."""
    chance = random.Random(seed)
    shape = 0.6
    scale = math.log(habits.model_seconds) - shape**2 / 2
    rate = live / habits.pause_seconds * (1 + habits.asks)
    events: list[tuple[float, int, Callable[[float], None]]] = []
    number = 0
    workers = [0.0] * fleet.workers
    free_places = [fleet.places] * fleet.workers
    idle = deque(range(fleet.workers))
    jobs: deque[float] = deque()
    cores = [0.0] * fleet.database_cores
    disk, is_next_wanted = 0.0, False
    seen = Seen()

    def at(time: float, what: Callable[[float], None]) -> None:
        nonlocal number
        number += 1
        heapq.heappush(events, (time, number, what))

    def arrive(now: float) -> None:
        jobs.append(now)
        at(now + chance.expovariate(rate), arrive)
        take(now)

    def take(now: float) -> None:
        while jobs and idle:
            worker = idle[0]
            free_places[worker] -= 1
            idle.popleft()
            if free_places[worker]:
                idle.append(worker)  # the next job goes to the next worker
            burst(now, worker, 0, jobs.popleft())

    def burst(now: float, worker: int, part: int, posted: float) -> None:
        """Processor time here, then in the database, then a flush that all who wait share."""
        workers[worker] = max(now, workers[worker]) + costs.worker_seconds / 3
        at(workers[worker], lambda time: record(time, worker, part, posted))
        if now > WARM_SECONDS:
            seen.worker_busy += costs.worker_seconds / 3

    def record(now: float, worker: int, part: int, posted: float) -> None:
        nonlocal disk, is_next_wanted
        begun = max(now, heapq.heappop(cores))
        heapq.heappush(cores, begun + costs.database_seconds / 3)
        written = begun + costs.database_seconds / 3
        # A flush takes what was written before it begins; who comes later waits for the next one.
        if is_next_wanted and written >= disk:
            disk, is_next_wanted = disk + costs.flush_seconds, False
        if written >= disk:
            disk = flushed = written + costs.flush_seconds
        else:
            is_next_wanted, flushed = True, disk + costs.flush_seconds
        if now > WARM_SECONDS:
            seen.database_busy += costs.database_seconds / 3
        at(flushed, lambda time: follow(time, worker, part, posted))

    def follow(now: float, worker: int, part: int, posted: float) -> None:
        if part == 0 and now > WARM_SECONDS:
            seen.waits.append(now - posted)
        if part < 2:
            pause = chance.lognormvariate(scale, shape) + (
                chance.expovariate(1 / habits.tool_seconds) if part else 0
            )
            if now > WARM_SECONDS:
                seen.places_used += pause
            at(now + pause, lambda time: burst(time, worker, part + 1, posted))
            return
        seen.turns += now > WARM_SECONDS
        if not free_places[worker]:
            idle.append(worker)
        free_places[worker] += 1
        take(now)

    at(0.0, arrive)
    while events and events[0][0] < SECONDS:
        time, _, what = heapq.heappop(events)
        what(time)
    return seen


def workers_for(live: int, places: int, costs: Costs, habits: Habits) -> int:
    """Workers so that four fifths of the places and seven tenths of a core of each are used."""
    rate = live / habits.pause_seconds * (1 + habits.asks)
    length = 2 * habits.model_seconds + habits.tool_seconds + costs.worker_seconds
    return max(2, math.ceil(rate * length / places / 0.8), math.ceil(rate * costs.worker_seconds / 0.7))


def simulate() -> None:
    """Print what each number of live sessions needs, with few and with many places a worker."""
    costs, habits = Costs(), Habits()
    print(
        f"a turn: {costs.worker_seconds * 1e3:g} ms in the worker, {costs.database_seconds * 1e3:g} ms in the database"
    )
    print(
        f"a message a session every {habits.pause_seconds:g} s, two answers of {habits.model_seconds:g} s; seed 1"
    )
    columns = (
        "turns/s",
        "workers",
        "worker",
        "places",
        "database",
        "connections",
        "log MB/s",
        "GB/day",
        "parked",
        "first event",
    )
    print(f"{'live sessions':>13}{'places':>8}" + "".join(f"{name:>12}" for name in columns))
    for live in LIVE:
        for places in (50, 500):
            print(_line(live, places, costs, habits), flush=True)


def _line(live: int, places: int, costs: Costs, habits: Habits) -> str:
    fleet = Fleet(workers=workers_for(live, places, costs, habits), places=places)
    seen = run(live, fleet, costs, habits)
    span = SECONDS - WARM_SECONDS
    rate = seen.turns / span
    waits = sorted(seen.waits) or [0.0]
    connections = fleet.workers * costs.connections
    cells = (
        f"{rate:.1f}",
        f"{fleet.workers}",
        f"{seen.worker_busy / span / fleet.workers:.0%} CPU",
        f"{seen.places_used / span / fleet.workers / places:.0%} used",
        f"{seen.database_busy / span:.2f} cores"
        + (" OVER" if seen.database_busy / span > fleet.database_cores else ""),
        f"{connections}" + (" OVER" if connections > fleet.max_connections else ""),
        f"{rate * costs.log_bytes / 1e6:.2f}",
        f"{rate * costs.stored_bytes * 86400 / 1e9:.1f}",
        f"{rate * habits.asks * 3600:.0f}",
        f"{waits[len(waits) // 2] * 1e3:.0f}/{waits[int(len(waits) * 0.99)] * 1e3:.0f} ms",
    )
    return f"{live:>13,}{places:>8}" + "".join(f"{cell:>12}" for cell in cells)
