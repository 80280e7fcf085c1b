"""A session in a file: opened in another data directory with messages, files, staged changes and budget, without grants."""

import json
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from tests.store.sample_events import asked

from holdfast.app import Runtime
from holdfast.core import (
    PERSON,
    CallId,
    Escalation,
    FakeClock,
    FunctionToolset,
    Limits,
    Ok,
    Proposed,
    Response,
    SessionId,
    Tool,
    call_id,
    digest_bytes,
)
from holdfast.core.errors import JournalDamaged, SessionExists
from holdfast.core.events import (
    GENESIS,
    CallIntended,
    CodePosted,
    CommitsProposed,
    EscalationAnswered,
    EscalationOpened,
    Event,
    GrantGiven,
    Noted,
    RecordedEvent,
    RestorePointMade,
    RunParked,
    SessionRewound,
    TurnParked,
    decode_event,
    encode_event,
    event_hash,
)
from holdfast.core.projection import ReplayedHistory, imported_through
from holdfast.gate import ControlRequests, Grants, RevokeGrant, limits_of_tree, share_of
from holdfast.gate.escalations import Escalations, Ruling
from holdfast.models import Prompt, Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session

STAGES = FixedPolicy(default="allow", verdicts={"world.write": "stage", "world.delete": "escalate"})
ASKS = FixedPolicy(default="escalate")
PUT = Tool(name="box.put", parameters={"type": "object", "properties": {}}, roles={})


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "here", clock=FakeClock())
    yield runtime
    await runtime.close()


@pytest.fixture
async def there(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "there", clock=FakeClock())
    yield runtime
    await runtime.close()


def code(source: str) -> Reply:
    return use("execute_code", {"code": source})


def files(session: Session) -> dict[str, bytes]:
    return {path: session.workspace.read(path) for path in session.workspace.list()}


async def test_a_snapshot_opens_in_another_data_directory(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    heard: list[Prompt] = []

    def listen(prompt: Prompt) -> Reply:
        heard.append(prompt)
        return say("Yes.")

    replies: list[ScriptedReply] = [code("open('staged.txt', 'w').write('new')"), "Done.", listen]
    project = tmp_path / "project"
    project.mkdir()
    (project / "kept.txt").write_text("kept")
    session = await here.create(model=ScriptedModel(replies), policy=STAGES, workspace=project)
    assert isinstance(await session.send("Write it."), Proposed)
    (project / "by-hand.txt").write_text("mine")
    await here.snapshot(session.id, tmp_path / "session.zip")

    again = await there.restore(tmp_path / "session.zip", model=ScriptedModel(replies), policy=STAGES)
    assert files(again) == {"kept.txt": b"kept", "by-hand.txt": b"mine"}
    assert [proposal.path for proposal in again.proposals()] == ["staged.txt"]
    assert again.budget.spent == session.budget.spent
    assert await again.send("Is it there?") == Ok(value="Yes.")
    assert len(heard[0].messages) == 5, "the model is given the whole conversation"
    await again.commit()
    assert files(again)["staged.txt"] == b"new"
    assert not (project / "staged.txt").exists(), "the folder it came from is left alone"
    assert [turn.number for turn in again.history()] == [1, 2]


async def test_grants_of_a_snapshot_do_not_apply(here: Runtime, there: Runtime, tmp_path: Path) -> None:
    async def always(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    session = await here.create(policy=STAGES, needs_model=False, approver=always)
    await session.execute("import os\nopen('a', 'w').write('a')\nos.remove('a')")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=STAGES, needs_model=False)
    await again.execute("import os\nopen('b', 'w').write('b')\nos.remove('b')")
    assert len(again.escalations()) == 1


async def test_grants_of_a_snapshot_do_not_apply_in_its_fork(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    async def always(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False, approver=always)
    assert await session.execute("box.put()") == Ok(value="done")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=ASKS, toolsets=[box], needs_model=False)
    fork = await there.fork(again.id, policy=ASKS, toolsets=[box], needs_model=False)
    await fork.execute("box.put()")
    assert len(fork.escalations()) == 1


async def test_what_was_revoked_stays_revoked_in_a_fork_from_the_first_event(here: Runtime) -> None:
    """A crash right after it must not leave a fork with an approval that its parent no longer has."""

    async def yes(escalation: Escalation) -> Response:
        return Response(verdict="approve", scope="session")

    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False, approver=yes)
    await session.execute("box.put()")
    [grant] = session.grants()
    ControlRequests(here.home.control_requests(session.id)).put(RevokeGrant(grant=grant.id))
    assert await session.advance() is None, "it only applies the control request"
    fork = await here.fork(session.id, at=1, policy=ASKS, toolsets=[box], needs_model=False)
    again = await here.fork(fork.id, at=1, policy=ASKS, toolsets=[box], needs_model=False)
    for each in (fork, again):
        recorded = await here.store.read(each.id)
        first = next(place for place, entry in enumerate(recorded) if entry.session == each.id)
        assert any(isinstance(entry.event, GrantGiven) for entry in recorded[:first])
        assert Grants(ReplayedHistory(recorded[: first + 1]), clock=FakeClock()).active() == ()


