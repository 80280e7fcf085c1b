"""Commands about a session that another process holds: the holder applies them, and they report the result."""

import asyncio
import io
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gate.command_runner import Terminal

from holdfast.app import Runtime
from holdfast.core import Limits, Nonconverged, Ok, Response
from holdfast.core.events import GrantGiven
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return Terminal(tmp_path / "home", capsys)


def live(
    terminal: Terminal, work: Callable[[Session], Awaitable[None]], *, limits: Limits | None = None
) -> None:
    """Do something with a session that is held for as long as that takes."""

    async def run() -> None:
        settings = Settings(turn_budget=Limits(calls=3))
        runtime = await Runtime.start(home=terminal.home, settings=settings)
        try:
            verdicts = {"world.list": "allow", "world.read": "deny"}
            session = await runtime.create(
                policy=FixedPolicy(default="escalate", verdicts=verdicts),  # type: ignore[arg-type]
                needs_model=False,
                sandbox="lisp",
                limits=limits,
            )
            await work(session)
        finally:
            await runtime.close()

    asyncio.run(run())


def lists(times: int) -> str:
    return " ".join(["(world/list)"] * times)


def test_a_limit_can_be_raised_while_another_process_holds_the_session(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        assert isinstance(await session.execute(lists(2), language="lisp"), Nonconverged)
        await terminal.beside("budget", "add", session.id, "calls=1")
        assert "in use" in terminal.said
        shown: dict[str, Any] = {"requests": 1}
        async with asyncio.timeout(60):
            while shown["requests"]:  # the process that holds the session applies it by itself
                shown = json.loads(await terminal.beside("budget", "show", session.id, "--json"))
        assert shown["limits"]["calls"] == 2
        assert isinstance(await session.advance(), Ok)

    live(terminal, work, limits=Limits(calls=1))


def test_budget_add_resumes_a_turn_stopped_by_a_turn_limit(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        assert await session.execute(lists(4), language="lisp") == Nonconverged(
            reason="budget", dimension="calls"
        )
        await terminal.beside("budget", "add", session.id, "tokens=5", code=2)
        assert "nothing can be added to it" in terminal.said
        await terminal.beside("budget", "add", session.id, "calls=1")
        assert isinstance(await session.advance(), Ok)

    live(terminal, work)


def test_a_limit_raised_while_no_process_holds_the_session_applies_at_once(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        await session.execute(lists(2), language="lisp")

    live(terminal, work, limits=Limits(calls=1))
    [line] = json.loads(terminal("sessions", "--json"))
    terminal("budget", "add", line["id"], "calls=1")
    assert "resume a turn that reached its limit with" in terminal.said
    assert json.loads(terminal("budget", "--json"))["limits"]["calls"] == 2
    assert not (terminal.home / "sessions" / line["id"] / "inbox").exists()


def test_a_grant_of_a_live_session_can_be_revoked_from_another_process(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        await session.execute('(world/write "a.txt" "1")', language="lisp")
        [waits] = session.escalations()
        await session.resolve(waits.id, Response(verdict="approve", scope="session"))
        await session.advance()
        await session.execute('(world/write "a.txt" "2")', language="lisp")
        assert session.escalations() == ()
        [grant] = json.loads(await terminal.beside("grants", "--json"))
        await terminal.beside("grants", "revoke", grant["grant"]["id"])
        assert "in use" in terminal.said
        await session.execute('(world/write "a.txt" "3")', language="lisp")
        assert len(session.escalations()) == 1

    live(terminal, work)


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_answering_a_live_session_reports_that_the_answer_was_applied(terminal: Terminal, word: str) -> None:
    async def work(session: Session) -> None:
        await session.execute('(world/write "a.txt" "1")', language="lisp")
        await terminal.beside(word)
        assert f"accepted it: {word}" in terminal.said
        assert session.escalations() == ()

    live(terminal, work)


def test_a_grant_given_to_a_live_session_applies_there(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        await session.execute('(world/write "a.txt" "1")', language="lisp")
        await terminal.beside("approve", "--for", "times=3")
        async for entry in session.events():
            if isinstance(entry.event, GrantGiven):
                break
        [grant] = session.grants()
        assert (grant.scope, grant.uses_left) == ("times", 2)

    live(terminal, work)


def test_approving_after_another_answer_is_reported(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        await session.execute('(world/write "a.txt" "1")', language="lisp")
        [waits] = session.escalations()
        await session.resolve(waits.id, Response(verdict="deny"))
        await terminal.beside("approve", waits.id, code=1)
        assert "it was answered, it expired, or the id is wrong" in terminal.said

    live(terminal, work)


def test_approval_channel_a_call_too_long_to_show_is_not_approved_unseen(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        lines = "\n".join(["harmless"] * 300)
        await session.execute(f'(world/write "a.txt" "{lines}\nrm -rf")', language="lisp")
        await terminal.beside("approve", code=2)
        assert "a call must be seen to be approved" in terminal.said
        assert len(session.escalations()) == 1
        assert "rm -rf" in await terminal.beside("waiting"), "all of it can be read"
        await terminal.beside("approve", "--whole")
        assert session.escalations() == ()

    live(terminal, work)


def test_approval_channel_characters_that_hide_or_reorder_text_are_escaped(terminal: Terminal) -> None:
    async def work(session: Session) -> None:
        await session.execute('(world/write "a.txt" "a\u202etxt.exe\u200b")', language="lisp")
        shown = await terminal.beside("waiting")
        assert "<U+202E>" in shown
        assert not {"\u202e", "\u200b"} & set(shown)
        await terminal.beside("approve")
        assert not {"\u202e", "\u200b"} & set(terminal.said)

    live(terminal, work)
