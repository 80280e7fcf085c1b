"""Deeply nested arguments and results: refused by their depth and recorded, and nothing breaks."""

import pytest
from tests.gate.gate_setup import record

from holdfast.core import (
    MAX_DEPTH,
    ArgumentRoles,
    Call,
    Failed,
    FakeClock,
    FunctionToolset,
    Json,
    Refused,
    Returned,
    Tool,
    call_id,
)
from holdfast.core.errors import InvalidInput
from holdfast.core.events import CallRefused, CallSettled, RunEnded
from holdfast.gate import Gate, GateSettings
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal

ANYTHING = Tool(
    name="box.put",
    parameters={"type": "object", "properties": {"what": {}}},
    roles={"what": ArgumentRoles(default=("none",))},
)
HOSTILE = [*range(930, 1000), 5_000, 100_000]
"""Around the limit of the interpreter, where writing a call works and writing its record no longer does; and far beyond."""


def nested(depth: int, *, with_objects: bool = False) -> Json:
    value: Json = "at the bottom"
    for _ in range(depth):
        value = {"in": value} if with_objects else [value]
    return value


async def gate_with(result: Json = "done") -> tuple[Gate, FunctionToolset, Journal]:
    journal = await record()
    tools = FunctionToolset({ANYTHING.name: (ANYTHING, lambda _: result)})
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default="allow"),
        toolsets=[tools],
        paths=LexicalPaths(),
        clock=FakeClock(),
        settings=GateSettings(max_repeats=1000),
    )
    return gate, tools, journal


def put(what: Json, number: int = 1, operation: str = ANYTHING.name) -> Call:
    return Call(id=call_id(1, number), operation=operation, arguments={"what": what})


@pytest.mark.parametrize("operation", [ANYTHING.name, "nobody.offers_it"])
@pytest.mark.parametrize("with_objects", [False, True], ids=["lists", "objects"])
@pytest.mark.promise("P10")
async def test_too_deep_arguments_are_refused_and_recorded(operation: str, with_objects: bool) -> None:
    gate, tools, journal = await gate_with()
    for number, depth in enumerate(HOSTILE, start=1):
        answer = await gate.submit(put(nested(depth, with_objects=with_objects), number, operation))
        assert isinstance(answer, Refused)
        assert (answer.rule, "nested more than 64" in answer.reason) == ("invalid-arguments", True)
    refused = [entry.event for entry in journal.recorded if isinstance(entry.event, CallRefused)]
    assert [event.call.arguments for event in refused] == [{}] * len(HOSTILE)
    assert tools.performed == []


async def test_a_value_that_contains_itself_is_refused() -> None:
    gate, _, _ = await gate_with()
    round_and_round: list[Json] = []
    round_and_round.append(round_and_round)
    assert isinstance(await gate.submit(put(round_and_round)), Refused)


@pytest.mark.parametrize("what", [{1: "a number for a name"}, {"half": "\ud800"}, object()])
async def test_a_value_that_is_not_json_is_refused_and_recorded_without_it(what: Json) -> None:
    gate, tools, journal = await gate_with()
    answer = await gate.submit(put(what))
    assert isinstance(answer, Refused)
    assert answer.rule == "invalid-arguments"
    [refused] = [entry.event for entry in journal.recorded if isinstance(entry.event, CallRefused)]
    assert refused.call.arguments == {}
    assert tools.performed == []


@pytest.mark.parametrize(("depth", "kind"), [(MAX_DEPTH - 1, Returned), (MAX_DEPTH, Refused)])
async def test_the_arguments_object_is_the_first_level(depth: int, kind: type) -> None:
    gate, _, _ = await gate_with()
    assert isinstance(await gate.submit(put(nested(depth))), kind)


async def test_a_too_deep_result_is_recorded_as_a_failure() -> None:
    for depth in HOSTILE:
        gate, tools, journal = await gate_with(nested(depth))
        answer = await gate.submit(put("it"))
        assert isinstance(answer, Failed)
        assert "nested more than 64" in answer.reason
        assert len(tools.performed) == 1
        assert isinstance(journal.recorded[-1].event, CallSettled)


async def test_the_journal_refuses_what_is_nested_too_deeply() -> None:
    journal, refused = await record(), 0
    before = len(journal.recorded)
    for depth in HOSTILE:
        try:
            await journal.append(RunEnded(turn=1, run=1, status="ok", value=nested(depth)))
        except InvalidInput:
            refused += 1
    assert refused >= 2
    assert len(journal.recorded) == before + len(HOSTILE) - refused
