"""Teams that ask each other while they answer: cycles end, deadlocks are refused, and every question is answered."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core import Error, FakeClock
from holdfast.teams import EXTERNAL_SENDER, Broker, OnCall, Pair, ScriptedProgram, TeamMessage, TeamReply


def code(reply: TeamReply) -> str:
    return reply.outcome.code if isinstance(reply.outcome, Error) else "ok"


class ForwardingMembers:
    """Members that forward questions: the text lists the remaining teams, separated by spaces."""

    def __init__(self) -> None:
        self.broker: Broker | None = None
        self.program = ScriptedProgram(self.answer)
        self.receivers: dict[str, str] = {}

    async def answer(self, message: TeamMessage, received: object, on_call: OnCall) -> str:
        assert self.broker is not None
        here, *route = message.text.split(" ")
        if not route:
            return "end"
        await asyncio.sleep(0)
        thread, _, _ = here.partition("@")
        session = self.broker.session_id(
            Pair(sender=message.sender, receiver=here.split("@")[-1], thread=thread if "@" in here else "")
        )
        there = route[0]
        thread = there.split("@")[0] if "@" in there else ""
        reply = await self.broker.ask(
            here.split("@")[-1], there.split("@")[-1], " ".join(route), thread=thread, asking_session=session
        )
        return f"{there}: {code(reply)} {reply.text}"


async def start(members: ForwardingMembers, broker: Broker, route: str) -> TeamReply:
    members.broker = broker
    return await broker.ask(EXTERNAL_SENDER, route.split(" ")[0], route)


async def test_a_chain_of_questions_is_answered_at_its_end(tmp_path: Path) -> None:
    members = ForwardingMembers()
    team_roster = roster("a", "b", "c", project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, program=members.program) as broker:
        reply = await start(members, broker, "a b c")
    assert reply.text == "b: ok c: ok end"


async def test_a_question_that_waits_for_itself_is_refused_and_the_others_are_answered(
    tmp_path: Path,
) -> None:
    members = ForwardingMembers()
    team_roster = roster("a", "b", project=str(tmp_path))
    async with team_broker(tmp_path, team_roster, program=members.program) as broker:
        reply = await start(members, broker, "a b a b a")
    # external->a, a->b and b->a are three sessions; a second a->b would wait for itself.
    assert reply.text == "b: ok a: ok b: would-deadlock "


async def test_a_question_is_not_forwarded_endlessly(tmp_path: Path) -> None:
    members = ForwardingMembers()
    team_roster = roster("a", "b", project=str(tmp_path), settings={"max_hops": 3})
    async with team_broker(tmp_path, team_roster, program=members.program) as broker:
        reply = await start(members, broker, "a t1@b t2@a t3@b t4@a t5@b")
    assert reply.text == "t1@b: ok t2@a: ok t3@b: ok t4@a: too-many-hops ", "three times is not too often"


async def test_a_question_waits_while_a_member_of_the_full_pool_still_works(tmp_path: Path) -> None:
    members, started, may_end = ForwardingMembers(), asyncio.Event(), asyncio.Event()

    async def answer(message: TeamMessage, received: object, on_call: OnCall) -> str:
        if message.text != "long":
            return await members.answer(message, received, on_call)
        started.set()
        await may_end.wait()
        return "at last"

    team_roster = roster("a", "b", "c", project=str(tmp_path), settings={"max_processes": 2})
    async with team_broker(tmp_path, team_roster, program=ScriptedProgram(answer)) as broker:
        long = asyncio.create_task(broker.ask(EXTERNAL_SENDER, "c", "long"))
        await started.wait()
        asking = asyncio.create_task(start(members, broker, "a b"))
        while len(broker.pool.busy()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        may_end.set()
        assert (await asking).text == "b: ok end"
        assert (await long).text == "at last"


async def test_a_full_pool_whose_members_all_wait_refuses_at_once(tmp_path: Path) -> None:
    members = ForwardingMembers()
    team_roster = roster("a", "b", "c", project=str(tmp_path), settings={"max_processes": 2})
    async with team_broker(tmp_path, team_roster, program=members.program) as broker:
        reply = await start(members, broker, "a b c")
    assert reply.text == "b: ok c: pool-full "


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2))])
async def test_random_questions_among_hundreds_of_teams_are_all_answered(tmp_path: Path, seed: int) -> None:
    await simulate(tmp_path, seed, teams=200, questions=250, slots=12)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 130))
async def test_no_seed_finds_an_endless_wait(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    await simulate(
        tmp_path,
        seed,
        teams=chance.choice([3, 20, 500]),
        questions=chance.choice([50, 500]),
        slots=chance.choice([2, 3, 12, 40]),
        seconds=500,
    )


async def simulate(
    tmp_path: Path, seed: int, *, teams: int, questions: int, slots: int, seconds: float = 50
) -> None:
    """Forward questions at random: half of them among a few teams, some in threads, some cancelled by the caller."""
    chance = random.Random(seed)
    members = ForwardingMembers()
    names = [f"t{n}" for n in range(teams)]
    team_roster = roster(
        *names, project=str(tmp_path), settings={"max_processes": slots, "queue_seconds": 3000.0}
    )

    def stop() -> str:
        name = chance.choice(names[:6] if chance.random() < 0.5 else names)
        return f"x{chance.randrange(3)}@{name}" if chance.random() < 0.2 else name

    def route() -> str:
        return " ".join([chance.choice(names), *(stop() for _ in range(chance.randrange(8)))])

    async with team_broker(tmp_path, team_roster, program=members.program, clock=FakeClock()) as broker:
        asking = [asyncio.create_task(start(members, broker, route())) for _ in range(questions)]
        for _ in range(5):
            await asyncio.sleep(0)
        for task in asking:
            if chance.random() < 0.05:
                task.cancel()
        async with asyncio.timeout(seconds):  # an undetected deadlock would wait far longer
            replies = await asyncio.gather(*asking, return_exceptions=True)
        assert not broker.pool.busy()
    answered = [reply for reply in replies if isinstance(reply, TeamReply)]
    assert {type(reply) for reply in replies} <= {TeamReply, asyncio.CancelledError}
    assert Counter(code(reply) for reply in answered) == {"ok": len(answered)}
    inside = " ".join(reply.text for reply in answered)
    assert "timeout" not in inside
    if teams == 200:
        assert "would-deadlock" in inside or "pool-full" in inside
    assert members.program.max_running <= slots
