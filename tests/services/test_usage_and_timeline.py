"""Usage and timeline: what the journal says, once, in a form that fits the screen."""

from decimal import Decimal
from pathlib import Path

import pytest
from tests.cli.commands import holdfast
from tests.cli.terminals import prepared, runs

from holdfast.cli.terminal.wrap import cell_width
from holdfast.cli.views.timeline_chart import timeline_lines
from holdfast.cli.views.usage_table import usage_lines
from holdfast.core import SessionId, Usage
from holdfast.core.events import Parent, RecordedEvent
from holdfast.models import Reply, say
from holdfast.services import UsageRow, timeline_of, total_usage, usage
from holdfast.store import SessionSummary
from holdfast.testing import memory_session

COSTLY = Reply(
    message=say("Done.").message, usage=Usage(input_tokens=900, output_tokens=100, cost_usd=Decimal("0.25"))
)


class OneJournal:
    """A store that has the events of one session."""

    def __init__(self, recorded: list[RecordedEvent]) -> None:
        self._recorded = recorded

    async def read(self, session: SessionId, *, after: int = 0) -> list[RecordedEvent]:
        return self._recorded


async def recorded_session() -> list[RecordedEvent]:
    found: list[RecordedEvent] = []
    async with memory_session([COSTLY, COSTLY]) as session:
        session.follow(found.append)
        await session.send("one")
        await session.send("two")
    return found


async def test_usage_adds_up_what_the_journal_has() -> None:
    recorded = await recorded_session()
    session = SessionSummary(id=SessionId("a"), model="scripted:x")
    [row] = await usage(OneJournal(recorded), [session], by="day")  # type: ignore[arg-type]
    assert (row.cost_usd, row.input_tokens, row.output_tokens, row.requests) == (
        Decimal("0.50"),
        1800,
        200,
        2,
    )


async def test_a_fork_does_not_count_its_parents_events_again() -> None:
    recorded = await recorded_session()
    fork = SessionSummary(id=SessionId("b"), parent=Parent(session=SessionId("a"), seq=recorded[-1].seq))
    assert await usage(OneJournal(recorded), [fork], by="day") == ()  # type: ignore[arg-type]


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


async def test_the_timeline_pairs_what_starts_with_what_ends() -> None:
    entries = timeline_of(await recorded_session()).entries
    turns = [entry for entry in entries if entry.kind == "turn"]
    assert [(turn.what, turn.result) for turn in turns] == [("one", "ok"), ("two", "ok")]
    assert all(entry.length_ms is not None for entry in entries)


def test_the_commands_print_a_session(tmp_path: Path) -> None:
    words = prepared(tmp_path, runs("open('n.txt', 'w').write('new')"), "Written.")
    assert holdfast(*words, "go", home=tmp_path).returncode == 0
    for by in ("day", "model", "folder", "session"):
        shown = holdfast("usage", "--by", by, home=tmp_path)
        assert shown.returncode == 0
        assert "total" in shown.stdout
    assert '"rows"' in holdfast("usage", "--json", home=tmp_path).stdout
    assert holdfast("usage", "--csv", home=tmp_path).stdout.startswith("key,cost_usd,")
    shown = holdfast("timeline", home=tmp_path)
    assert "call world.write" in shown.stdout
    assert "turn go proposed" in shown.stdout
    assert holdfast("timeline", "--json", home=tmp_path).stdout.startswith("[")
