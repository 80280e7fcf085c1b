"""Gate.submit: the only path from a call to an effect, with everything recorded."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.gate.gate_setup import record

from holdfast.core import (
    PERSON,
    Answer,
    Call,
    Decision,
    Failed,
    FakeClock,
    FunctionToolset,
    Json,
    JsonObject,
    Limits,
    Parked,
    Performed,
    Refused,
    Response,
    Returned,
    SystemClock,
    Tool,
    Verdict,
    call_id,
)
from holdfast.core.errors import Diverged, EscalationUnknown, ToolFailed
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationExpired,
    SessionOpened,
)
from holdfast.gate import Gate, GateSettings, OutputFilter, audit_view
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Home, Journal, Redactor, open_store

TOOL = Tool(
    name="box.put",
    parameters={
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    },
    roles={},
)


class RecordingGate:
    """A gate over real parts in memory, and one tool that counts what it did."""

    def __init__(
        self,
        journal: Journal,
        clock: FakeClock,
        verdict: Verdict,
        function: Callable[[JsonObject], Json],
        tool: Tool,
        settings: GateSettings,
        output_filter: OutputFilter,
        toolset: FunctionToolset | None,
    ) -> None:
        self.journal = journal
        self.clock = clock
        self.tools = toolset or FunctionToolset({tool.name: (tool, function)})
        self.gate = Gate(
            journal=journal,
            policy=FixedPolicy(default=verdict),
            toolsets=[self.tools],
            paths=LexicalPaths(),
            clock=clock,
            settings=settings,
            output_filter=output_filter,
        )

    @property
    def events(self) -> list[str]:
        return [type(entry.event).__name__ for entry in self.journal.recorded[2:]]


async def recording_gate(
    verdict: Verdict = "allow",
    function: Callable[[JsonObject], Json] = lambda arguments: f"put {arguments['what']}",
    *,
    tool: Tool = TOOL,
    limits: Limits | None = None,
    settings: GateSettings | None = None,
    output_filter: OutputFilter | None = None,
    journal: Journal | None = None,
    toolset: FunctionToolset | None = None,
) -> RecordingGate:
    clock = FakeClock()
    journal = journal or await record(limits=limits)
    return RecordingGate(
        journal,
        clock,
        verdict,
        function,
        tool,
        settings or GateSettings(),
        output_filter or OutputFilter(),
        toolset,
    )


def put(what: str, number: int = 1) -> Call:
    return Call(id=call_id(1, number), operation="box.put", arguments={"what": what})


@pytest.mark.promise("P06")
async def test_an_allowed_call_is_executed_after_its_intent_is_recorded() -> None:
    seen: list[list[str]] = []

    def look(arguments: JsonObject) -> Json:
        seen.append(made.events)
        return "done"

    made = await recording_gate(function=look)
    assert await made.gate.submit(put("rope")) == Returned(value="done")
    assert seen == [["CallIntended"]]
    assert made.events == ["CallIntended", "CallSettled"]


@pytest.mark.promise("P02")
async def test_a_denied_call_is_not_executed_and_is_recorded() -> None:
    made = await recording_gate("deny")
    answer = await made.gate.submit(put("rope"))
    assert isinstance(answer, Refused)
    assert made.tools.performed == []
    assert made.events == ["CallRefused"]


@pytest.mark.parametrize(
    "call",
    [
        Call(id=call_id(1, 1), operation="box.put", arguments={}),
        Call(id=call_id(1, 1), operation="box.put", arguments={"what": 3}),
        Call(id=call_id(1, 1), operation="box.put", arguments={"what": "x", "more": 1}),
        Call(id=call_id(1, 1), operation="box.burn", arguments={}),
    ],
    ids=["missing", "wrong type", "unknown key", "unknown tool"],
)
async def test_a_malformed_call_is_refused_whatever_the_policy(call: Call) -> None:
    made = await recording_gate("allow")
    assert isinstance(await made.gate.submit(call), Refused)
    assert made.tools.performed == []


async def test_a_call_that_must_be_staged_but_cannot_be_is_not_executed() -> None:
    made: list[JsonObject] = []
    setup = await recording_gate("stage", made.append)
    answer = await setup.gate.submit(put("rope"))
    assert isinstance(answer, Failed)
    assert "cannot be staged" in answer.reason
    assert made == []


async def test_a_failing_tool_is_an_answer_and_is_recorded() -> None:
    def fail(arguments: JsonObject) -> Json:
        raise ToolFailed("the box is full")

    made = await recording_gate(function=fail)
    assert await made.gate.submit(put("rope")) == Failed(error="ToolFailed", reason="the box is full")
    assert made.events == ["CallIntended", "CallSettled"]


async def test_an_unexpected_exception_reports_its_type_and_not_its_text() -> None:
    def breaks(arguments: JsonObject) -> Json:
        raise RuntimeError("password is hunter2")

    made = await recording_gate(function=breaks)
    answer = await made.gate.submit(put("rope"))
    assert isinstance(answer, Failed)
    assert "hunter2" not in answer.reason


async def test_a_recorded_call_is_not_executed_again() -> None:
    made = await recording_gate()
    first = await made.gate.submit(put("rope"))
    again = await recording_gate(journal=made.journal)
    assert await again.gate.submit(put("rope")) == first
    assert again.tools.performed == []


async def test_another_call_under_a_recorded_id_is_reported_as_diverged() -> None:
    made = await recording_gate()
    await made.gate.submit(put("rope"))
    with pytest.raises(Diverged):
        await made.gate.submit(put("chain"))


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_an_interrupted_call_is_repeated_only_if_idempotent(is_idempotent: bool) -> None:
    tool = Tool(name=TOOL.name, parameters=TOOL.parameters, roles={}, is_idempotent=is_idempotent)
    died = await recording_gate(tool=tool)
    call = put("rope")
    await died.journal.append(
        CallIntended(
            call=call,
            decision=Decision(verdict="allow", rule="r", reason=""),
            digest=call.digest,
            tool_digest=tool.digest,
            is_idempotent=is_idempotent,
        )
    )
    next_process = await recording_gate(tool=tool, journal=died.journal)
    assert [each.call.id for each in next_process.gate.calls.all_interrupted()] == [call.id]
    answer = await next_process.gate.submit(call)
    assert isinstance(answer, Returned if is_idempotent else Failed)
    assert len(next_process.tools.performed) == (1 if is_idempotent else 0)


async def test_an_escalated_call_parks_and_continues_after_approval() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)
    assert await made.gate.submit(put("rope")) == parked, "asked again, it still waits"
    await made.gate.resolve(
        parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test"
    )
    assert await made.gate.submit(put("rope")) == Returned(value="put rope")
    [entry] = audit_view(made.journal.recorded)
    assert (entry.result, entry.approver, entry.transport) == ("ok", PERSON, "test")


async def test_a_denial_is_a_refusal_with_the_persons_reason() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)
    answer = Response(verdict="deny", reason="not today")
    await made.gate.resolve(parked.escalation, answer, principal=PERSON, transport="test")
    refused = await made.gate.submit(put("rope"))
    assert isinstance(refused, Refused)
    assert "not today" in refused.reason


@pytest.mark.promise("P07")
async def test_no_answer_is_a_denial() -> None:
    made = await recording_gate("escalate", settings=GateSettings(escalation_seconds=10))
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)
    made.clock.advance(11)
    ruling = await made.gate.wait(parked.escalation)
    assert ruling.verdict == "expire"
    assert isinstance(await made.gate.submit(put("rope")), Refused)
    with pytest.raises(EscalationUnknown, match="late"):
        await made.gate.resolve(
            parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test"
        )
    assert sum(isinstance(e.event, EscalationExpired) for e in made.journal.recorded) == 1


@pytest.mark.promise("P07")
async def test_without_anyone_to_ask_an_escalation_is_a_denial() -> None:
    made = await recording_gate("escalate", settings=GateSettings(can_ask=False))
    assert isinstance(await made.gate.submit(put("rope")), Refused)


async def test_the_first_answer_wins() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)

    async def answer(verdict: str) -> object:
        response = Response(verdict=verdict)  # type: ignore[arg-type]
        return await made.gate.resolve(parked.escalation, response, principal=PERSON, transport=verdict)

    outcomes = await asyncio.gather(answer("approve"), answer("deny"), return_exceptions=True)
    assert sum(isinstance(each, EscalationUnknown) for each in outcomes) == 1


async def test_a_tool_that_changed_after_the_approval_is_not_called() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)
    await made.gate.resolve(
        parked.escalation, Response(verdict="approve"), principal=PERSON, transport="test"
    )
    changed = Tool(name=TOOL.name, description="now it burns", parameters=TOOL.parameters, roles={})
    after = await recording_gate("escalate", tool=changed, journal=made.journal)
    assert isinstance(await after.gate.submit(put("rope")), Refused)
    assert after.tools.performed == []


async def test_edited_arguments_are_what_is_executed() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope"))
    assert isinstance(parked, Parked)
    edited = Response(verdict="approve", arguments={"what": "string"})
    await made.gate.resolve(parked.escalation, edited, principal=PERSON, transport="test")
    assert await made.gate.submit(put("rope")) == Returned(value="put string")
    assert await made.gate.submit(put("rope")) == Returned(value="put string"), "and again from the record"


async def test_a_grant_for_the_turn_covers_the_same_call_and_no_other() -> None:
    made = await recording_gate("escalate")
    parked = await made.gate.submit(put("rope", 1))
    assert isinstance(parked, Parked)
    yes = Response(verdict="approve", scope="turn")
    await made.gate.resolve(parked.escalation, yes, principal=PERSON, transport="test")
    assert isinstance(await made.gate.submit(put("rope", 2)), Returned)
    assert isinstance(await made.gate.submit(put("chain", 3)), Parked)


@pytest.mark.parametrize("allowed", [0, 1, 3])
async def test_exactly_n_calls_are_usable(allowed: int) -> None:
    made = await recording_gate(limits=Limits(calls=allowed))
    answers: list[Answer] = [await made.gate.submit(put(f"item {n}", n)) for n in range(1, allowed + 2)]
    assert sum(isinstance(answer, Returned) for answer in answers) == allowed
    assert isinstance(answers[-1], Refused)


async def test_concurrent_calls_cannot_exceed_a_limit_together() -> None:
    made = await recording_gate(limits=Limits(calls=5))
    answers = await asyncio.gather(*(made.gate.submit(put(f"item {n}", n)) for n in range(1, 21)))
    assert sum(isinstance(answer, Returned) for answer in answers) == 5


async def test_the_same_call_over_and_over_breaks_the_circuit() -> None:
    made = await recording_gate(settings=GateSettings(max_repeats=3))
    answers = [await made.gate.submit(put("rope", n)) for n in range(1, 6)]
    assert [isinstance(answer, Returned) for answer in answers] == [True, True, True, False, False]
    assert isinstance(await made.gate.submit(put("chain", 6)), Returned), "another call is not held up"


async def test_f01_a_result_is_whole_and_known_secrets_are_redacted() -> None:
    output_filter = OutputFilter(redactor=Redactor("s3cr3t-value"))
    made = await recording_gate(function=lambda _: "x" * 5000 + "s3cr3t-value", output_filter=output_filter)
    answer = await made.gate.submit(put("rope"))
    assert isinstance(answer, Returned)
    assert answer.value == "x" * 5000 + "[redacted]"


async def test_a_cancelled_call_is_recorded() -> None:
    class Stuck(FunctionToolset):
        async def perform(self, call: Call, *, is_staged: bool) -> Performed:
            begun.set()
            await asyncio.Event().wait()
            return Performed()

    begun = asyncio.Event()
    made = await recording_gate(toolset=Stuck({TOOL.name: (TOOL, lambda _: None)}))
    task = asyncio.create_task(made.gate.submit(put("rope")))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    last = made.journal.recorded[-1].event
    assert isinstance(last, CallSettled)
    assert last.status == "cancelled"


async def test_a_refusal_keeps_its_answer_on_replay() -> None:
    made = await recording_gate("deny")
    first = await made.gate.submit(put("rope"))
    assert await made.gate.submit(put("rope")) == first
    assert sum(isinstance(e.event, CallRefused) for e in made.journal.recorded) == 1


async def test_a_call_cancelled_while_its_intent_is_written_is_recorded_as_never_executed(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path)
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    made = await recording_gate(journal=await store.create(opened))
    task = asyncio.create_task(made.gate.submit(put("rope")))
    await asyncio.sleep(0)  # it has handed its intent to the disk
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    settled = made.journal.recorded[-1].event
    assert isinstance(settled, CallSettled)
    assert (settled.status, settled.error) == ("cancelled", "cancelled before it was executed")
    assert made.tools.performed == []
    assert made.gate.budget.spent.bytes_written == 0
    await store.close()


async def test_a_toolset_that_rebuilds_its_list_each_time_offers_the_same_tools() -> None:
    class Forgetful(FunctionToolset):
        def tools(self) -> tuple[Tool, ...]:
            return tuple(
                Tool(name=tool.name, parameters=tool.parameters, roles={}) for tool in super().tools()
            )

    made = await recording_gate(toolset=Forgetful({TOOL.name: (TOOL, lambda _: None)}))
    first = made.gate.tool(TOOL.name)
    assert first is not None
    assert made.gate.tool(TOOL.name) is first, "what is as it was is not looked through and digested again"
