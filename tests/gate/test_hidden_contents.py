"""What a guest learns from lists, searches and diffs is what the policy lets it read."""

from typing import Any

import pytest
from tests.gate.gate_setup import record

from holdfast.core import PERSON, Call, FakeClock, JsonObject, Parked, Response, Returned, call_id
from holdfast.gate import Gate
from holdfast.policy import LexicalPaths, RulePolicy
from holdfast.policy.parser import parse_policy
from holdfast.store import MemoryStore
from holdfast.world import MemoryWorld, StagedWorld, WorldToolset

POLICY = """\
policy: closed
rules:
  - name: never
    deny: "*"
    roles: [read-path]
    paths: denied/**
    because: it is closed
  - name: ask
    escalate: "*"
    roles: [read-path]
    paths: asked/**
    because: it needs approval
  - name: read
    allow: "*"
    roles: [read-path]
    inside: true
    because: open
  - name: write
    stage: world.*
    roles: [write-path, delete-path]
    inside: true
    because: open
  - name: look
    VERDICT: [world.proposals, world.search, world.list]
    because: open
"""
FILES = {"denied/a": b"canary\n", "asked/b": b"canary\n", "open/c": b"canary\n"}


class Guest:
    """A gate over three files, one of each kind."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self._number = 0

    async def call(self, operation: str, **arguments: object) -> Any:
        self._number += 1
        given: JsonObject = {name: str(value) for name, value in arguments.items()}
        call = Call(id=call_id(1, self._number), operation=operation, arguments=given)
        answer = await self.gate.submit(call)
        if isinstance(answer, Parked):
            yes = Response(verdict="approve")
            await self.gate.resolve(answer.escalation, yes, principal=PERSON, transport="test")
            answer = await self.gate.submit(call)
        assert isinstance(answer, Returned)
        return answer.value


async def guest(verdict: str) -> Guest:
    world = MemoryWorld(FILES)
    staged = StagedWorld(world)
    store = MemoryStore(clock=FakeClock())
    policy = RulePolicy(parse_policy(POLICY.replace("VERDICT", verdict), source="test"))
    toolset = WorldToolset(world, staged, keep=store.put_blob)
    gate = Gate(
        journal=await record(), policy=policy, toolsets=[toolset], paths=LexicalPaths(), clock=FakeClock()
    )
    made = Guest(gate)
    for path in FILES:
        await made.call("world.write", path=path, content="mine\n")
    return made


@pytest.mark.promise("P13")
async def test_a_diff_shows_no_file_that_the_guest_may_not_read_without_asking() -> None:
    made = await guest("allow")
    shown = await made.call("world.proposals")
    assert [each["path"] for each in shown] == ["open/c"]
    assert "-canary" in shown[0]["diff"]


async def test_a_person_who_approves_the_call_opens_what_needs_approval_and_not_what_is_denied() -> None:
    made = await guest("escalate")
    shown = await made.call("world.proposals")
    assert [each["path"] for each in shown] == ["asked/b", "open/c"]


@pytest.mark.parametrize(("verdict", "found"), [("allow", ["open/c"]), ("escalate", ["asked/b", "open/c"])])
@pytest.mark.promise("P13")
async def test_a_search_shows_lines_of_the_same_files(verdict: str, found: list[str]) -> None:
    made = await guest(verdict)
    assert [each["path"] for each in await made.call("world.search", query="mine")] == found
    assert await made.call("world.list") == ["asked/b", "open/c"]


async def test_a_long_list_is_filtered_as_well() -> None:
    made = await guest("allow")
    for number in range(150):
        await made.call("world.write", path=f"denied/{number}", content="x")
        await made.call("world.write", path=f"open/{number}", content="x")
    assert {each.partition("/")[0] for each in await made.call("world.list")} == {"asked", "open"}
