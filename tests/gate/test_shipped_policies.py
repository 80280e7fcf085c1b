"""The policies safe-analysis and safe-edit behind a whole gate, over tools that would do anything they are allowed to."""

import pytest

from holdfast.core import (
    PERSON,
    Call,
    FakeClock,
    FunctionToolset,
    JsonObject,
    Refused,
    Returned,
    Tool,
    call_id,
)
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import Gate, audit_view
from holdfast.models import ModelToolset, ScriptedModel
from holdfast.policy import KNOWN_TOOLS, LexicalPaths, load_policy
from holdfast.store import Journal, MemoryStore
from holdfast.world import MemoryWorld, StagedWorld, WorldToolset

FILES = {"a.ts": b"x", ".env": b"key", "src/b.ts": b"x", "src/.hidden/c": b"x"}
OFFERED = ("shell.run", "net.fetch", "subeval", "eval", "memo", "fixpoint", "assert", "fact?", "facts")


class Workspace:
    """A world behind a named policy, with tools for everything that it speaks of."""

    def __init__(self, journal: Journal, store: MemoryStore, policy: str) -> None:
        self.journal = journal
        self.world = MemoryWorld()
        for path, content in FILES.items():
            self.world.write(path, content)
        self.staged = StagedWorld(self.world)
        self.others = FunctionToolset({name: (_tool(name), lambda _: "done") for name in OFFERED})
        self.gate = Gate(
            journal=journal,
            policy=load_policy(policy),
            toolsets=[
                WorldToolset(self.world, self.staged, keep=store.put_blob),
                ModelToolset(ScriptedModel(["because"])),
                self.others,
            ],
            paths=LexicalPaths(),
            clock=FakeClock(),
        )


def _tool(name: str) -> Tool:
    known = KNOWN_TOOLS.get(name)
    return known or Tool(name=name, parameters={"type": "object", "additionalProperties": True}, roles={})


async def workspace(policy: str) -> Workspace:
    store = MemoryStore(clock=FakeClock())
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    return Workspace(journal, store, policy)


def write(path: str) -> JsonObject:
    return {"path": path, "content": "new"}


BOTH = ("safe-analysis", "safe-edit")
YES: list[tuple[str, JsonObject]] = [
    ("world.read", {"path": "src/b.ts"}),
    ("world.list", {}),
    ("world.search", {"query": "x"}),
    ("world.fingerprint", {}),
    ("world.fingerprint", {"path": "a.ts"}),
    ("llm.complete", {"prompt": "why", "max_tokens": 4000}),
    ("llm.intent", {"intent": "tidy"}),
    ("subeval", {}),
    ("eval", {}),
    ("memo", {}),
    ("fixpoint", {}),
    ("assert", {}),
    ("fact?", {}),
    ("facts", {}),
]
NO: list[tuple[str, JsonObject]] = [
    ("world.read", {"path": ".env"}),
    ("world.read", {"path": "../../etc/passwd"}),
    ("world.fingerprint", {"path": ".env"}),
    ("world.delete", {"path": "src/b.ts"}),
    ("world.write", write("lib/a.ts")),
    ("llm.complete", {"prompt": "why", "max_tokens": 4001}),
    ("llm.intent", {"intent": "tidy", "max_tokens": 4001}),
    ("shell.run", {"argv": ["ls"]}),
    ("net.fetch", {"url": "https://example.com/"}),
]


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(("operation", "arguments"), YES, ids=lambda value: str(value)[:30])
async def test_what_both_policies_allow_is_executed(
    policy: str, operation: str, arguments: JsonObject
) -> None:
    made = await workspace(policy)
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    assert isinstance(await made.gate.submit(call), Returned)


@pytest.mark.parametrize("policy", BOTH)
@pytest.mark.parametrize(("operation", "arguments"), NO, ids=lambda value: str(value)[:30])
async def test_what_both_policies_deny_is_not_executed_and_recorded(
    policy: str, operation: str, arguments: JsonObject
) -> None:
    made = await workspace(policy)
    call = Call(id=call_id(1, 1), operation=operation, arguments=arguments)
    assert isinstance(await made.gate.submit(call), Refused)
    assert made.others.performed == []
    assert {path: made.world.read(path) for path in FILES} == FILES
    [entry] = audit_view(made.journal.recorded)
    assert entry.decision.verdict == "deny"


@pytest.mark.parametrize("policy", BOTH)
async def test_unreadable_files_are_neither_listed_nor_found(policy: str) -> None:
    made = await workspace(policy)
    for number, (operation, arguments) in enumerate(
        [("world.list", {}), ("world.search", {"query": "x"})], start=1
    ):
        answer = await made.gate.submit(
            Call(id=call_id(1, number), operation=operation, arguments={**arguments})
        )
        assert isinstance(answer, Returned)
        assert ".hidden" not in str(answer.value)
        assert ".env" not in str(answer.value)


async def test_safe_analysis_writes_nothing_and_safe_edit_only_proposes() -> None:
    call = Call(id=call_id(1, 1), operation="world.write", arguments=write("src/b.ts"))
    analysis, edit = await workspace("safe-analysis"), await workspace("safe-edit")
    assert isinstance(await analysis.gate.submit(call), Refused)
    assert isinstance(await edit.gate.submit(call), Returned)
    assert [proposal.path for proposal in edit.staged.proposals()] == ["src/b.ts"]
    assert edit.world.read("src/b.ts") == b"x", "nothing is changed before a person commits"
    read = await edit.gate.submit(
        Call(id=call_id(1, 2), operation="world.read", arguments={"path": "src/b.ts"})
    )
    assert isinstance(read, Returned)
    assert "new" in str(read.value), "and the guest sees its own proposal"
