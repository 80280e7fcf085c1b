"""Loops are detected within a turn and forgotten with it."""

import pytest

from holdfast.core import PERSON, FakeClock, ModelMessage, ToolCallPart, Usage
from holdfast.core.events import MessagePosted, ModelReplied, SessionOpened, ToolReturned
from holdfast.gate import LoopDetector
from holdfast.store import Journal, MemoryStore


async def started() -> tuple[Journal, LoopDetector]:
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await MemoryStore(clock=FakeClock()).create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return journal, LoopDetector(journal)


async def step(journal: Journal, code: str, result: str, number: int) -> None:
    part = ToolCallPart(id=f"c{number}", tool="execute_code", arguments={"code": code})
    message = ModelMessage(parts=(part,))
    await journal.append(ModelReplied(turn=1, step=number, model="m", message=message, usage=Usage()))
    await journal.append(ToolReturned(turn=1, tool_call=part.id, tool=part.tool, content=result))


@pytest.mark.parametrize(("times", "verdict"), [(2, "fine"), (3, "warn"), (4, "warn"), (5, "block")])
async def test_the_same_code_with_the_same_result(times: int, verdict: str) -> None:
    journal, detector = await started()
    for number in range(times):
        await step(journal, "same", "same", number)
    assert detector.level == verdict


@pytest.mark.parametrize(("times", "verdict"), [(4, "fine"), (5, "warn"), (7, "warn"), (8, "block")])
async def test_new_code_with_the_same_result(times: int, verdict: str) -> None:
    journal, detector = await started()
    for number in range(times):
        await step(journal, f"code {number}", "same", number)
    assert detector.level == verdict


async def test_a_new_result_resets_the_count() -> None:
    journal, detector = await started()
    for number in range(4):
        await step(journal, "same", "same", number)
    await step(journal, "same", "other", 5)
    assert detector.level == "fine"


async def test_a_new_turn_resets_the_count() -> None:
    journal, detector = await started()
    for number in range(5):
        await step(journal, "same", "same", number)
    await journal.append(MessagePosted(turn=2, text="again", principal=PERSON))
    assert detector.level == "fine"


@pytest.mark.parametrize(("times", "verdict"), [(6, "fine"), (7, "warn"), (9, "warn"), (10, "block")])
async def test_two_calls_that_alternate_bring_nothing_new(times: int, verdict: str) -> None:
    journal, detector = await started()
    for number in range(times):
        await step(journal, f"code {number % 2}", f"result {number % 2}", number)
    assert detector.level == verdict


async def test_reading_twice_between_new_results_is_not_a_loop() -> None:
    journal, detector = await started()
    for number in range(30):
        await step(journal, "look", "as before", 2 * number)
        await step(journal, f"change {number}", f"changed {number}", 2 * number + 1)
    assert detector.level == "fine"
