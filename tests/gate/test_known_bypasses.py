"""Weaknesses found in another gate, each under its number.

tests/policy/test_bypasses.py has those that the policy alone decides; docs/design/gate.md lists which is where.
"""

import asyncio
import signal
import subprocess
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from tests.gate.gate_setup import ASKS, READ, YES, GateSetup, read, record
from tests.support.fork_server import forked_python

from holdfast.cli.commands.why import explain
from holdfast.core import (
    PERSON,
    Call,
    Failed,
    FakeClock,
    FunctionToolset,
    Limits,
    Nonconverged,
    Parked,
    Performed,
    Refused,
    Response,
    Returned,
    SessionId,
    SystemClock,
    Tool,
    call_id,
    encode,
)
from holdfast.core.errors import EscalationUnknown
from holdfast.core.events import (
    CallIntended,
    CodePosted,
)
from holdfast.gate import ApprovalFiles, AuditEntry, GateSettings, SavedGrants, audit_view, describe_grant
from holdfast.policy import FixedPolicy, PolicyDocument, RulePolicy
from holdfast.session import Settings
from holdfast.store import Home, open_store
from holdfast.testing import memory_session
from holdfast.world import WorldPaths


@pytest.mark.promise("P05")
async def test_w3_a_path_that_changed_after_approval_is_not_opened(tmp_path: Path) -> None:
    for folder in ("work/a", "elsewhere"):
        (tmp_path / folder).mkdir(parents=True)
    setup = GateSetup(await record(), paths=WorldPaths(tmp_path / "work"))
    await setup.answer(await setup.asked(read("a/x.txt")))
    (tmp_path / "work" / "a").rmdir()
    (tmp_path / "work" / "a").symlink_to(tmp_path / "elsewhere")
    refused = await setup.gate.submit(read("a/x.txt"))
    assert isinstance(refused, Refused)
    assert "elsewhere" in refused.reason
    assert setup.tools.performed == []


async def test_w5_the_time_to_answer_is_the_configured_one() -> None:
    clock = FakeClock()
    async with memory_session(
        [ASKS],
        policy=FixedPolicy(default="escalate"),
        settings=Settings(escalation_seconds=3),
        clock=clock,
    ) as session:
        await session.send("go")
        [waits] = session.escalations()
        assert waits.expires_ms == waits.opened_ms + 3000
        clock.advance(4)
        with pytest.raises(EscalationUnknown, match="late"):
            await session.resolve(waits.id, YES)


async def test_w6_many_wait_at_once_and_each_is_answered_separately(tmp_path: Path) -> None:
    setup = GateSetup(await record())
    meeting = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await meeting.open()
    parked = [await setup.asked(read(f"{number}.txt", number=number)) for number in range(1, 6)]
    assert len(list(tmp_path.glob("request-*.json"))) == 5
    last = parked[-1].escalation
    (tmp_path / "draft").write_text('{"decision": "approved"}')
    (tmp_path / "draft").rename(tmp_path / f"response-{last}.json")
    assert (await setup.gate.wait(last)).verdict == "approve"
    assert len(setup.gate.escalations.waiting()) == 4
    await meeting.close()


async def test_w7_a_request_of_a_dead_process_neither_shows_nor_blocks(tmp_path: Path) -> None:
    (tmp_path / "request-phantom1.json").write_text('{"escalationId": "phantom1"}')
    setup = GateSetup(await record())
    meeting = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await meeting.open()
    parked = await setup.asked(read("a.txt"))
    assert [path.name for path in tmp_path.glob("request-*")] == [f"request-{parked.escalation}.json"]
    await meeting.close()


async def test_w8_a_session_closes_at_once_while_a_call_waits() -> None:
    async with memory_session(
        [ASKS],
        policy=FixedPolicy(default="escalate"),
    ) as session:
        await session.send("go")
        assert len(session.escalations()) == 1
        await session.close()  # the clock does not move: waiting for the time limit would never end


