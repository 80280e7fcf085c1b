"""Ways around a gate that were reported for agents in general: by precedence and through the approval channel."""

import json
import os
from pathlib import Path

import pytest
from tests.gate.gate_setup import ASKS, YES, GateSetup, read, record

from holdfast.core import (
    AGENT,
    Call,
    Failed,
    Parked,
    Refused,
    Response,
    Returned,
    call_id,
)
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.events import (
    CallIntended,
    RecordedEvent,
)
from holdfast.gate import ApprovalFiles, covers, describe_grant
from holdfast.policy import FixedPolicy
from holdfast.testing import memory_session
from holdfast.world import WorldPaths

# -- precedence


async def test_precedence_edited_arguments_are_judged_again() -> None:
    class OnlyOne(FixedPolicy):
        def judge(self, request):  # type: ignore[no-untyped-def]
            is_plain = request.call.arguments == {"paths": ["a.txt"]}
            return FixedPolicy(default="escalate" if is_plain else "deny").judge(request)

    setup = GateSetup(await record(), policy=OnlyOne(default="deny"))
    edited = Response(verdict="approve", arguments={"paths": ["/etc/shadow"]})
    await setup.answer(await setup.asked(read("a.txt")), edited)
    assert isinstance(await setup.gate.submit(read("a.txt")), Refused)
    assert setup.tools.performed == []


@pytest.mark.promise("P05")
async def test_precedence_a_policy_change_during_a_call_stops_it() -> None:
    setup = GateSetup(await record(), policy=FixedPolicy(default="allow"))

    def tighten(entry: RecordedEvent) -> None:
        if isinstance(entry.event, CallIntended):
            setup.gate.use_policy(FixedPolicy(default="deny"))

    setup.journal.follow(tighten)
    answer = await setup.gate.submit(read("a.txt"))
    assert isinstance(answer, Failed)
    assert "policy changed" in answer.reason
    assert setup.tools.performed == []


# -- the approval channel


async def test_approval_channel_the_maker_of_a_call_cannot_approve_it() -> None:
    setup = GateSetup(await record())
    parked = await setup.asked(read("a.txt"))
    with pytest.raises(InvalidInput, match="cannot approve"):
        await setup.gate.resolve(parked.escalation, YES, principal=AGENT, transport="test")
    assert isinstance(await setup.gate.submit(read("a.txt")), Parked)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
async def test_approval_channel_a_response_of_another_user_is_a_denial(tmp_path: Path) -> None:
    setup = GateSetup(await record())
    meeting = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await meeting.open()
    parked = await setup.asked(read("a.txt"))
    (tmp_path / "draft").write_text('{"decision": "approved"}')
    os.chown(tmp_path / "draft", 12345, 12345)
    (tmp_path / "draft").rename(tmp_path / f"response-{parked.escalation}.json")
    assert (await setup.gate.wait(parked.escalation)).verdict == "deny"
    await meeting.close()


async def test_approval_channel_a_replayed_answer_answers_nothing_else(tmp_path: Path) -> None:
    setup = GateSetup(await record())
    meeting = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await meeting.open()
    first = await setup.asked(read("a.txt"))
    digest = setup.gate.escalations.waiting()[0].digest
    await setup.answer(first)
    second = await setup.asked(read("/etc/shadow", number=2))
    (tmp_path / "draft").write_text(json.dumps({"decision": "approved", "digest": digest}))
    (tmp_path / "draft").rename(tmp_path / f"response-{second.escalation}.json")
    assert (await setup.gate.wait(second.escalation)).verdict == "deny"
    await meeting.close()


async def test_approval_channel_one_invalid_item_denies_the_batch(tmp_path: Path) -> None:
    paths = WorldPaths(tmp_path, protected=[tmp_path / "secret"])
    (tmp_path / "secret").mkdir()
    setup = GateSetup(await record(), policy=FixedPolicy(default="allow"), paths=paths)
    good = [f"{number}.txt" for number in range(9)]
    assert isinstance(await setup.gate.submit(read(*good)), Returned)
    assert isinstance(await setup.gate.submit(read(*good, "secret/key", number=2)), Refused)
    assert len(setup.tools.performed) == 1


async def test_approval_channel_an_approval_of_one_call_of_many_covers_that_one() -> None:
    setup = GateSetup(await record())
    first, second = await setup.asked(read("a.txt")), await setup.asked(read("/etc/shadow", number=2))
    await setup.answer(first)
    assert isinstance(await setup.gate.submit(read("a.txt")), Returned)
    assert await setup.gate.submit(read("/etc/shadow", number=2)) == second


@pytest.mark.promise("P05")
async def test_approval_channel_what_is_shown_has_the_digest_of_what_is_executed() -> None:
    setup = GateSetup(await record())
    parked = await setup.asked(read("a.txt"))
    [shown] = setup.gate.escalations.waiting()
    await setup.answer(parked)
    await setup.gate.submit(read("a.txt"))
    [made] = [each.event for each in setup.journal.recorded if isinstance(each.event, CallIntended)]
    assert shown.digest == made.digest == setup.tools.performed[0].digest


@pytest.mark.promise("P05")
async def test_approval_channel_arguments_changed_after_they_were_shown_are_not_executed() -> None:
    setup = GateSetup(await record())
    call = read("a.txt")
    await setup.answer(await setup.asked(call))
    paths = call.arguments["paths"]
    assert isinstance(paths, list)
    paths[0] = "/etc/shadow"
    assert isinstance(await setup.gate.submit(call), Refused)
    assert setup.tools.performed == []


async def test_approval_channel_a_closed_session_accepts_no_answer() -> None:
    async with memory_session(
        [ASKS],
        policy=FixedPolicy(default="escalate"),
    ) as session:
        await session.send("go")
        [waits] = session.escalations()
        await session.close()
        with pytest.raises(HoldfastError):
            await session.resolve(waits.id, YES)
        assert session.escalations() == (waits,)


async def test_approval_channel_a_grant_is_never_wider_than_its_description() -> None:
    setup = GateSetup(await record())
    wide = Response(verdict="approve", scope="session", reach="folder")
    await setup.answer(await setup.asked(read("notes/a.txt")), wide)
    [grant] = setup.gate.grants.active()
    assert "everything in" in describe_grant(grant)
    inside = setup.gate.submit(read("notes/b.txt", number=2))
    assert isinstance(await inside, Returned)
    for number, path in enumerate(("notes2/a.txt", "notes/../b.txt", "other/notes/a.txt"), start=3):
        assert isinstance(await setup.gate.submit(read(path, number=number)), Parked), path
    writing = Call(id=call_id(1, 9), operation="files.write", arguments={"paths": ["notes/a.txt"]})
    assert not covers(grant, writing, ())
