"""The contract of every transport, tested with the scripted one and the terminal."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.cli.chat.chat import Chat
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.line_editor import PlainLines
from holdfast.cli.terminal.screen import PlainScreen
from holdfast.core import Ok
from holdfast.core.errors import StoreUnavailable
from holdfast.core.events import MessagePosted, TurnEnded
from holdfast.models import ScriptedModel
from holdfast.session import Session, Settings
from holdfast.session.restore_points import TurnRestorePoints
from holdfast.testing import ScriptedTransport

Run = Callable[[Runtime, Session, list[str]], Awaitable[int]]


async def _scripted(runtime: Runtime, session: Session, messages: list[str]) -> int:
    return await ScriptedTransport(messages).run(session)


async def _terminal(runtime: Runtime, session: Session, messages: list[str]) -> int:
    """A user who types one line after another and leaves after the last answer."""
    reading, writing = os.pipe()
    answered: asyncio.Queue[None] = asyncio.Queue()
    session.follow(lambda entry: answered.put_nowait(None) if isinstance(entry.event, TurnEnded) else None)
    lines = LineKeyboard(reading, write=lambda _: None)
    screen = PlainScreen()
    chat = Chat(runtime=runtime, screen=screen, keyboard=lines)
    chat.source = PlainLines(screen, lines)
    chat_task = asyncio.create_task(chat.run(session))
    for message in messages:
        os.write(writing, f"{message}\n".encode())
        await answered.get()
    os.close(writing)
    try:
        return await chat_task
    finally:
        os.close(reading)


TRANSPORTS: dict[str, Run] = {"script": _scripted, "terminal": _terminal}


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_a_transport_sends_messages_in_order_under_its_name_and_releases_the_session(
    runtime: Runtime, name: str
) -> None:
    session = await runtime.create(model=ScriptedModel(["one.", "two.", "three."]))
    assert await TRANSPORTS[name](runtime, session, ["first", "second"]) == 0
    posted = [e.event for e in session._journal.recorded if isinstance(e.event, MessagePosted)]
    assert [(event.text, event.transport) for event in posted] == [("first", name), ("second", name)]
    assert [turn.outcome for turn in session.history()] == [Ok(value="one."), Ok(value="two.")]
    assert await session.send("third") == Ok(value="three."), "a transport that left holds nothing"


async def test_a_slash_command_waits_for_the_restore_point_of_a_turn_that_has_answered(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    saving, saved = asyncio.Event(), asyncio.Event()
    make = TurnRestorePoints.make

    async def make_late(points: TurnRestorePoints, turn: int) -> None:
        saving.set()
        await saved.wait()
        await make(points, turn)

    monkeypatch.setattr(TurnRestorePoints, "make", make_late)
    monkeypatch.setattr("holdfast.cli.chat.chat._TURN_CLOSE_SECONDS", 0.0)
    session = await runtime.create(model=ScriptedModel(["Done."]))
    reading, writing = os.pipe()
    lines, screen = LineKeyboard(reading, write=lambda _: None), PlainScreen()
    chat = Chat(runtime=runtime, screen=screen, keyboard=lines)
    chat.source = PlainLines(screen, lines)
    chat_task = asyncio.create_task(chat.run(session))
    os.write(writing, b"hello\n")
    await saving.wait()
    waiting = asyncio.create_task(chat.wait_until_idle())
    for _ in range(50):
        await asyncio.sleep(0)
    assert not waiting.done()
    saved.set()
    assert await waiting
    os.close(writing)
    assert await chat_task == 0
    os.close(reading)


async def test_a_turn_is_shown_as_starting_while_the_first_restore_point_is_made(
    runtime: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    making, made = asyncio.Event(), asyncio.Event()

    async def fail_late(points: TurnRestorePoints, turns: int) -> None:
        making.set()
        await made.wait()
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(TurnRestorePoints, "make_missing", fail_late)
    session = await runtime.create(model=ScriptedModel(["Done."]))
    reading, writing = os.pipe()
    lines, screen = LineKeyboard(reading, write=lambda _: None), PlainScreen()
    chat = Chat(runtime=runtime, screen=screen, keyboard=lines)
    chat.source = PlainLines(screen, lines)
    chat_task = asyncio.create_task(chat.run(session))
    os.write(writing, b"hello\n")
    await making.wait()
    assert "starting" in chat.status()
    made.set()
    os.close(writing)
    assert await chat_task == 0
    assert chat.activity.doing == ""
    os.close(reading)