async def permissive_snapshot(here: Runtime, file: Path) -> SessionId:
    """A session in a file that was run under a policy of its own making."""
    policy = file.with_name("lawless.yaml")
    policy.write_text("policy: lawless\nrules:\n  - {name: all, allow: '*'}\n")
    session = await here.create(policy=str(policy), needs_model=False)
    await session.execute("1")
    await here.snapshot(session.id, file)
    assert session.status.policy == str(policy)
    return session.id


async def test_a_snapshot_does_not_choose_its_policy(here: Runtime, there: Runtime, tmp_path: Path) -> None:
    id = await permissive_snapshot(here, tmp_path / "session.zip")
    ours = "scratch"
    again = await there.restore(tmp_path / "session.zip", needs_model=False)
    assert again.status.policy == ours
    [told] = [note.text for note in again.diagnostics() if note.code == "policy-chosen"]
    assert ours in told
    await again.rewind(0)
    await again.close()
    again = await there.resume(id, needs_model=False)
    assert again.status.policy == ours, "also once it went back to before it came here"
    assert len([note for note in again.diagnostics() if note.code == "policy-chosen"]) <= 1


async def test_a_fork_of_a_snapshot_runs_under_our_policy(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    await permissive_snapshot(here, tmp_path / "session.zip")
    store = there.store
    session = await store.import_session(tmp_path / "session.zip", now_ms=0)
    fork = await there.fork(session, at=1, needs_model=False)
    assert fork.status.policy == "scratch"


async def test_the_policy_chosen_for_a_snapshot_is_kept(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    id = await permissive_snapshot(here, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy="ask-always", needs_model=False)
    await again.close()
    assert (await there.resume(id, needs_model=False)).status.policy == "ask-always"


async def test_an_unused_approval_of_a_snapshot_does_not_count(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False)
    await session.execute("box.put()")
    [waits] = session.escalations()
    await session.resolve(waits.id, Response(verdict="approve"))
    await session.close()
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=ASKS, toolsets=[box], needs_model=False)
    assert await again.advance() is None, "no turn of another home goes on here"
    assert box.performed == []
    [entry] = again.audit(operation=PUT.name)
    assert (entry.result, entry.error) == ("cancelled", "it was approved in another home")


def _changed(path: Path, change: Callable[[list[Event]], list[Event]]) -> Path:
    """The archive with other events, and hashes that fit."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    found = json.loads(content["manifest.json"])
    lines = [json.loads(line) for line in content["events.jsonl"].splitlines()]
    events = change([decode_event(json.dumps(line["event"]).encode()) for line in lines])
    previous, written = GENESIS, []
    for seq, event in enumerate(events, start=1):
        body = encode_event(event)
        previous = event_hash(previous, found["session"], seq, 1, body)
        head = {"session": found["session"], "seq": seq, "at_ms": 1, "hash": previous.hex()}
        written.append(json.dumps(head)[:-1] + f',"event":{body.decode()}}}\n')
    content["events.jsonl"] = "".join(written).encode()
    content["manifest.json"] = json.dumps(
        {**found, "events": len(events), "last_hash": previous.hex()}
    ).encode()
    path.unlink()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def _used(events: list[Event], *, is_rewound: bool) -> list[Event]:
    """The turn is open, its call is approved, and the approval seems to be used up."""
    events = [event for event in events if not isinstance(event, RunParked | TurnParked)]
    [asked] = [event.escalation for event in events if isinstance(event, EscalationOpened)]
    approved = EscalationAnswered(
        escalation=asked.id, response=Response(verdict="approve"), principal=PERSON, transport="terminal"
    )
    call = asked.call if is_rewound else msgspec.structs.replace(asked.call, id=call_id(1, 9))
    used = CallIntended(
        call=call,
        decision=asked.decision,
        digest=asked.digest,
        tool_digest=asked.tool_digest,
        escalation=asked.id,
    )
    events += [approved, used]
    return [*events, SessionRewound(seq=len(events) - 1, turn=1, principal=PERSON)] if is_rewound else events


def _lying(events: list[Event]) -> list[Event]:
    """The question that waits shows other words than its digest stands for."""
    events = [event for event in events if not isinstance(event, RunParked | TurnParked)]
    [place] = [place for place, event in enumerate(events) if isinstance(event, EscalationOpened)]
    shown = events[place].escalation  # type: ignore[attr-defined]
    harmless = msgspec.structs.replace(shown.call, arguments={"harmless": True})
    events[place] = EscalationOpened(escalation=msgspec.structs.replace(shown, call=harmless))
    return events


FORGED: dict[str, Callable[[list[Event]], list[Event]]] = {
    "an approval that another call used": lambda events: _used(events, is_rewound=False),
    "an approval whose use was rewound": lambda events: _used(events, is_rewound=True),
    "a question with other words": _lying,
    "an open turn of the person": lambda events: [
        event for event in events if not isinstance(event, EscalationOpened | RunParked | TurnParked)
    ],
}


@pytest.mark.promise("P11")
@pytest.mark.parametrize("forged", FORGED)
async def test_nothing_that_a_file_began_or_approved_goes_on(
    here: Runtime, there: Runtime, tmp_path: Path, forged: str
) -> None:
    box = FunctionToolset({PUT.name: (PUT, lambda _: "done")})
    session = await here.create(policy=ASKS, toolsets=[box], needs_model=False)
    await session.execute("box.put()")
    await session.close()
    await here.snapshot(session.id, tmp_path / "session.zip")
    file = _changed(tmp_path / "session.zip", FORGED[forged])
    again = await there.restore(file, policy=ASKS, toolsets=[box], needs_model=False)
    assert await again.advance() is None
    assert (box.performed, again.escalations()) == ([], ())
    assert again.history()[-1].outcome is not None


def test_an_approval_of_a_file_is_none_even_if_its_call_is_made_again() -> None:
    opening = asked(1)
    call = opening.escalation.call
    answered = EscalationAnswered(
        escalation=opening.escalation.id,
        response=Response(verdict="approve"),
        principal=PERSON,
        transport="web",
    )
    imported = Noted(code="imported", text="")
    for told, verdict in (((opening, answered), "approve"), ((opening, answered, imported), "expire")):
        recorded = [
            RecordedEvent(session=SessionId("s"), seq=seq, at_ms=0, event=event, hash=b"")
            for seq, event in enumerate(told, start=1)
        ]
        found = Escalations(ReplayedHistory(recorded), clock=FakeClock()).find(call)  # type: ignore[arg-type]
        assert isinstance(found, Ruling)
        assert found.verdict == verdict


async def test_a_fork_knows_what_came_from_the_file_and_what_was_said_here(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    session = await here.create(policy=STAGES, needs_model=False)
    await session.execute("1")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=STAGES, needs_model=False)
    await again.execute("2")
    ended = imported_through(await there.store.read(again.id))
    for turn, through in ((2, ended), (1, None)):
        fork = await there.fork(again.id, at=turn, policy=STAGES, needs_model=False)
        recorded = await there.store.read(fork.id)
        opening = next(entry.seq for entry in recorded if entry.session == fork.id)
        assert imported_through(recorded) == (through or opening)


OUT_OF_ORDER: dict[str, Callable[[list[Event]], list[Event]]] = {
    "a restore point in a later turn": lambda events: [
        *events,
        CodePosted(turn=2, code="box.put()", language="python", principal=PERSON),
        RestorePointMade(turn=1, manifest=digest_bytes(b"{}")),
    ],
    "a question of a turn that has not begun": lambda events: [*events, asked(2)],
    "a call of no turn": lambda events: [
        *events,
        EscalationOpened(
            escalation=msgspec.structs.replace(
                asked(1).escalation, call=msgspec.structs.replace(asked(1).escalation.call, id=CallId("x"))
            )
        ),
    ],
}


@pytest.mark.promise("P11")
@pytest.mark.parametrize("order", OUT_OF_ORDER)
async def test_a_file_whose_events_belong_to_another_turn_is_refused(
    here: Runtime, there: Runtime, tmp_path: Path, order: str
) -> None:
    session = await here.create(policy=ASKS, needs_model=False)
    await session.execute("1")
    await here.snapshot(session.id, tmp_path / "session.zip")
    with pytest.raises(JournalDamaged):
        await there.restore(_changed(tmp_path / "session.zip", OUT_OF_ORDER[order]), needs_model=False)


async def test_a_file_chooses_no_sandbox_and_offers_no_commits(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    session = await here.create(policy=ASKS, sandbox="lisp", needs_model=False)
    await session.execute("1")
    await here.snapshot(session.id, tmp_path / "session.zip")
    offer = CommitsProposed(ref="refs/heads/main", head="0" * 40, commits=("a fix",), paths=("README.md",))
    file = _changed(tmp_path / "session.zip", lambda events: [*events, offer])
    again = await there.restore(file, needs_model=False)
    assert again.status.sandbox == ""
    assert again.offered_commits() == ()


PUT_ONCE = FunctionToolset({PUT.name: (PUT, lambda _: "done")})


async def test_f07_variables_of_a_snapshot_are_rebuilt_without_repeating_a_call(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    allow = FixedPolicy(default="allow")
    session = await here.create(policy=allow, toolsets=[PUT_ONCE], needs_model=False)
    await session.execute("def double(n):\n    return 2 * n\nn = [20, box.put()]")
    await session.execute("open('a.txt', 'w').write('x')\nn.append(double(n[0]))\nm = open('a.txt').read()")
    await session.execute("this does not parse")
    await here.snapshot(session.id, tmp_path / "session.zip")
    box = FunctionToolset({PUT.name: (PUT, lambda _: "again")})
    again = await there.restore(tmp_path / "session.zip", policy=allow, toolsets=[box], needs_model=False)
    again.workspace.delete("a.txt")
    assert await again.execute("[n, m, double(4)]") == Ok(value=[[20, "done", 40], "x", 8])
    assert box.performed == [], "no call was made again"
    assert not again.workspace.exists("a.txt"), "and no file was written again"
    assert "variables-rebuilt" in [note.code for note in again.diagnostics()]
    await again.close()
    later = await there.resume(again.id, policy=allow, needs_model=False)
    assert await later.execute("double(21)") == Ok(value=42), "from here on they are its own"


async def test_f07_definitions_and_facts_of_lisp_are_rebuilt(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    allow = FixedPolicy(default="allow")
    session = await here.create(policy=allow, sandbox="lisp", needs_model=False)
    await session.execute('(define (twice n) (* 2 n)) (assert \'(checked "a"))')
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(tmp_path / "session.zip", policy=allow, sandbox="lisp", needs_model=False)
    assert await again.execute('(list (twice 21) (fact? \'(checked "a")))') == Ok(value=[42, True])


async def test_f07_variables_that_cannot_be_rebuilt_are_reported_and_the_session_continues(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    session = await here.create(policy=FixedPolicy(default="allow"), toolsets=[PUT_ONCE], needs_model=False)
    await session.execute("n = box.put()")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(
        tmp_path / "session.zip", policy=STAGES, needs_model=False
    )  # without the tool
    assert await again.execute("m = 1\nm") == Ok(value=1)
    assert "variables-lost" in [note.code for note in again.diagnostics()]
    assert await again.execute("m + 1") == Ok(value=2), "what it makes here it keeps"


async def test_a_snapshot_does_not_replace_an_existing_session(here: Runtime, tmp_path: Path) -> None:
    session = await here.create(policy=STAGES, needs_model=False)
    await here.snapshot(session.id, tmp_path / "session.zip")
    with pytest.raises(SessionExists):
        await here.restore(tmp_path / "session.zip", policy=STAGES, needs_model=False)


async def test_a_file_can_not_raise_the_budget_of_this_data_directory(here: Runtime, tmp_path: Path) -> None:
    session = await here.create(
        policy=FixedPolicy(default="allow"), needs_model=False, budget="calls=50,tokens=9"
    )
    for source in ("1", "2"):
        await session.execute(source)
    await session.raise_budget(Limits(calls=5000, tokens=9))
    await here.snapshot(session.id, tmp_path / "session.zip")
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "config.toml").write_text("[budget]\ncalls = 3\n")
    there = await Runtime.start(home=tmp_path / "there", clock=FakeClock())
    allow = FixedPolicy(default="allow")
    again = await there.restore(tmp_path / "session.zip", policy=allow, needs_model=False)
    assert again.budget.limits == Limits(calls=3, tokens=9)
    fork = await there.fork(again.id, policy=allow, needs_model=False)
    assert fork.budget.limits == Limits(calls=3, tokens=9)
    early = await there.fork(again.id, at=1, policy=allow, needs_model=False)
    assert early.budget.limits == Limits(calls=3, tokens=9), "a fork from before the import has no more"
    assert limits_of_tree(again.recorded) == limits_of_tree(early.recorded) == Limits(calls=3, tokens=9)
    assert share_of(again.id, again.recorded).added == Limits(), "what the file added does not count"
    await again.rewind(1)
    assert again.budget.limits == Limits(calls=3, tokens=9), "a rewind before the import changes nothing"
    await again.raise_budget(Limits(calls=8, tokens=9))
    assert again.budget.limits.calls == 8
    await there.close()


async def test_a_rewind_before_the_import_leaves_the_session_in_its_own_folder(
    here: Runtime, there: Runtime, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    session = await here.create(policy=FixedPolicy(default="allow"), needs_model=False, workspace=project)
    await session.execute("open('a.txt', 'w').write('one')")
    await session.execute("open('a.txt', 'w').write('two')")
    await here.snapshot(session.id, tmp_path / "session.zip")
    again = await there.restore(
        tmp_path / "session.zip", policy=FixedPolicy(default="allow"), needs_model=False
    )
    await again.rewind(1)
    await again.close()
    once_more = await there.resume(again.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert files(once_more) == {"a.txt": b"one"}
    assert (project / "a.txt").read_text() == "two"
