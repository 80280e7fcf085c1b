"""Teams that ask each other in the middle of answering: loops end, deadlocks are refused, and everybody gets an answer."""

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


class Chatty:
    """Members that hand questions on: `text` is the way still to go, as names with spaces between."""

    def __init__(self) -> None:
        self.broker: Broker | None = None
        self.program = ScriptedProgram(self.answer)
        self.receivers: dict[str, str] = {}

    async def answer(self, message: TeamMessage, heard: object, on_call: OnCall) -> str:
        assert self.broker is not None
        here, *way = message.text.split(" ")
        if not way:
            return "end"
        await asyncio.sleep(0)
        thread, _, _ = here.partition("@")
        within = self.broker.session_id(
            Pair(sender=message.sender, receiver=here.split("@")[-1], thread=thread if "@" in here else "")
        )
        there = way[0]
        thread = there.split("@")[0] if "@" in there else ""
        reply = await self.broker.ask(
            here.split("@")[-1], there.split("@")[-1], " ".join(way), thread=thread, asking_session=within
        )
        return f"{there}: {code(reply)} {reply.text}"


async def start(chatty: Chatty, broker: Broker, way: str) -> TeamReply:
    chatty.broker = broker
    return await broker.ask(EXTERNAL_SENDER, way.split(" ")[0], way)


async def test_a_chain_of_questions_is_answered_at_its_end(tmp_path: Path) -> None:
    chatty = Chatty()
    on = roster("a", "b", "c", project=str(tmp_path))
    async with team_broker(tmp_path, on, program=chatty.program) as broker:
        reply = await start(chatty, broker, "a b c")
    assert reply.text == "b: ok c: ok end"


async def test_a_question_that_waits_for_itself_is_refused_and_the_rest_is_answered(tmp_path: Path) -> None:
    chatty = Chatty()
    on = roster("a", "b", project=str(tmp_path))
    async with team_broker(tmp_path, on, program=chatty.program) as broker:
        reply = await start(chatty, broker, "a b a b a")
    # external->a, a->b and b->a are three sessions; a->b a second time would wait for itself.
    assert reply.text == "b: ok a: ok b: would-deadlock "


async def test_a_question_is_not_handed_on_for_ever(tmp_path: Path) -> None:
    chatty = Chatty()
    on = roster("a", "b", project=str(tmp_path), settings={"max_hops": 3})
    async with team_broker(tmp_path, on, program=chatty.program) as broker:
        reply = await start(chatty, broker, "a t1@b t2@a t3@b t4@a t5@b")
    assert reply.text == "t1@b: ok t2@a: ok t3@b: ok t4@a: too-many-hops ", "three times is not too often"


async def test_a_full_pool_in_which_one_still_works_is_waited_for(tmp_path: Path) -> None:
    chatty, begun, may_end = Chatty(), asyncio.Event(), asyncio.Event()

    async def answer(message: TeamMessage, heard: object, on_call: OnCall) -> str:
        if message.text != "long":
            return await chatty.answer(message, heard, on_call)
        begun.set()
        await may_end.wait()
        return "at last"

    on = roster("a", "b", "c", project=str(tmp_path), settings={"max_processes": 2})
    async with team_broker(tmp_path, on, program=ScriptedProgram(answer)) as broker:
        long = asyncio.create_task(broker.ask(EXTERNAL_SENDER, "c", "long"))
        await begun.wait()
        asking = asyncio.create_task(start(chatty, broker, "a b"))
        while len(broker.pool.busy()) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0)
        may_end.set()
        assert (await asking).text == "b: ok end"
        assert (await long).text == "at last"


async def test_a_full_pool_in_which_everybody_waits_says_so_at_once(tmp_path: Path) -> None:
    chatty = Chatty()
    on = roster("a", "b", "c", project=str(tmp_path), settings={"max_processes": 2})
    async with team_broker(tmp_path, on, program=chatty.program) as broker:
        reply = await start(chatty, broker, "a b c")
    assert reply.text == "b: ok c: pool-full "


@pytest.mark.parametrize("seed", range(3))
async def test_hundreds_of_teams_asking_at_random_all_get_an_answer(tmp_path: Path, seed: int) -> None:
    await simulate(tmp_path, seed, teams=200, questions=250, places=12)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 130))
async def test_no_seed_finds_a_wait_without_end(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    await simulate(
        tmp_path,
        seed,
        teams=chance.choice([3, 20, 500]),
        questions=chance.choice([50, 500]),
        places=chance.choice([2, 3, 12, 40]),
        seconds=500,
    )


async def simulate(
    tmp_path: Path, seed: int, *, teams: int, questions: int, places: int, seconds: float = 50
) -> None:
    """Questions that are handed on at random, half of them among a few teams, some in threads, some given up by who asked."""
    chance = random.Random(seed)
    chatty = Chatty()
    names = [f"t{n}" for n in range(teams)]
    on = roster(*names, project=str(tmp_path), settings={"max_processes": places, "queue_seconds": 3000.0})

    def stop() -> str:
        name = chance.choice(names[:6] if chance.random() < 0.5 else names)
        return f"x{chance.randrange(3)}@{name}" if chance.random() < 0.2 else name

    def way() -> str:
        return " ".join([chance.choice(names), *(stop() for _ in range(chance.randrange(8)))])

    async with team_broker(tmp_path, on, program=chatty.program, clock=FakeClock()) as broker:
        asking = [asyncio.create_task(start(chatty, broker, way())) for _ in range(questions)]
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
    assert chatty.program.max_running <= places
