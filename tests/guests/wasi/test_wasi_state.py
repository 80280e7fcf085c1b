"""Signed variables: what another process can load, what it cannot, and what is refused."""

from pathlib import Path

import pytest
from tests.guests.wasi.running import KEY, run

from holdfast.core.errors import SnapshotRefused
from holdfast.guests import Engine, Guest
from holdfast.guests.wasi import WorkerPool, wasi_engine

DEFINITIONS = """
import collections, dataclasses, enum, json as text
factor = 3
def times(n, *, by=None):
    return n * (by or factor)
def counter():
    n = 0
    def count():
        nonlocal n
        n += 1
        return n
    return count
count = counter(); count()
class Base:
    def name(self): return 'base'
class Child(Base):
    __slots__ = ('value',)
    def __init__(self, value): self.value = value
    def name(self): return 'child of ' + super().name()
    @property
    def double(self): return self.value * 2
    @staticmethod
    def fixed(): return 'fixed'
    @classmethod
    def make(cls): return cls(9)
@dataclasses.dataclass(frozen=True)
class Point:
    x: int = 0
    tags: list = dataclasses.field(default_factory=list)
class Colour(enum.Enum):
    RED = 1
    BLUE = 2
    def shout(self): return self.name + '!'
class Trouble(ValueError): pass
Pair = collections.namedtuple('Pair', 'left right')
child, again = Child(4), None
again = child
point, colour, pair, power = Point(5), Colour.BLUE, Pair(1, 2), lambda n: n ** 2
ring = []; ring.append(ring)
"""


async def moved(engine: Engine, code: str) -> Guest:
    """A guest in another process with the variables that the code left."""
    first = engine.guest()
    ended = await run(first, code)
    assert ended.status == "ok", ended.error
    state = await first.snapshot()
    await first.close()
    second = engine.guest()
    await second.restore(state)
    return second


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("times(2), times(2, by=5)", [6, 10]),
        ("factor := 4, times(2)", None),
        ("count()", 2),
        ("child.name(), child.double, Child.fixed(), Child.make().value", ["child of base", 8, "fixed", 9]),
        ("child is again, ring[0] is ring", [True, True]),
        (
            "point == Point(5), Point().tags, repr(Point(1)), dataclasses.replace(point, x=6).x",
            [True, [], "Point(x=1, tags=[])", 6],
        ),
        ("colour is Colour.BLUE, colour.shout(), list(Colour)[0].value", [True, "BLUE!", 1]),
        ("pair.left, isinstance(pair, Pair), power(3)", [1, True, 9]),
        ("issubclass(Trouble, ValueError), text.dumps([1])", [True, "[1]"]),
    ],
)
async def test_what_code_defined_works_in_another_process(
    engine: Engine, expression: str, value: object
) -> None:
    if value is None:
        expression, value = "factor = 4\ntimes(2)", 8
    ended = await run(await moved(engine, DEFINITIONS), expression)
    assert ended.error == ""
    assert ended.value == value


async def test_a_variable_that_could_not_be_kept_is_named_when_it_is_used(engine: Engine) -> None:
    guest = await moved(engine, "kept = 1\nrest = (n for n in range(3))")
    assert (await run(guest, "kept")).value == 1
    assert "'rest' could not be kept from an earlier process: generator" in (await run(guest, "rest")).error


async def test_two_guests_can_load_one_snapshot(engine: Engine) -> None:
    first = engine.guest()
    await run(first, "items = [1]")
    state = await first.snapshot()
    left, right = engine.guest(), engine.guest()
    await left.restore(state)
    await right.restore(state)
    await run(left, "items.append(2)")
    assert (await run(right, "items")).value == [1]


async def test_a_guest_that_never_ran_has_an_empty_snapshot(engine: Engine) -> None:
    assert await engine.guest().snapshot() == b""


async def test_an_empty_snapshot_clears_the_variables(guest: Guest) -> None:
    await run(guest, "x = 1")
    await guest.restore(b"")
    assert "NameError" in (await run(guest, "x")).error


async def test_a_changed_snapshot_is_refused(guest: Guest) -> None:
    await run(guest, "x = 1")
    state = bytearray(await guest.snapshot())
    state[-1] ^= 1
    with pytest.raises(SnapshotRefused):
        await guest.restore(bytes(state))
    assert (await run(guest, "x")).value == 1


async def test_after_a_limit_the_variables_are_as_they_were_before_the_run(guest: Guest) -> None:
    await run(guest, "x = 1")
    lost = await run(guest, "x = 2\nwhile True: pass", steps=50_000_000)
    assert lost.status == "limit"
    assert "before this run" in lost.error
    assert (await run(guest, "x")).value == 1


async def test_a_variable_that_is_too_large_is_named_and_the_rest_is_kept(engine: Engine) -> None:
    guest = await moved(engine, "big = bytes(17 << 20)\nsmall = [1]\nsame = small")
    assert (await run(guest, "small is same")).value is True
    assert "'big' could not be kept from an earlier process: bytes: 17825" in (await run(guest, "big")).error


async def test_few_idle_guests_keep_a_process_and_the_others_keep_their_variables(
    cache: Path, workspace: Path
) -> None:
    workers = WorkerPool(key=KEY, cache=cache, max_idle=2)
    engine = wasi_engine(key=KEY, cache=cache, workspace=workspace, workers=workers)
    guests = [engine.guest() for _ in range(5)]
    for number, guest in enumerate(guests):
        await run(guest, f"def mine():\n    return {number}")
    assert workers.idle == 2
    assert [(await run(guest, "mine()")).value for guest in guests] == [0, 1, 2, 3, 4]
    assert workers.idle == 2
    await engine.close()
    assert workers.idle == 0
    await workers.close()
