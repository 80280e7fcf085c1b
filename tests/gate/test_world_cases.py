"""Numbered cases that need a whole gate: lists, read-only worlds, filtered results, and recorded denials."""

import re
from pathlib import Path

import msgspec
import pytest

from holdfast.core import PERSON, Call, FakeClock, Json, JsonObject, Limits, Refused, Returned, Value, call_id
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import Gate, audit_view
from holdfast.models import ModelToolset, ScriptedModel
from holdfast.policy import LexicalPaths, load_policy
from holdfast.store import MemoryStore
from holdfast.world import MemoryWorld, StagedWorld, WorldToolset

DATA = Path(__file__).parent / "data"
FILES = {"a.ts": b"secret", ".env": b"secret", "src/b.ts": b"x", "src/.hidden/x": b"secret"}


class WorldCase(Value):
    id: str
    title: str
    policy: str
    operation: str
    arguments: JsonObject
    answer: str
    reason: str = ""
    result: Json = None


class Narrowing(Value):
    id: str
    outer: Limits
    inner: Limits
    both: Limits


CASES = msgspec.json.decode((DATA / "world-cases.json").read_bytes(), type=list[WorldCase])
NARROWINGS = msgspec.json.decode((DATA / "narrowing-cases.json").read_bytes(), type=list[Narrowing])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_world_behind_the_gate(case: WorldCase, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(f"policy: p\n{case.policy}")
    world, clock = MemoryWorld(), FakeClock()
    for path, content in FILES.items():
        world.write(path, content)
    store = MemoryStore(clock=clock)
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    gate = Gate(
        journal=journal,
        policy=load_policy(str(tmp_path / "p.yaml")),
        toolsets=[
            WorldToolset(world, StagedWorld(world), keep=store.put_blob),
            ModelToolset(ScriptedModel(["because"])),
        ],
        paths=LexicalPaths(),
        clock=clock,
    )
    call = Call(id=call_id(1, 1), operation=case.operation, arguments=case.arguments)
    answer = await gate.submit(call)
    assert type(answer).__name__.lower() == case.answer, answer
    if isinstance(answer, Refused):
        assert case.reason in answer.reason
    if case.result is not None:
        assert isinstance(answer, Returned)
        assert answer.value == case.result
    [entry] = audit_view(journal.recorded)
    is_refused = case.answer == "refused"
    assert (entry.result, entry.decision.verdict) == (("refused", "deny") if is_refused else ("ok", "allow"))
    assert entry.decision.reason


@pytest.mark.parametrize("case", NARROWINGS, ids=lambda case: case.id)
def test_a_profile_only_narrows(case: Narrowing) -> None:
    assert case.outer.narrowed(case.inner) == case.both
    assert case.inner.narrowed(case.outer) == case.both


EXPECTED = {
    *(f"G{number}" for number in range(1, 31)),
    *(f"B{number}" for number in range(1, 12)),
    *(f"K{number}" for number in range(1, 10)),
}


def test_every_case_of_the_three_groups_runs_from_data() -> None:
    policy = DATA.parent.parent / "policy" / "data" / "glob-cases.tsv"
    texts = [path.read_text() for path in (*DATA.glob("*.json"), policy)]
    found = {name for text in texts for name in re.findall(r"\b[GBK]\d+(?=[a-z]?\b)", text)}
    assert EXPECTED - found == set()
