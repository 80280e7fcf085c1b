"""What every transport promises, over the scripted twin and the terminal: words in under its name, outcomes out, nothing held."""

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
from holdfast.core.events import MessagePosted, TurnEnded
from holdfast.models import ScriptedModel
from holdfast.session import Session, Settings
from holdfast.testing import ScriptedTransport

Run = Callable[[Runtime, Session, list[str]], Awaitable[int]]


async def _scripted(runtime: Runtime, session: Session, messages: list[str]) -> int:
    return await ScriptedTransport(messages).run(session)


async def _terminal(runtime: Runtime, session: Session, messages: list[str]) -> int:
    """A person who types one line after the other and leaves when the last is answered."""
    reading, writing = os.pipe()
    answered: asyncio.Queue[None] = asyncio.Queue()
    session.follow(lambda entry: answered.put_nowait(None) if isinstance(entry.event, TurnEnded) else None)
    lines = LineKeyboard(reading, write=lambda _: None)
    screen = PlainScreen()
    talk = Chat(runtime=runtime, screen=screen, keyboard=lines)
    talk.source = PlainLines(screen, lines)
    talking = asyncio.create_task(talk.run(session))
    for message in messages:
        os.write(writing, f"{message}\n".encode())
        await answered.get()
    os.close(writing)
    try:
        return await talking
    finally:
        os.close(reading)


TRANSPORTS: dict[str, Run] = {"script": _scripted, "terminal": _terminal}


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    started = await Runtime.start(home=tmp_path / "home", settings=Settings())
    yield started
    await started.close()


@pytest.mark.parametrize("name", TRANSPORTS)
async def test_messages_go_in_in_order_under_the_transports_name_and_the_session_stays(
    runtime: Runtime, name: str
) -> None:
    session = await runtime.create(model=ScriptedModel(["one.", "two.", "three."]))
    assert await TRANSPORTS[name](runtime, session, ["first", "second"]) == 0
    posted = [e.event for e in session._journal.recorded if isinstance(e.event, MessagePosted)]
    assert [(event.text, event.transport) for event in posted] == [("first", name), ("second", name)]
    assert [turn.outcome for turn in session.history()] == [Ok(value="one."), Ok(value="two.")]
    assert await session.send("third") == Ok(value="three."), "a transport that left holds nothing"
