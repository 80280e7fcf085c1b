"""Whatever a tool does, its call is recorded, and what is executed is what was judged."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.core import (
    PERSON,
    ArgumentRoles,
    Call,
    Failed,
    FakeClock,
    FunctionToolset,
    Json,
    JsonObject,
    Parked,
    Performed,
    Refused,
    Response,
    Returned,
    Tool,
    call_id,
)
from holdfast.core.errors import ToolFailed
from holdfast.core.events import CallRefused, CallSettled, MessagePosted, RecordedEvent, SessionOpened
from holdfast.gate import Gate, GateSettings, OutputFilter
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore, Redactor
from holdfast.world import WorldPaths

TEXT: JsonObject = {"type": "string"}


def tool(name: str = "box.put") -> Tool:
    properties: JsonObject = {"what": TEXT, "path": TEXT}
    parameters: JsonObject = {"type": "object", "properties": properties}
    return Tool(name=name, parameters=parameters, roles={"path": ArgumentRoles(default=("write-path",))})


def put(number: int = 1, name: str = "box.put", **arguments: str) -> Call:
    return Call(id=call_id(1, number), operation=name, arguments=dict(arguments))


async def journal() -> Journal:
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    made = await MemoryStore(clock=FakeClock()).create(opened)
    await made.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return made


async def gate_over(
    function: Callable[[JsonObject], Json] = lambda _: "done",
    *,
    toolset: FunctionToolset | None = None,
    **parts: object,
) -> tuple[Gate, Journal]:
    record = await journal()
    given: dict[str, object] = {
        "policy": FixedPolicy(default="allow"),
        "toolsets": [toolset or FunctionToolset({"box.put": (tool(), function)})],
        "paths": LexicalPaths(),
        "clock": FakeClock(),
    }
    return Gate(journal=record, **(given | parts)), record  # type: ignore[arg-type]


def last(record: Journal) -> CallSettled:
    event = record.recorded[-1].event
    assert isinstance(event, CallSettled)
    return event


class HangingToolset(FunctionToolset):
    """A toolset whose first tool never answers."""

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if call.operation == "box.put":
            await asyncio.Event().wait()
        return await super().perform(call, is_staged=is_staged)


async def test_a_timed_out_call_is_recorded() -> None:
    stuck = HangingToolset({"box.put": (tool(), lambda _: None)})
    gate, record = await gate_over(toolset=stuck, settings=GateSettings(call_seconds=0))
    answer = await gate.submit(put())
    assert isinstance(answer, Failed)
    assert answer.error == "timeout"
    assert last(record).status == "timeout"


async def test_a_timeout_of_the_tool_itself_is_reported_in_its_own_words() -> None:
    def hang_up(_: JsonObject) -> Json:
        raise TimeoutError("the other side hung up")

    gate, record = await gate_over(hang_up)
    assert await gate.submit(put()) == Failed(error="TimeoutError", reason="the other side hung up")
    assert last(record).status == "error"


async def test_a_slow_call_does_not_block_others() -> None:
    tools = HangingToolset({name: (tool(name), lambda _: "quick") for name in ("box.put", "jar.put")})
    gate, _ = await gate_over(toolset=tools)
    slow = asyncio.create_task(gate.submit(put()))
    answers = [await gate.submit(put(number, "jar.put")) for number in range(2, 5)]
    assert answers == [Returned(value="quick")] * 3
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


@pytest.mark.parametrize("result", [object(), "half a pair \udc80", {"deep": [object()]}])
async def test_a_result_that_cannot_be_stored_is_recorded_as_a_failure(result: Json) -> None:
    gate, record = await gate_over(lambda _: result)
    assert isinstance(await gate.submit(put()), Failed)
    assert last(record).status == "error"


async def test_the_text_of_an_error_is_bounded_and_recordable() -> None:
    def fail(_: JsonObject) -> Json:
        raise ToolFailed("s3cr3t-value \udc80 " + "x" * 5000)

    gate, record = await gate_over(
        fail, output_filter=OutputFilter(max_error_bytes=1000, redactor=Redactor("s3cr3t-value"))
    )
    answer = await gate.submit(put())
    assert isinstance(answer, Failed)
    assert len(answer.reason) < 1200
    assert "s3cr3t-value" not in last(record).error


async def test_f01_a_result_over_the_limit_is_an_error_that_names_it_and_never_cut() -> None:
    gate, record = await gate_over(
        lambda _: ["é" * 10] * 100, output_filter=OutputFilter(max_result_bytes=1000)
    )
    answer = await gate.submit(put())
    assert isinstance(answer, Failed)
    assert "at most 1,000" in answer.reason
    assert last(record).result is None


def nested(depth: int) -> Json:
    value: Json = ""
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("what", ["\udc80", nested(100_000)], ids=["half a pair", "deep"])
async def test_arguments_that_cannot_be_stored_are_refused_and_recorded_once(what: Json) -> None:
    gate, record = await gate_over()
    call = Call(id=call_id(1, 1), operation="box.put", arguments={"what": what})
    answers = [await gate.submit(call) for _ in range(2)]
    assert isinstance(answers[0], Refused)
    assert answers[0] == answers[1]
    assert sum(isinstance(entry.event, CallRefused) for entry in record.recorded) == 1


async def test_an_argument_changed_while_the_intent_is_written_is_not_executed() -> None:
    made = FunctionToolset({"box.put": (tool(), lambda arguments: arguments["what"])})
    gate, record = await gate_over(toolset=made)
    call = put(what="rope")
    record.follow(lambda entry: call.arguments.update(what="bomb") if _is_intent(entry) else None)
    assert isinstance(await gate.submit(call), Failed)
    assert made.performed == []
    assert "changed" in last(record).error


async def test_a_tool_changed_while_the_intent_is_written_is_not_called() -> None:
    functions: dict[str, tuple[Tool, Callable[[JsonObject], Json]]] = {"box.put": (tool(), lambda _: "done")}
    made = FunctionToolset(functions)
    gate, record = await gate_over(toolset=made)
    other = Tool(name="box.put", description="now it burns", parameters=tool().parameters, roles={})
    record.follow(
        lambda entry: functions.update({"box.put": (other, lambda _: "x")}) if _is_intent(entry) else None
    )
    assert isinstance(await gate.submit(put()), Failed)
    assert made.performed == []


async def test_a_symlink_swapped_while_the_intent_is_written_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "work" / "a").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    made = FunctionToolset({"box.put": (tool(), lambda _: "written")})
    gate, record = await gate_over(toolset=made, paths=WorldPaths(tmp_path / "work"))

    def swap(entry: RecordedEvent) -> None:
        if _is_intent(entry):
            (tmp_path / "work" / "a").rmdir()
            (tmp_path / "work" / "a").symlink_to(tmp_path / "elsewhere")

    record.follow(swap)
    assert isinstance(await gate.submit(put(path="a/new.txt")), Failed)
    assert made.performed == []


async def test_a_policy_changed_after_the_approval_refuses_the_call() -> None:
    made = FunctionToolset({"box.put": (tool(), lambda _: "done")})
    gate, _ = await gate_over(toolset=made, policy=FixedPolicy(default="escalate"))
    parked = await gate.submit(put())
    assert isinstance(parked, Parked)
    await gate.resolve(parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test")
    gate.use_policy(FixedPolicy(default="escalate", verdicts={"jar.put": "deny"}))
    refused = await gate.submit(put())
    assert isinstance(refused, Refused)
    assert "not what would happen now" in refused.reason
    assert made.performed == []


async def test_other_arguments_under_an_approved_id_are_refused() -> None:
    made = FunctionToolset({"box.put": (tool(), lambda _: "done")})
    gate, _ = await gate_over(toolset=made, policy=FixedPolicy(default="escalate"))
    parked = await gate.submit(put(what="rope"))
    assert isinstance(parked, Parked)
    await gate.resolve(parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test")
    assert isinstance(await gate.submit(put(what="bomb")), Refused)
    assert made.performed == []


def _is_intent(entry: RecordedEvent) -> bool:
    return type(entry.event).__name__ == "CallIntended"
