"""ACP agents, with a small one of our own as the program."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.teams.team_broker import roster, team_broker

from holdfast.core import Error, Ok, SystemClock, Verdict
from holdfast.store import MemoryStore
from holdfast.teams import Roster, TeamReply

PROGRAM = Path(__file__).with_name("acp_agent.py")


def acp_roster(project: Path, *flags: str, settings: Mapping[str, Any] | None = None, **team: Any) -> Roster:
    project.mkdir(exist_ok=True)
    given = {"program": sys.executable, "arguments": ("-I", str(PROGRAM), *flags), "gate": "asks"}
    return roster("alpha", "beta", project=str(project), settings=settings, member="acp", **(given | team))


async def ask(
    tmp_path: Path, team_roster: Roster, *texts: str, verdicts: Mapping[str, Verdict] | None = None
) -> list[TeamReply]:
    async with team_broker(tmp_path, team_roster, clock=SystemClock(), verdicts=verdicts) as broker:
        return [await broker.ask("alpha", "beta", text) for text in texts]


def code(reply: TeamReply) -> str:
    return reply.outcome.code if isinstance(reply.outcome, Error) else "ok"


async def test_a_conversation_is_kept_and_resumed(tmp_path: Path) -> None:
    clock = SystemClock()
    store, team_roster = MemoryStore(clock=clock), acp_roster(tmp_path / "p")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        first = await broker.ask("alpha", "beta", "the word is kelp")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        reply = await broker.ask("alpha", "beta", "recall")
        (line,) = await broker.sessions()
    assert (first.text, first.usage.input_tokens) == ("echo[1]: the word is kelp", 10)
    assert (reply.text, reply.generation, reply.notes) == ('recall: ["the word is kelp"]', 1, ())
    assert (line.turns, line.tokens) == (2, 24)


async def test_a_conversation_is_found_again_after_its_journal_was_lost(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p")
    await ask(tmp_path, team_roster, "remember")
    (reply,) = await ask(tmp_path, team_roster, "recall")
    assert reply.text == 'recall: ["remember"]'
    assert "found again" in reply.notes[0]


@pytest.mark.parametrize(
    ("flags", "why"), [((), "Resource not found"), (("--forgetful",), "does not support resuming")]
)
async def test_a_conversation_that_cannot_be_resumed_starts_a_new_generation_with_a_note(
    tmp_path: Path, flags: tuple[str, ...], why: str
) -> None:
    team_roster = acp_roster(tmp_path / "p", *flags)
    async with team_broker(tmp_path, team_roster, clock=SystemClock()) as broker:
        await broker.ask("alpha", "beta", "remember")
        await broker.sleep("alpha", "beta")
        for kept in (tmp_path / "teams" / "pairs").glob("*/home/*.received"):
            kept.unlink()
        reply = await broker.ask("alpha", "beta", "recall")
    assert (reply.text, reply.generation) == ("recall: []", 2)
    assert why in reply.notes[0]


async def test_the_gate_answers_every_permission_request(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p")
    yes, no = tmp_path / "p" / "yes", tmp_path / "p" / "no"
    (allowed,) = await ask(tmp_path, team_roster, f"use edit {yes}")
    (denied,) = await ask(tmp_path, team_roster, f"use edit {no}", verdicts={"acp.edit": "deny"})
    (nameless,) = await ask(tmp_path, team_roster, "use edit")
    assert (allowed.text, denied.text, nameless.text) == ("done", "denied", "denied")
    assert yes.exists()
    assert not no.exists()


async def test_an_approval_never_covers_future_calls(tmp_path: Path) -> None:
    file = tmp_path / "p" / "a"
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p"), f"always {file}")
    assert reply.text == "cancelled"
    assert not file.exists()


async def test_tools_used_without_permission_are_reported(tmp_path: Path) -> None:
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p"), f"sneak edit {tmp_path / 'p' / 'a'}")
    assert reply.notes == ("the agent used 1 tool without asking (edit: write)",)


async def test_cancelling_a_turn_releases_a_call_that_waits_for_approval(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p")
    async with team_broker(
        tmp_path, team_roster, clock=SystemClock(), verdicts={"acp.edit": "escalate"}, home=tmp_path / "home"
    ) as broker:
        asking = asyncio.create_task(broker.ask("alpha", "beta", f"use edit {tmp_path / 'p' / 'a'}"))
        async with asyncio.timeout(60):
            while not list((tmp_path / "home").glob("sessions/*/escalations/request-*")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await broker.cancel("alpha", "beta")
        assert code(await asking) == "cancelled"
        after = await broker.ask("alpha", "beta", "there?")
        assert set(broker.pool.states().values()) == {"idle"}
    assert after.text.endswith("there?")


@pytest.mark.parametrize("verb", ["hang", "silent"])
async def test_a_turn_is_cancelled_even_if_the_agent_ignores_it(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if verb == "silent":
        monkeypatch.setattr("holdfast.teams.acp.connection.INTERRUPT_SECONDS", 0.05)
    async with team_broker(tmp_path, acp_roster(tmp_path / "p"), clock=SystemClock()) as broker:
        asking = asyncio.create_task(broker.ask("alpha", "beta", verb))
        async with asyncio.timeout(60):
            while not list((tmp_path / "teams" / "pairs").glob("*/home/hanging")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert await broker.cancel("alpha", "beta")
        assert code(await asking) == "cancelled"
        after = await broker.ask("alpha", "beta", "there?")
    assert after.text.endswith("there?")


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("die", "ended with code 3"),
        ("flood", "was disconnected"),
        ("garble", "sent a broken message and was cut off"),
        ("mode auto", "left the mode"),
    ],
)
async def test_an_agent_that_ends_or_breaks_the_protocol_fails_at_once_and_is_resumed(
    tmp_path: Path, verb: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.teams.members.line_process.MAX_LINE_BYTES", 1 << 20)
    team_roster = acp_roster(tmp_path / "p", "--modes", mode="ask")
    lost, after = await ask(tmp_path, team_roster, verb, "recall")
    assert isinstance(lost.outcome, Error)
    assert lost.outcome.code == "member-lost"
    assert words in lost.outcome.message
    assert after.text == f'recall: ["{verb}"]'


async def test_a_line_that_is_not_a_message_is_skipped(tmp_path: Path) -> None:
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p"), "chatter")
    assert reply.text == "echo[1]: chatter"


async def test_a_silent_agent_is_stopped(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p", settings={"silence_seconds": 0.5})
    (lost,) = await ask(tmp_path, team_roster, "silent")
    assert isinstance(lost.outcome, Error)
    assert "said nothing" in lost.outcome.message


async def test_the_agent_home_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        await ask(tmp_path, acp_roster(tmp_path / "p"), "hello")
    finally:
        os.umask(before)
    ours = [path for path in (tmp_path / "teams").rglob("*") if path.parent.name != "home"]
    assert [path for path in ours if path.stat().st_mode & 0o077] == []
    assert {"pairs", "pair", "tmp"} <= {path.name for path in ours}


async def test_an_agent_sees_none_of_our_environment_and_works_in_its_project(tmp_path: Path) -> None:
    team_roster = acp_roster(tmp_path / "p", environment=("KEY", "ABSENT"), variables={"SET": "x"})
    async with team_broker(
        tmp_path, team_roster, clock=SystemClock(), environ={"KEY": "k", "OTHER": "o"}
    ) as broker:
        seen = (await broker.ask("alpha", "beta", "environment")).text.split()
        where = (await broker.ask("alpha", "beta", "folder")).text
    assert {name for name in seen if not name.startswith(("LC_", "__"))} == {
        *("HOME", "KEY", "LANG", "PATH", "SET", "TMPDIR")
    }
    assert where == str((tmp_path / "p").resolve())


@pytest.mark.parametrize(
    ("flags", "mode", "words"),
    [
        (("--old",), "", "speaks version 7"),
        (("--locked",), "", "Authentication required"),
        (("--modes",), "", "has the modes auto, ask"),
        (("--modes",), "yolo", "has the modes auto, ask"),
        ((), "ask", "has the modes none"),
    ],
)
async def test_an_agent_without_the_required_protocol_login_or_mode_is_refused(
    tmp_path: Path, flags: tuple[str, ...], mode: str, words: str
) -> None:
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p", *flags, mode=mode), "hello")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.code == "member-failed"
    assert words in reply.outcome.message


async def test_a_team_that_wants_every_call_judged_refuses_an_acp_agent(tmp_path: Path) -> None:
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p", gate="every-call"), "hello")
    assert code(reply) == "member-missing"


async def test_the_chosen_mode_is_set(tmp_path: Path) -> None:
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p", "--modes", mode="ask"), "hello")
    assert reply.outcome == Ok(value="echo[1]: hello")


async def test_without_the_library_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("holdfast.teams.acp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "acp", None)
    monkeypatch.setattr("holdfast.teams.acp", None, raising=False)
    (reply,) = await ask(tmp_path, acp_roster(tmp_path / "p"), "hello")
    assert isinstance(reply.outcome, Error)
    assert reply.outcome.hint == "holdfast doctor says how to install it"


async def test_f31_a_full_conversation_continues_in_a_new_one_that_knows_the_summary(tmp_path: Path) -> None:
    clock = SystemClock()
    store, team_roster = MemoryStore(clock=clock), acp_roster(tmp_path / "p", settings={"compact_tokens": 2})
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        for text in ("the word is kelp", "and sand", "and rock"):
            await broker.ask("alpha", "beta", text)
        before = (await broker.history(team_roster.pair("alpha", "beta"))).attached
        reply = await broker.ask("alpha", "beta", "briefing")
        after = await broker.ask("alpha", "beta", "briefing")
        history = await broker.history(team_roster.pair("alpha", "beta"))
        [busy] = (await broker.stats()).pairs
    assert before is not None
    assert history.attached is not None
    assert before.conversation in history.attached.reason
    assert history.attached.conversation != before.conversation
    assert [*(tmp_path / "teams" / "pairs").glob(f"*/home/{before.conversation}.received")], "it is archived"
    assert reply.text == "Summary of what was said before: they said the word is kelp, and sand, and rock"
    assert after.text == "none"
    assert (reply.generation, busy.summaries, history.turns[-2].notes) == (
        1,
        1,
        ("the conversation so far was summarised; its messages stay on record",),
    )


async def test_f31_a_summary_reaches_the_agent_also_after_a_restart(tmp_path: Path) -> None:
    clock = SystemClock()
    store, team_roster = MemoryStore(clock=clock), acp_roster(tmp_path / "p", settings={"compact_tokens": 2})
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        for text in ("the word is kelp", "and sand", "and rock"):
            await broker.ask("alpha", "beta", text)
        failed = await broker.ask("alpha", "beta", "die")
    async with team_broker(tmp_path, team_roster, store=store, clock=clock) as broker:
        reply = await broker.ask("alpha", "beta", "briefing")
    assert isinstance(failed.outcome, Error)
    assert "Summary of what was said before: they said the word is kelp" in reply.text
