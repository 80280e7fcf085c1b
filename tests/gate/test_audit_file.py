"""audit.jsonl: derived from the journal, tailable, and rebuilt when it is missing or wrong."""

import json
from pathlib import Path

import pytest

from holdfast.core import (
    PERSON,
    Call,
    Decision,
    Escalation,
    EscalationId,
    FakeClock,
    Nonconverged,
    Usage,
    call_id,
    encode,
)
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    EscalationExpired,
    EscalationOpened,
    HistoryCompacted,
    ModelFailed,
    SessionOpened,
    SessionRewound,
    TurnEnded,
)
from holdfast.gate import AuditFile, audit_stats, audit_view
from holdfast.store import Journal, MemoryStore

ALLOW = Decision(verdict="allow", rule="r", reason="fine")
DENY = Decision(verdict="deny", rule="d", reason="no")


async def journal_with_calls() -> Journal:
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await MemoryStore(clock=FakeClock()).create(opened)
    await call(journal, 1)
    await journal.append(CallRefused(call=a_call(2), decision=DENY))
    return journal


def a_call(number: int) -> Call:
    return Call(id=call_id(1, number), operation="world.read", arguments={"path": "a"})


async def call(journal: Journal, number: int) -> None:
    wish = a_call(number)
    await journal.append(CallIntended(call=wish, decision=ALLOW, digest=wish.digest, tool_digest=""))
    await journal.append(CallSettled(call=wish.id, status="ok", result="x", duration_ms=1.5))


def lines(path: Path) -> list[tuple[str, str]]:
    return [(line["call"], line["result"]) for line in map(json.loads, path.read_text().splitlines())]


async def test_each_ended_call_has_a_line(tmp_path: Path) -> None:
    journal, path = await journal_with_calls(), tmp_path / "audit.jsonl"
    AuditFile(path).attach(journal)
    assert lines(path) == [("1.1", "ok"), ("1.2", "refused")]
    await call(journal, 3)
    assert lines(path)[-1] == ("1.3", "ok")
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("damage", ["gone", "cut", "foreign", "empty"])
async def test_a_missing_or_damaged_audit_file_is_rebuilt(tmp_path: Path, damage: str) -> None:
    journal, path = await journal_with_calls(), tmp_path / "audit.jsonl"
    AuditFile(path).attach(journal)
    whole = path.read_bytes()
    match damage:
        case "gone":
            path.unlink()
        case "cut":
            path.write_bytes(whole[:-30])
        case "foreign":
            path.write_bytes(b"something else\n")
        case "empty":
            path.write_bytes(b"")
    AuditFile(path).attach(journal)
    assert path.read_bytes() == whole


async def test_the_audit_view_filters_by_turn_and_operation_and_counts_everything() -> None:
    journal = await journal_with_calls()
    assert len(audit_view(journal.recorded, turn=1)) == 2
    assert audit_view(journal.recorded, turn=2) == []
    assert len(audit_view(journal.recorded, operation="world.read")) == 2
    stats = audit_stats(journal.recorded)
    assert (stats.total_operations, stats.operation_counts) == (2, {"world.read": 2})
    assert stats.result_counts == {"ok": 1, "refused": 1}


async def test_a_call_after_a_rewind_has_its_own_line(tmp_path: Path) -> None:
    journal, path = await journal_with_calls(), tmp_path / "audit.jsonl"
    AuditFile(path).attach(journal)
    await journal.append(SessionRewound(seq=1, turn=0, principal=PERSON))
    other = Call(id=call_id(1, 1), operation="world.write", arguments={"path": "b"})
    await journal.append(CallIntended(call=other, decision=ALLOW, digest=other.digest, tool_digest=""))
    await journal.append(CallSettled(call=other.id, status="error", error="full"))
    operations = [json.loads(line)["operation"] for line in path.read_text().splitlines()]
    assert operations == ["world.read", "world.read", "world.write"]
    assert [entry.operation for entry in audit_view(journal.recorded)] == ["world.write"]
    before = path.read_bytes()
    assert not AuditFile(path).attach(journal)
    assert path.read_bytes() == before


async def test_stats_have_the_documented_field_names() -> None:
    stats = json.loads(encode(audit_stats((await journal_with_calls()).recorded)))
    assert stats["totalOperations"] == 2
    assert stats["operationCounts"] == {"world.read": 2}
    assert stats["totalTokens"] == 0


async def test_stats_count_the_tokens_of_every_model_that_was_paid() -> None:
    journal = await journal_with_calls()
    used = Usage(input_tokens=10, output_tokens=1)
    await journal.append(
        ModelFailed(turn=1, step=1, code="model", reason="broke off", usage=used),
        HistoryCompacted(through=0, summary="", usage=used),
    )
    assert audit_stats(journal.recorded).total_tokens == 22


async def test_calls_that_a_turn_left_open_are_recorded_when_it_ends(tmp_path: Path) -> None:
    journal, path = await journal_with_calls(), tmp_path / "audit.jsonl"
    AuditFile(path).attach(journal)
    cut, asked = a_call(3), a_call(4)
    await journal.append(CallIntended(call=cut, decision=ALLOW, digest=cut.digest, tool_digest=""))
    waits = Escalation(
        id=EscalationId("e"),
        call=asked,
        decision=Decision(verdict="escalate", rule="ask", reason="because"),
        digest=asked.digest,
        tool_digest="",
        policy_digest="",
        opened_ms=0,
        expires_ms=1,
    )
    await journal.append(EscalationOpened(escalation=waits))
    assert [entry.result for entry in audit_view(journal.recorded)][2:] == ["begun", "waiting"]
    await journal.append(EscalationExpired(escalation=waits.id, reason="the turn was cancelled"))
    await journal.append(TurnEnded(turn=1, outcome=Nonconverged(reason="cancelled")))
    assert lines(path)[2:] == [("1.3", "unknown"), ("1.4", "cancelled")]
