"""No grant overrides a deny or a protection, however wide it is."""

from pathlib import Path

import pytest

from holdfast.core import PERSON, Call, FakeClock, GrantReach, Parked, Refused, Response, Scope, call_id
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import Gate
from holdfast.policy import load_policy
from holdfast.store import MemoryStore
from holdfast.world import FolderWorld, StagedWorld, WorldPaths, WorldToolset

POLICY = """\
policy: lab
rules:
  - name: never-keys
    deny: "*"
    paths: ["keys/**"]
    because: keys stay where they are
    examples: {matches: [{world.write: {path: keys/a, content: x}}], misses: [{world.write: {path: a, content: x}}]}
  - name: ask
    escalate: "world.*"
    because: ask me
    examples: {matches: [{world.write: {path: a, content: x}}], misses: [{world.write: {path: keys/a, content: x}}]}
"""


@pytest.mark.parametrize("reach", ["exact", "folder"])
@pytest.mark.parametrize("scope", ["turn", "minutes", "session", "always"])
async def test_a_grant_never_overrides_a_deny_or_a_protection(
    tmp_path: Path, scope: Scope, reach: GrantReach
) -> None:
    root = tmp_path / "work"
    (root / "keys").mkdir(parents=True)
    (root / ".git" / "hooks").mkdir(parents=True)
    (tmp_path / "lab.yaml").write_text(POLICY)
    clock = FakeClock()
    store = MemoryStore(clock=clock)
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    world = FolderWorld(root)
    gate = Gate(
        journal=journal,
        policy=load_policy(str(tmp_path / "lab.yaml")),
        toolsets=[WorldToolset(world, StagedWorld(world), keep=store.put_blob)],
        paths=WorldPaths(root),
        clock=clock,
    )

    def write(path: str, number: int) -> Call:
        return Call(
            id=call_id(1, number), operation="world.write", arguments={"path": path, "content": str(number)}
        )

    parked = await gate.submit(write("a.txt", 1))
    assert isinstance(parked, Parked)
    yes = Response(verdict="approve", scope=scope, reach=reach, amount=10)
    await gate.resolve(parked.escalation, yes, principal=PERSON, transport="test")
    assert not isinstance(await gate.submit(write("a.txt", 2)), Parked | Refused), "the grant holds"
    assert isinstance(await gate.submit(write("keys/id", 3)), Refused)
    assert isinstance(await gate.submit(write(".git/hooks/pre-commit", 4)), Refused)
    assert list((root / "keys").iterdir()) == []
