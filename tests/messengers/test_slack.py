"""Conversations over Slack's HTTP API and socket mode, with real sessions behind the bridge."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, prepared, runs

pytest.importorskip("slack_sdk")

from tests.support.slack_standin import APP_TOKEN, BOT_TOKEN, SlackStandIn, slack_standin

from holdfast.app import Runtime
from holdfast.core import FakeClock
from holdfast.core.events import EscalationAnswered, Event, MessagePosted
from holdfast.gate import WebAddress, published_address
from holdfast.messengers import Bridge
from holdfast.messengers.slack import Slack
from holdfast.session import Settings, SlackSettings


@pytest.fixture
async def slack() -> AsyncIterator[SlackStandIn]:
    async with slack_standin() as standin:
        yield standin


@asynccontextmanager
async def bridge_to(slack: SlackStandIn, home: Path) -> AsyncIterator[Runtime]:
    """A process that serves the app until the block ends."""
    settings = SlackSettings(
        bot_token=BOT_TOKEN,
        app_token=APP_TOKEN,
        members={"U7": "anna", "U8": "ben"},
        workspace=str(home / "work"),
        policy=str(home / "asking.yaml"),
        model=f"scripted:{home / 'script.json'}",
        messages_per_minute=1000,
    )
    runtime = await Runtime.start(home=home / "holdfast", settings=Settings(), servers=())
    messenger = Slack(BOT_TOKEN, APP_TOKEN, base_url=slack.http.url)
    bridge = Bridge("team", messenger, settings, runtime=runtime, clock=FakeClock())
    serving = asyncio.create_task(bridge.run())
    try:
        await slack.until(lambda it: bool(it.connections))
        yield runtime
        assert not serving.done(), serving
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        await runtime.close()


async def events(runtime: Runtime) -> list[Event]:
    [summary] = await runtime.store.sessions()
    return [entry.event for entry in await runtime.store.read(summary.id)]


async def test_a_thread_is_a_session_and_replies_stay_in_it(slack: SlackStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, "Hello <!channel> & all.", "Still here.")
    async with bridge_to(slack, tmp_path) as runtime:
        thread = await slack.write("<@BOT> hi")
        await slack.until(lambda it: "Hello <!channel> & all." in it.texts())
        await slack.write("are you there?", user="U8", thread=thread)
        await slack.until(lambda it: "Still here." in it.texts())
        posted = [each for each in await events(runtime) if isinstance(each, MessagePosted)]
    assert [(each.text, each.principal) for each in posted] == [
        ("hi", "person:anna"),
        ("are you there?", "person:ben"),
    ]
    assert {fields["thread_ts"] for _, fields in slack.sent} == {thread}
    # Nothing that an agent writes mentions anybody.
    assert all("<!" not in fields["text"] for _, fields in slack.sent)
    assert slack.unconfirmed == {}


async def test_a_button_approves_once_and_a_stranger_cannot(slack: SlackStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    async with bridge_to(slack, tmp_path) as runtime:
        await slack.write("remove it", user="U666")
        thread = await slack.write("remove it")
        question, buttons = await slack.question("delete")
        await slack.press(buttons["Approve once"], question, user="U666", thread=thread)
        await slack.press(buttons["Approve once"] + "0", question, thread=thread)
        await slack.until(lambda it: any("no longer waits" in text for text in it.texts()))
        assert (tmp_path / "work" / "a.txt").exists()
        await slack.press(buttons["Approve once"], question, user="U8", thread=thread)
        await slack.until(lambda it: "Gone." in it.texts())
        [answered] = [each for each in await events(runtime) if isinstance(each, EscalationAnswered)]
    assert (answered.principal, answered.transport) == ("person:ben", "team")
    assert any(
        method == "chat.update" and "Approved once by ben" in text
        for (method, _), text in zip(slack.sent, slack.texts(), strict=True)
    )


@pytest.mark.parametrize("lines", [2, 2000])
async def test_a_call_that_cannot_be_shown_whole_is_approved_only_on_the_page(
    slack: SlackStandIn, tmp_path: Path, lines: int
) -> None:
    prepared(tmp_path, runs(f"with open('b.txt', 'w') as f:\n    f.write('line\\n' * {lines})"), "Denied.")
    policy = tmp_path / "asking.yaml"
    policy.write_text(policy.read_text().replace("stage: world.write", "escalate: world.write"))
    async with bridge_to(slack, tmp_path) as runtime:
        with published_address(runtime.home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
            await slack.write("write it")
            _, buttons = await slack.question("http://127.0.0.1:1/#/s/team-")
    assert set(buttons) == ({"Approve once", "Deny"} if lines == 2 else {"Deny"})


async def test_edits_and_repetitions_change_nothing(slack: SlackStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, "One.", "Two.")
    async with bridge_to(slack, tmp_path) as runtime:
        thread = await slack.write("count")
        await slack.write("count", ts=thread, type="app_mention")
        await slack.write("count down", ts=thread, subtype="message_changed")
        await slack.write("beep", bot_id="B1", thread=thread)
        await slack.write("count on", thread=thread)
        await slack.until(lambda it: "Two." in it.texts())
        posted = [each for each in await events(runtime) if isinstance(each, MessagePosted)]
    assert [each.text for each in posted] == ["count", "count on"]


async def test_a_long_diff_is_a_file_and_a_command_answers(slack: SlackStandIn, tmp_path: Path) -> None:
    write = "with open('b.txt', 'w') as f:\n    f.write('line\\n' * 2000)"
    prepared(tmp_path, runs(write), "Written.")
    async with bridge_to(slack, tmp_path):
        await slack.write("write a lot")
        await slack.until(lambda it: bool(it.files))
        await slack.command("sessions")
        await slack.until(lambda it: any("team-C1" in text for text in it.texts()))
    assert slack.files[0].count(b"+line") == 2000


async def test_a_lost_connection_loses_no_message_and_no_token_is_logged(
    slack: SlackStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepared(tmp_path, "One.", "Two.")
    caplog.set_level(logging.DEBUG)
    async with bridge_to(slack, tmp_path):
        thread = await slack.write("first")
        await slack.until(lambda it: "One." in it.texts())
        await slack.drop_connections()
        await slack.write("second", thread=thread)
        await slack.until(lambda it: "Two." in it.texts())
    assert BOT_TOKEN not in caplog.text
    assert APP_TOKEN not in caplog.text
