"""Files of the data directory replaced by something else: nothing is granted, followed or waited for."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.gate.gate_setup import GateSetup, read, record

from holdfast.core import GrantId, Limits, Parked
from holdfast.core.errors import InvalidConfig, InvalidInput
from holdfast.gate import (
    ApprovalFiles,
    AuditFile,
    Budget,
    ControlRequests,
    SavedGrants,
    list_external_requests,
)

DEEP = "[" * 30_000 + "]" * 30_000
Trap = Callable[[Path], object]


def link(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_text("[]")
    path.symlink_to(elsewhere)


def long(path: Path) -> None:
    path.write_bytes(b"[" + b" " * 1_000_000 + b"]")


TRAPS: dict[str, Trap] = {
    "a link": link,
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "endless": long,
    "no UTF-8": lambda path: path.write_bytes(b'[{"id": "\xff"}]'),
    "deep": lambda path: path.write_text(DEEP),
    "deep in a grant": lambda path: path.write_text(f'[{{"id": "a", "more": {DEEP}}}]'),
}
traps = pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS.keys())


@traps
@pytest.mark.promise("P08")
def test_an_invalid_file_of_grants_grants_nothing_and_is_reported(tmp_path: Path, trap: Trap) -> None:
    path = tmp_path / "grants.json"
    trap(path)
    saved_grants = SavedGrants(path)
    assert saved_grants.load_or_empty() == ()
    with pytest.raises(InvalidConfig, match=r"grants\.json: ") as told:
        saved_grants.load()
    assert "move the file away" in str(told.value.hint)


async def test_a_lock_that_is_a_symlink_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".grants.json.lock").symlink_to(tmp_path / "made-by-us")
    with pytest.raises(OSError, match="symbolic links"):
        await SavedGrants(tmp_path / "grants.json").revoke(GrantId("any"))
    assert not (tmp_path / "made-by-us").exists()


@traps
async def test_an_invalid_audit_file_is_replaced_and_its_target_untouched(tmp_path: Path, trap: Trap) -> None:
    path = tmp_path / "audit.jsonl"
    trap(path)
    setup = GateSetup(await record())
    await setup.asked(read("a"))
    assert AuditFile(path).attach(setup.journal)
    assert path.is_file()
    assert not path.is_symlink()
    assert path.read_bytes() == b""
    if (tmp_path / "elsewhere").exists():
        assert (tmp_path / "elsewhere").read_text() == "[]"


async def test_a_pipe_in_place_of_the_audit_file_does_not_block(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    setup = GateSetup(await record())
    AuditFile(path).attach(setup.journal)
    parked = await setup.asked(read("a"))
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    await setup.answer(parked)
    await setup.gate.submit(read("a"))
    assert len(setup.tools.performed) == 1


@pytest.mark.parametrize("amount", [0, -1, 1_000_001, 10**4297], ids=["none", "less", "more", "endless"])
async def test_a_response_with_an_absurd_amount_is_a_denial_and_the_next_one_is_read(
    tmp_path: Path, amount: int
) -> None:
    setup = GateSetup(await record())
    files = ApprovalFiles(tmp_path, gate=setup.gate, journal=setup.journal)
    await files.open()
    first, second = await setup.asked(read("a")), await setup.asked(read("b", number=2))
    hostile = f'{{"decision": "approved", "scope": "minutes", "amount": {amount}}}'
    assert await ruled(setup, tmp_path, first, hostile) == "deny"
    assert await ruled(setup, tmp_path, second, '{"decision": "approved"}') == "approve"
    await files.close()


async def ruled(setup: GateSetup, folder: Path, parked: Parked, content: str) -> str:
    draft = folder / f".draft-{parked.escalation}"
    draft.write_text(content)
    draft.rename(folder / f"response-{parked.escalation}.json")
    return (await asyncio.wait_for(setup.gate.wait(parked.escalation), 60)).verdict


def test_a_deeply_nested_external_request_is_skipped(tmp_path: Path) -> None:
    whole = {"escalationId": "b", "serverName": "s", "toolName": "t", "arguments": {}, "reason": ""}
    (tmp_path / "request-a.json").write_text(f'{{"escalationId": "a", "arguments": {{"x": {DEEP}}}}}')
    (tmp_path / "request-b.json").write_text(json.dumps(whole))
    assert [request.escalation_id for request in list_external_requests(tmp_path)] == ["b"]


@pytest.mark.parametrize("tokens", [DEEP, "1" + "0" * 30, "1" + "0" * 4299], ids=["deep", "more", "endless"])
async def test_a_control_request_with_absurd_limits_changes_nothing_and_does_not_block(
    tmp_path: Path, tokens: str
) -> None:
    journal = await record()
    budget = Budget(journal, turn_limits=Limits())
    request = f'{{"do": "raise-budget", "added": {{"tokens": {tokens}, "more": {tokens}}}}}'
    (tmp_path / "a.json").write_text(request)
    control_requests = ControlRequests(tmp_path)
    await control_requests.apply(journal, budget)
    assert control_requests.count() == 0
    assert budget.limits == Limits()


@pytest.mark.parametrize("bound", [2**63, 10**4299], ids=["more", "endless"])
def test_a_limit_beyond_64_bits_is_refused(bound: int) -> None:
    with pytest.raises(InvalidInput):
        Limits(tokens=bound)


async def test_nothing_behind_a_symlink_in_place_of_our_folder_is_removed(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    for name in ("letter.txt", "request-phantom00001.json"):
        (theirs / name).write_text("keep me")
    for name in ("escalations", "inbox"):
        (tmp_path / name).symlink_to(theirs)
    setup = GateSetup(await record())
    approval_files = ApprovalFiles(tmp_path / "escalations", gate=setup.gate, journal=setup.journal)
    await approval_files.open()
    await setup.asked(read("a.txt"))
    await approval_files.close()
    control_requests = ControlRequests(tmp_path / "inbox")
    assert control_requests.count() == 0
    await control_requests.apply(setup.journal, setup.gate.budget)
    assert sorted(path.name for path in theirs.iterdir()) == ["letter.txt", "request-phantom00001.json"]