KILLED_IN_MID_CALL = """
import asyncio, os, signal, sys
from pathlib import Path
from holdfast.core import PERSON, Call, FunctionToolset, SystemClock, Tool, call_id
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import Gate
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Home, open_store

home, effect = Home(Path(sys.argv[1])), Path(sys.argv[2])
tool = Tool(name="mail.send", parameters={"type": "object", "properties": {}}, roles={})

def send(_):
    effect.write_text("sent")
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened, session="killed")
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    gate = Gate(
        journal=journal, policy=FixedPolicy(default="allow"), paths=LexicalPaths(), clock=SystemClock(),
        toolsets=[FunctionToolset({tool.name: (tool, send)})],
    )
    await gate.submit(Call(id=call_id(1, 1), operation=tool.name, arguments={}))

asyncio.run(main())
"""


@pytest.mark.promise("P06")
async def test_w10_a_process_killed_during_a_call_leaves_its_intent_and_the_call_is_not_repeated(
    tmp_path: Path,
) -> None:
    effect = tmp_path / "effect"
    program = forked_python("-c", KILLED_IN_MID_CALL, str(tmp_path / "home"), str(effect))
    killed = await asyncio.to_thread(subprocess.run, program, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert effect.read_text() == "sent", "the effect took place"
    effect.unlink()
    store = await open_store(Home(tmp_path / "home"), clock=SystemClock())
    journal = await store.open(SessionId("killed"))
    assert isinstance(journal.recorded[-1].event, CallIntended), "and its intent was on disk before"
    tool = Tool(name="mail.send", parameters={"type": "object", "properties": {}}, roles={})
    tools = FunctionToolset({tool.name: (tool, lambda _: effect.write_text("sent again"))})
    setup = GateSetup(journal, policy=FixedPolicy(default="allow"), toolset=tools)
    answer = await setup.gate.submit(Call(id=call_id(1, 1), operation=tool.name, arguments={}))
    assert isinstance(answer, Failed)
    assert answer.error == "unknown"
    assert not effect.exists()
    await store.close()


async def test_w13_text_only_turns_are_counted_and_the_session_has_a_limit() -> None:
    async with memory_session(["words"] * 20, limits=Limits(steps=3)) as session:
        outcomes = [await session.send("hello") for _ in range(4)]
        assert session.budget.spent.steps == 3
        assert session.budget.spent.tokens > 0
        assert isinstance(outcomes[3], Nonconverged)
        assert not any(isinstance(outcome, Nonconverged) for outcome in outcomes[:3])


async def test_w14_the_circuit_breaker_resets_with_the_next_turn() -> None:
    setup = GateSetup(
        await record(), policy=FixedPolicy(default="allow"), settings=GateSettings(max_repeats=2)
    )
    answers = [await setup.gate.submit(read("a.txt", number=number)) for number in (1, 2, 3)]
    assert isinstance(answers[2], Refused)
    await setup.journal.append(CodePosted(turn=2, code="", language="python", principal=PERSON))
    assert isinstance(await setup.gate.submit(read("a.txt", turn=2)), Returned)


async def test_w15_one_slow_call_does_not_block_others() -> None:
    class Slow(FunctionToolset):
        async def perform(self, call: Call, *, is_staged: bool) -> Performed:
            if call.arguments["paths"] == ["slow"]:
                await asyncio.Event().wait()
            return await super().perform(call, is_staged=is_staged)

    tools = Slow({READ.name: (READ, lambda _: "quick")})
    setup = GateSetup(await record(), policy=FixedPolicy(default="allow"), toolset=tools)
    slow = asyncio.create_task(setup.gate.submit(read("slow")))
    quick = await asyncio.gather(*(setup.gate.submit(read("x", number=number)) for number in (2, 3, 4)))
    assert quick == [Returned(value="quick")] * 3
    assert not slow.done()
    slow.cancel()
    await asyncio.gather(slow, return_exceptions=True)


async def test_w16_a_late_approval_is_reported_and_changes_nothing() -> None:
    setup = GateSetup(await record(), settings=GateSettings(escalation_seconds=10))
    parked = await setup.asked(read("a.txt"))
    setup.clock.advance(11)
    with pytest.raises(EscalationUnknown, match="is too late"):
        await setup.answer(parked)
    assert isinstance(await setup.gate.submit(read("a.txt")), Refused)


@pytest.mark.promise("P07")
async def test_w17_a_partial_response_is_a_denial_and_its_files_are_removed(tmp_path: Path) -> None:
    setup = GateSetup(await record())
    meeting = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await meeting.open()
    parked = await setup.asked(read("a.txt"))
    (tmp_path / f"response-{parked.escalation}.json").write_text('{"decision": "approv')
    assert (await setup.gate.wait(parked.escalation)).verdict == "deny"
    assert isinstance(await setup.gate.submit(read("a.txt")), Refused)
    assert list(tmp_path.iterdir()) == []
    await meeting.close()


async def test_w18_a_grant_covers_the_exact_call_and_not_its_whole_folder(tmp_path: Path) -> None:
    saved_grants = SavedGrants(tmp_path / "grants.json")
    setup = GateSetup(await record(), saved_grants=saved_grants)
    both = read("notes/a.txt", "letters/b.txt")
    await setup.answer(await setup.asked(both), Response(verdict="approve", scope="always"))
    assert isinstance(await setup.gate.submit(both), Returned)
    later = GateSetup(await record(), saved_grants=saved_grants)
    assert isinstance(await later.gate.submit(both), Returned), "two folders, and it covers itself"
    assert isinstance(await later.gate.submit(read("notes/.ssh/authorized_keys", number=2)), Parked)
    [grant] = saved_grants.load()
    assert "notes/a.txt" in describe_grant(grant)
    assert await saved_grants.revoke(grant.id)
    assert isinstance(await later.gate.submit(read("notes/a.txt", "letters/b.txt", number=3)), Parked)


async def test_w22_the_audit_names_the_approver_the_transport_and_the_escalation() -> None:
    setup = GateSetup(await record())
    await setup.answer(await setup.asked(read("a.txt")))
    await setup.gate.submit(read("a.txt"))
    [entry] = audit_view(setup.journal.recorded)
    assert (entry.decision.verdict, entry.approver, entry.transport) == ("escalate", PERSON, "test")
    assert entry.escalation is not None
    hashes = [(each.previous, each.hash) for each in setup.journal.recorded]
    assert all(later[0] == earlier[1] for earlier, later in pairwise(hashes))


async def test_w22_a_call_allowed_by_a_grant_names_the_grant_and_its_giver() -> None:
    setup = GateSetup(await record())
    parked = await setup.asked(read("a.txt"))
    await setup.answer(parked, Response(verdict="approve", scope="session"))
    [grant] = setup.gate.grants.active()
    await setup.gate.submit(read("a.txt", number=2))
    entry = audit_view(setup.journal.recorded)[-1]
    assert (entry.decision.verdict, entry.result) == ("escalate", "ok")
    assert (entry.grant, entry.approver, entry.transport) == (grant.id, PERSON, "grant")
    told = explain(entry)
    assert len(told) <= 3
    assert f"grant {grant.id}, given by person" in told[-1]
    assert set(msgspec.json.decode(encode(entry))) == set(AuditEntry.__struct_fields__), (
        "in each line the same"
    )


async def test_a_trusted_group_does_not_allow_an_unknown_tool() -> None:
    policy = RulePolicy(PolicyDocument(name="trusting", trusted_groups=("files",)))
    setup = GateSetup(await record(), policy=policy)
    answer = await setup.gate.submit(Call(id=call_id(1, 1), operation="files.burn", arguments={}))
    assert isinstance(answer, Refused)
    assert "no toolset offers" in answer.reason
    [entry] = audit_view(setup.journal.recorded)
    assert (entry.result, entry.decision.verdict) == ("refused", "deny")
