"""What carries a journal carries its labels: resume, fork, rewind, compaction, snapshots, files."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from tests.session.label_setup import POLICY, Desk, asked, desk_policy, desk_session, levels_of
from tests.teams.team_broker import roster, team_broker

from holdfast.app import Runtime
from holdfast.core import EXTERNAL, PERSON, Call, Json, Needs, Response, Returned, named_person
from holdfast.guests import python_engine
from holdfast.models import Reply, ScriptedModel, ScriptedReply, say, use
from holdfast.session import Session
from holdfast.teams import Broker, ScriptedProgram, TeamMessage
from holdfast.teams.toolset import TeamsToolset
from holdfast.testing import memory_session

if TYPE_CHECKING:
    from tests.support.postgres import Databases

READ = "m = mail.search(query='bill')[0]\nok = m['sender']\nbad = m['body'].split()[1]"
SHOW = "print(m['body'])"
PAY = "paid = bank.pay(to='DE11', amount=1)"
USE = "mail.send(to=ok, body='hi')\nbank.pay(to=bad, amount=1)"


def _code(text: str) -> Reply:
    return use("execute_code", {"code": text})


@pytest_asyncio.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "home")
    yield runtime
    await runtime.close()


async def _open(runtime: Runtime, desk: Desk, *programs: str) -> Session:
    """A session that has run each program in a turn of its own."""
    replies: list[ScriptedReply] = [each for code in programs for each in (_code(code), "Done.")]
    session = await runtime.create(
        model=ScriptedModel(replies), policy=desk_policy(), toolsets=[desk.toolset], can_ask=False
    )
    for _ in programs:
        await session.send("Go on.")
    return session


async def _asks(session: Session) -> list[str]:
    """What the next program asks about."""
    before = len(asked(session))
    await session.send("And this.")
    return asked(session)[before:]


def _then(*programs: str) -> ScriptedModel:
    """A model that answers the next turns of a session, however long it already is."""
    waiting = [each for code in programs for each in (_code(code), "Done.")]

    def reply(_: object) -> Reply:
        return next_reply(waiting)

    return ScriptedModel([reply] * 40)


def next_reply(waiting: list[Reply | str]) -> Reply:
    reply = waiting.pop(0)
    return say(reply) if isinstance(reply, str) else reply


async def test_a_resumed_session_has_the_levels_of_its_variables_and_of_its_author(runtime: Runtime) -> None:
    desk = Desk()
    session = await _open(runtime, desk, READ)
    await session.close()
    options = {"policy": desk_policy(), "toolsets": [desk.toolset], "can_ask": False}
    session = await runtime.resume(session.id, model=_then(USE, SHOW, PAY), **options)  # type: ignore[arg-type]
    assert await _asks(session) == ["bank.pay"]
    assert await _asks(session) == []
    assert await _asks(session) == ["bank.pay"]
    await session.close()
    session = await runtime.resume(session.id, model=_then(PAY), **options)  # type: ignore[arg-type]
    assert await _asks(session) == ["bank.pay"]


async def test_a_fork_and_a_rewind_before_a_strangers_words_give_the_author_its_level_back(
    runtime: Runtime,
) -> None:
    desk = Desk()
    session = await _open(runtime, desk, READ, SHOW)
    options = {"toolsets": [desk.toolset], "can_ask": False}
    fork = await runtime.fork(session.id, at=1, model=_then(PAY, USE), policy=desk_policy(), **options)  # type: ignore[arg-type]
    assert await _asks(fork) == []
    assert await _asks(fork) == ["bank.pay"]
    await session.close()
    session = await runtime.resume(session.id, model=_then(PAY, PAY), policy=desk_policy(), **options)  # type: ignore[arg-type]
    assert await _asks(session) == ["bank.pay"]
    await session.rewind(1)
    assert await _asks(session) == []


async def test_a_session_in_postgresql_has_the_levels_of_its_journal_in_another_process(
    tmp_path: Path, postgres_databases: "Databases"
) -> None:
    desk, url = Desk(), await postgres_databases.take()
    try:
        first = await Runtime.start(home=tmp_path / "home", store_url=url)
        session = await _open(first, desk, READ)
        await session.close()
        await first.close()
        second = await Runtime.start(home=tmp_path / "home", store_url=url)
        options = {"policy": desk_policy(), "toolsets": [desk.toolset], "can_ask": False}
        again = await second.resume(session.id, model=_then(USE, SHOW, PAY), **options)  # type: ignore[arg-type]
        assert await _asks(again) == ["bank.pay"]
        assert await _asks(again) == []
        assert await _asks(again) == ["bank.pay"]
        await second.close()
    finally:
        postgres_databases.give_back(url)


@pytest.mark.promise("P20")
async def test_the_words_of_a_file_are_a_strangers_whoever_it_names(runtime: Runtime, tmp_path: Path) -> None:
    desk = Desk()
    session = await _open(runtime, desk, READ)
    await session.close()
    await runtime.snapshot(session.id, tmp_path / "session.zip")
    there = await Runtime.start(home=tmp_path / "other")
    try:
        options = {"policy": desk_policy(), "toolsets": [desk.toolset], "can_ask": False}
        again = await there.restore(tmp_path / "session.zip", model=_then(PAY, PAY), **options)  # type: ignore[arg-type]
        assert await _asks(again) == ["bank.pay"]
        await again.rewind(1)
        assert await _asks(again) == ["bank.pay"]
        fork = await there.fork(again.id, at=1, model=_then(PAY), **options)  # type: ignore[arg-type]
        assert await _asks(fork) == ["bank.pay"]
    finally:
        await there.close()


async def test_a_summary_has_the_lowest_level_of_what_it_covers(runtime: Runtime) -> None:
    desk = Desk()
    session = await _open(runtime, desk, READ, SHOW)
    await session.close()

    def reply(prompt: object) -> Reply:
        return (
            next_reply(["a summary"]) if "Summarize" in getattr(prompt, "system", "") else next_reply(waiting)
        )

    waiting: list[Reply | str] = [_code(PAY), "Done."]
    session = await runtime.resume(
        session.id,
        model=ScriptedModel([reply] * 40),
        policy=desk_policy(),
        toolsets=[desk.toolset],
        can_ask=False,
    )
    await session.compact(keep_turns=0)
    assert await _asks(session) == ["bank.pay"]


async def test_a_file_keeps_the_level_of_what_was_written_into_it(runtime: Runtime) -> None:
    desk = Desk()
    write = "open('note.txt', 'w').write(mail.search(query='bill')[0]['body'])\nopen('own.txt', 'w').write('DE11')"
    read = "bank.pay(to=world.read(path='{}').split()[-1], amount=1)"
    session = await _open(runtime, desk, "open('own.txt', 'w').write('DE11')", read.format("own.txt"), write)
    assert asked(session) == []
    await session.close()
    session = await runtime.resume(
        session.id,
        model=_then(read.format("note.txt")),
        policy=desk_policy(),
        toolsets=[desk.toolset],
        can_ask=False,
    )
    assert await _asks(session) == ["bank.pay"]


async def test_an_approval_after_a_restart_is_judged_by_the_levels_on_record(runtime: Runtime) -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [
        _code("bank.pay(to=mail.search(query='bill')[0]['body'].split()[1], amount=3)"),
        "Done.",
    ]
    session = await runtime.create(
        model=ScriptedModel(replies), policy=desk_policy(), toolsets=[desk.toolset]
    )
    assert isinstance(await session.send("Pay the bill."), Needs)
    await session.close()
    session = await runtime.resume(
        session.id, model=ScriptedModel(replies), policy=desk_policy(), toolsets=[desk.toolset]
    )
    (waiting,) = session.escalations()
    assert levels_of(session, "bank.pay").arguments == {"to": "stranger"}
    await session.resolve(waiting.id, Response(verdict="approve"), principal=PERSON)
    await session.advance()
    assert desk.effects("bank.pay") == [{"to": "DE99", "amount": 3}]


async def test_a_message_of_another_team_is_not_the_persons_word() -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [_code("bank.pay(to='DE99', amount=1)"), "Done."]
    async with desk_session(replies, desk, can_ask=False) as session:
        await session.send("Pay 1 to DE99.", principal=EXTERNAL)
        assert asked(session) == ["bank.pay"]


@pytest.mark.parametrize(("level", "asks"), [("stranger", ["bank.pay"]), ("own", [])])
async def test_the_answer_of_another_team_is_a_strangers_unless_the_policy_names_it(
    tmp_path: Path, level: str, asks: list[str]
) -> None:
    desk, teams = Desk(), roster("a", "b", project=str(tmp_path))
    policy = POLICY.replace("rules:", 'rules:\n  - {name: teams, allow: "teams.*", planned: any}')
    if level == "own":
        policy = policy.replace("own: [calendar.today]", "own: [calendar.today, teams.ask]")

    code = "found = teams.ask(team='b', question='Which account?')\nbank.pay(to=found['text'], amount=1)"
    brokers: list[Broker] = []

    async def answer(message: TeamMessage, *_: object) -> str:
        if message.sender == "a":
            return "DE99"
        within = brokers[0].session_id(teams.pair("external", "a"))
        async with memory_session(
            [_code(code), "Done."],
            policy=desk_policy(policy),
            engine=python_engine(key=b"k" * 32),
            toolsets=[TeamsToolset(brokers[0], team="a", asking_session=within), desk.toolset],
            can_ask=False,
        ) as session:
            await session.send("Ask them, and pay.")
            return ",".join(asked(session))

    async with team_broker(tmp_path, teams, program=ScriptedProgram(answer)) as broker:
        brokers.append(broker)
        assert (await broker.ask("external", "a", "Go.")).text.split() == asks
    assert [each["to"] for each in desk.effects("bank.pay")] == ([] if asks else ["DE99"])


@pytest.mark.parametrize(
    ("opener", "sender", "is_own"),
    [("alice", "alice", True), ("alice", "bob", False), (None, "alice", False), ("alice", None, True)],
)
async def test_the_word_of_a_named_person_counts_in_a_session_of_theirs(
    runtime: Runtime, opener: str | None, sender: str | None, is_own: bool
) -> None:
    desk = Desk()
    replies: list[ScriptedReply] = [_code("bank.pay(to='DE99', amount=1)"), "Done."]
    session = await runtime.create(
        model=ScriptedModel(replies),
        policy=desk_policy(),
        toolsets=[desk.toolset],
        principal=named_person(opener) if opener else PERSON,
    )
    await session.send("Pay 1 to DE99.", principal=named_person(sender) if sender else PERSON)
    assert [each["to"] for each in desk.effects("bank.pay")] == (["DE99"] if is_own else [])


async def test_an_external_agent_passes_only_rules_for_any_author(runtime: Runtime, tmp_path: Path) -> None:
    desk = Desk()
    policy = desk_policy(POLICY.replace("from: {payee: own},", "from: {payee: own}, planned: any,"))
    async with runtime.gate(
        desk.toolset, workspace=tmp_path, transport="test", description="a client", policy=policy
    ) as gate:

        async def call(operation: str, **arguments: Json) -> object:
            made = Call(
                id=await gate.next_call(), operation=operation, arguments=dict(arguments), principal=EXTERNAL
            )
            return await gate.submit(made)

        assert isinstance(await call("mail.search", query="x"), Returned)
        assert not isinstance(await call("bank.pay", to="DE11", amount=1), Returned), "nobody vouches for it"
        await call("bank.history")
        assert isinstance(await call("bank.pay", to="DE11", amount=1), Returned), "it was paid before"
        assert not isinstance(await call("mail.send", to="ann@example.com", body=""), Returned)
    assert [each["to"] for each in desk.effects("bank.pay")] == ["DE11"]


async def test_a_run_without_calls_shows_nothing_of_a_stranger() -> None:
    desk = Desk()
    async with desk_session([_code("x = [1]\nx"), _code(PAY), "Done."], desk, can_ask=False) as session:
        await session.send("Go on.")
        assert asked(session) == []


async def test_a_strangers_words_in_a_file_stay_a_strangers_in_another_session(
    runtime: Runtime, tmp_path: Path
) -> None:
    desk, folder = Desk(), tmp_path / "project"
    folder.mkdir()
    options = {"policy": desk_policy(), "toolsets": [desk.toolset], "can_ask": False, "workspace": folder}
    own, note = (
        "open('own.txt', 'w').write('DE11')",
        "open('note.txt', 'w').write(mail.search(query='bill')[0]['body'])",
    )
    session = await runtime.create(model=_then(own, note), **options)  # type: ignore[arg-type]
    await session.send("Save my account.")
    await session.send("Save the mail.")
    await session.close()
    (folder / "note.txt").rename(folder / "renamed.txt")
    for name, asks in (("own.txt", []), ("renamed.txt", ["bank.pay"])):
        pay = f"paid = bank.pay(to=world.read(path='{name}').split()[-1], amount=1)"
        other = await runtime.create(model=_then(pay), **options)  # type: ignore[arg-type]
        assert await _asks(other) == asks, name
        await other.close()
