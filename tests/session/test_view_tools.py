"""The session's own view of itself, as a guest sees it."""

from decimal import Decimal

import pytest

from holdfast.core import Error, Limits, Ok
from holdfast.guests import script
from holdfast.testing import memory_session

LIMITS = Limits(tokens=100, cost_usd=Decimal("1.5"), wall_seconds=60.0, bytes_written=7)


@pytest.mark.parametrize(
    ("word", "left"),
    [("tokens", 100.0), ("usd", 1.5), ("cost", 1.5), ("cost_usd", 1.5), ("bytes", 7.0), ("steps", 50.0)],
)
async def test_f25_the_remaining_budget_is_named_by_the_words_of_every_other_budget(
    word: str, left: float
) -> None:
    async with memory_session(limits=LIMITS) as session:
        asks = script({"call": "session.budget_remaining", "arguments": {"dimension": word}})
        assert await session.execute(asks) == Ok(value=left)


@pytest.mark.parametrize("word", ["time", "wall_seconds"])
async def test_the_remaining_time_is_what_the_running_turn_has_not_reserved(word: str) -> None:
    async with memory_session(limits=LIMITS) as session:
        asks = script({"call": "session.budget_remaining", "arguments": {"dimension": word}})
        assert await session.execute(asks) == Ok(value=45.0)


async def test_an_unknown_dimension_is_an_error_that_lists_the_words() -> None:
    async with memory_session() as session:
        asks = script({"call": "session.budget_remaining", "arguments": {"dimension": "colour"}})
        outcome = await session.execute(asks)
        assert isinstance(outcome, Error)
        assert "one of tokens, usd, time" in outcome.message


async def test_f17_the_id_is_that_of_the_session_in_every_turn() -> None:
    async with memory_session() as session:
        asks = script({"call": "session.id"})
        assert await session.execute(asks) == Ok(value=session.id)
        assert await session.execute(asks) == Ok(value=session.id)


async def test_a_session_whose_code_runs_is_active() -> None:
    async with memory_session() as session:
        assert await session.execute(script({"call": "session.status"})) == Ok(value="active")
