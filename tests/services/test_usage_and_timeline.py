"""Usage and timeline: what the journal says, once, in a form that fits the screen."""

from decimal import Decimal
from pathlib import Path

import msgspec
import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs
from tests.store.sample_events import opened, replied, said, turn

from holdfast.cli.terminal.wrap import cell_width
from holdfast.cli.views.timeline_chart import timeline_lines
from holdfast.cli.views.usage_table import usage_lines
from holdfast.core import FakeClock, Usage
from holdfast.core.events import RecordedEvent, TurnReopened
from holdfast.models import Reply, say
from holdfast.services import Timeline, TimelineEntry, UsageRow, timeline_of, total_usage, usage
from holdfast.store import MemoryStore, Store
from holdfast.teams import Pair
from holdfast.testing import memory_session

COSTLY = Reply(
    message=say("Done.").message, usage=Usage(input_tokens=900, output_tokens=100, cost_usd=Decimal("0.25"))
)


async def recorded_session() -> list[RecordedEvent]:
    found: list[RecordedEvent] = []
    async with memory_session([COSTLY, COSTLY]) as session:
        session.follow(found.append)
        await session.send("one")
        await session.send("two")
    return found


async def test_a_turn_that_resumed_after_a_raised_limit_is_on_the_timeline_twice() -> None:
    journal = await MemoryStore(clock=FakeClock()).create(opened())
    found: list[RecordedEvent] = []
    journal.follow(found.append)
    await journal.append(*turn(1), TurnReopened(turn=1), *turn(1)[1:])
    turns = [entry for entry in timeline_of(found).entries if entry.kind == "turn"]
    assert [(entry.turn, entry.what, entry.length_ms is None) for entry in turns] == [
        (1, turns[0].what, False),
        (1, "resumed with a raised limit", False),
    ]


async def a_team(store: Store) -> None:
    """A session of a pair of teams, on the record since a day ago."""
    pair = Pair(sender="web", receiver="backend", thread="t")
    begin = msgspec.structs.replace(opened(), description=str(pair), workspace="", model="other")
    journal = await store.create(begin, session=pair.session_id("/teams"))
    await journal.append(said(1), replied(1, cost=None))
    await journal.release()


async def test_usage_adds_up_by_day_model_folder_team_and_session() -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    journal = await store.create(opened(name="mine"))
    await journal.append(*turn(1), *turn(2))
    await a_team(store)
    for by, wanted in (
        ("model", {"scripted": Decimal("0.50"), "other": None}),
        ("folder", {"/project": Decimal("0.50"), "own folder": None}),
        ("team", {"no team": Decimal("0.50"), "backend": None}),
    ):
        rows = await usage(store, by=by)  # type: ignore[arg-type]
        assert {row.key: row.cost_usd for row in rows} == wanted, by
    [day] = await usage(store, by="day")
    assert (day.cost_usd, day.input_tokens, day.output_tokens, day.requests) == (None, 30, 15, 3)
    [mine] = await usage(store, by="session", session=journal.session)
    assert (mine.key, mine.requests) == ("mine", 2)
    assert await usage(store, by="day", since_ms=clock.now_ms() + 2 * 24 * 60 * 60 * 1000) == ()


def test_an_unknown_price_makes_the_total_unknown() -> None:
    rows = [UsageRow(key="a", cost_usd=Decimal(1)), UsageRow(key="b", cost_usd=None)]
    assert total_usage(rows).cost_usd is None
    assert any("unknown" in line for line in usage_lines(rows, by="model", width=80))


@pytest.mark.parametrize("width", [60, 80, 120])
async def test_both_views_fit_the_width(width: int) -> None:
    timeline = timeline_of(await recorded_session())
    rows = [UsageRow(key="北京" * 30, cost_usd=Decimal("123.45"), input_tokens=10**9, calls=10**6)]
    for line in (*timeline_lines(timeline, width=width), *usage_lines(rows, by="folder", width=width)):
        assert cell_width(line) <= width, line


def test_a_message_of_several_lines_is_one_line_of_the_timeline() -> None:
    entry = TimelineEntry(kind="turn", turn=1, start_ms=0, length_ms=5, what="first\nsecond")
    assert any("turn first second " in line for line in timeline_lines(Timeline(entries=(entry,)), width=80))


async def test_the_timeline_pairs_what_starts_with_what_ends() -> None:
    entries = timeline_of(await recorded_session()).entries
    turns = [entry for entry in entries if entry.kind == "turn"]
    assert [(turn.what, turn.result) for turn in turns] == [("one", "ok"), ("two", "ok")]
    assert all(entry.length_ms is not None for entry in entries)


def test_the_commands_print_a_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new')"), "Written.")
    assert holdfast(*words, "go", home=tmp_path).returncode == 0
    for by in ("day", "model", "folder", "team", "session"):
        shown = holdfast("usage", "--by", by, home=tmp_path)
        assert shown.returncode == 0
        assert "total" in shown.stdout
    assert '"rows"' in holdfast("usage", "--json", home=tmp_path).stdout
    assert holdfast("usage", "--csv", home=tmp_path).stdout.startswith("key,cost_usd,")
    shown = holdfast("timeline", home=tmp_path)
    assert "call world.write" in shown.stdout
    assert "turn go proposed" in shown.stdout
    assert holdfast("timeline", "--json", home=tmp_path).stdout.startswith("[")
