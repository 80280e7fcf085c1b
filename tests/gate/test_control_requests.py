"""Control requests from another process: durable, applied before the next step, and once."""

import asyncio
import json
from pathlib import Path

import pytest
from tests.gate.gate_setup import record

from holdfast.core import (
    PERSON,
    Call,
    FakeClock,
    FunctionToolset,
    GrantId,
    Limits,
    Parked,
    Refused,
    Response,
    Returned,
    Tool,
    call_id,
)
from holdfast.core.events import BudgetRaised, Noted
from holdfast.gate import ControlRequests, Gate, RaiseBudget, RevokeGrant
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal

TOOL = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})


def call(number: int) -> Call:
    return Call(id=call_id(1, number), operation=TOOL.name, arguments={})


async def gate_over(
    folder: Path, *, limits: Limits | None = None, verdict: str = "allow", journal: Journal | None = None
) -> tuple[Gate, Journal]:
    journal = journal or await record(limits=limits)
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default=verdict),  # type: ignore[arg-type]
        toolsets=[FunctionToolset({TOOL.name: (TOOL, lambda _: "done")})],
        paths=LexicalPaths(),
        clock=FakeClock(),
        control_requests=ControlRequests(folder),
    )
    return gate, journal


async def test_a_limit_raised_by_another_process_applies_to_the_next_call(tmp_path: Path) -> None:
    gate, journal = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    assert isinstance(await gate.submit(call(1)), Refused)
    other_process = ControlRequests(tmp_path / "inbox")
    other_process.put(RaiseBudget(added=Limits(calls=1)))
    assert other_process.count() == 1
    assert isinstance(await gate.submit(call(1)), Returned)
    assert isinstance(await gate.submit(call(2)), Refused), "one was added, not more"
    assert other_process.count() == 0
    assert not (tmp_path / "inbox").exists()
    [raised] = [each.event for each in journal.recorded if isinstance(each.event, BudgetRaised)]
    assert (raised.limits.calls, raised.principal) == (1, PERSON)


async def test_a_grant_revoked_by_another_process_does_not_cover_the_next_call(tmp_path: Path) -> None:
    gate, _ = await gate_over(tmp_path / "inbox", verdict="escalate")
    parked = await gate.submit(call(1))
    assert isinstance(parked, Parked)
    yes = Response(verdict="approve", scope="session")
    await gate.resolve(parked.escalation, yes, principal=PERSON, transport="test")
    assert isinstance(await gate.submit(call(2)), Returned)
    [grant] = gate.grants.active()
    ControlRequests(tmp_path / "inbox").put(RevokeGrant(grant=grant.id))
    assert isinstance(await gate.submit(call(3)), Parked)


async def test_a_request_waits_until_a_process_holds_the_session_again(tmp_path: Path) -> None:
    _, journal = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    ControlRequests(tmp_path / "inbox").put(RaiseBudget(added=Limits(calls=1)))
    later, _ = await gate_over(tmp_path / "inbox", journal=journal)
    assert isinstance(await later.submit(call(1)), Returned)


async def test_a_request_whose_file_survived_a_crash_is_applied_once(tmp_path: Path) -> None:
    gate, _ = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    ControlRequests(tmp_path / "inbox").put(RaiseBudget(added=Limits(calls=1)))
    [request] = (tmp_path / "inbox").iterdir()
    content = request.read_bytes()
    await gate.apply_control_requests()
    request.parent.mkdir()
    request.write_bytes(content)
    await gate.apply_control_requests()
    assert gate.budget.limits.calls == 1


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "null",
        '{"do": "format"}',
        '{"do": "revoke-grant", "grant": "\xff"}',
        '{"do": "raise-budget", "added": {"calls": -1}}',
        "x" * 100_000,
    ],
)
async def test_an_invalid_request_changes_nothing_and_is_reported(tmp_path: Path, content: str) -> None:
    gate, journal = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "hostile.json").write_bytes(content.encode("latin-1"))
    assert isinstance(await gate.submit(call(1)), Refused)
    assert [each.event.code for each in journal.recorded if isinstance(each.event, Noted)] == [
        "request-refused"
    ]
    assert not (tmp_path / "inbox").exists()


async def test_a_symlink_in_place_of_a_request_is_not_followed(tmp_path: Path) -> None:
    gate, _ = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    real = tmp_path / "elsewhere.json"
    real.write_text(json.dumps({"do": "raise-budget", "added": {"calls": 5}}))
    (tmp_path / "inbox").mkdir()
    (tmp_path / "inbox" / "link.json").symlink_to(real)
    assert isinstance(await gate.submit(call(1)), Refused)
    assert real.exists()


async def test_concurrent_calls_apply_a_request_once(tmp_path: Path) -> None:
    gate, _ = await gate_over(tmp_path / "inbox", limits=Limits(calls=0))
    ControlRequests(tmp_path / "inbox").put(RaiseBudget(added=Limits(calls=2)))
    ControlRequests(tmp_path / "inbox").put(RevokeGrant(grant=GrantId("gone")))
    answers = await asyncio.gather(*(gate.submit(call(number)) for number in range(1, 6)))
    assert sum(isinstance(answer, Returned) for answer in answers) == 2
