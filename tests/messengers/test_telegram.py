"""Conversations over Telegram's wire, with real sessions behind the bridge."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.cli.terminals import DELETE, prepared, runs
from tests.support.telegram_standin import TOKEN, TelegramStandIn, telegram_standin

from holdfast.app import Runtime
from holdfast.core import FakeClock
from holdfast.core.errors import EscalationUnknown, InvalidConfig
from holdfast.core.events import EscalationAnswered, Event, MessagePosted
from holdfast.gate import WebAddress, published_address
from holdfast.messengers import Bridge, PressedButton, create_messenger
from holdfast.messengers.contract import IncomingMessage
from holdfast.messengers.inbox import Inbox
from holdfast.messengers.telegram import Telegram
from holdfast.session import ChannelSettings, Settings, TelegramSettings
from holdfast.store import private_folder

MEMBER, STRANGER = 7, 666


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramStandIn]:
    async with telegram_standin() as standin:
        yield standin


@asynccontextmanager
async def bridge_to(
    telegram: TelegramStandIn,
    home: Path,
    *,
    per_minute: int = 1000,
    policy: str = "",
    channels: dict[str, ChannelSettings] | None = None,
) -> AsyncIterator[Runtime]:
    """A process that serves the bot until the block ends."""
    settings = TelegramSettings(
        token=TOKEN,
        base_url=telegram.http.url,
        members={str(MEMBER): "anna", "8": "ben"},
        workspace=str(home / "work"),
        policy=policy or str(home / "asking.yaml"),
        model=f"scripted:{home / 'script.json'}",
        messages_per_minute=per_minute,
        channels=channels or {},
    )
    runtime = await Runtime.start(home=home / "holdfast", settings=Settings(), servers=())
    messenger = Telegram(TOKEN, base_url=telegram.http.url, retry_seconds=0.001)
    bridge = Bridge("bot", messenger, settings, runtime=runtime, clock=FakeClock())
    serving = asyncio.create_task(bridge.run())
    try:
        yield runtime
        assert not serving.done(), serving
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving
        await runtime.close()


async def events(runtime: Runtime, session: str = "bot-100-1") -> list[Event]:
    return [entry.event for entry in await runtime.store.read(await runtime.store.find(session))]


async def test_a_message_is_answered_and_the_thread_is_one_session(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, "Hello, Anna.", "Still here.")
    async with bridge_to(telegram, tmp_path) as runtime:
        telegram.write("hi")
        await telegram.until(lambda it: "Hello, Anna." in it.texts())
        telegram.write("are you there?", sender=8)
        await telegram.until(lambda it: "Still here." in it.texts())
        posted = [each for each in await events(runtime) if isinstance(each, MessagePosted)]
    assert [(each.text, each.principal, each.transport) for each in posted] == [
        ("hi", "person:anna", "bot"),
        ("are you there?", "person:ben", "bot"),
    ]


async def test_a_button_approves_once_and_the_record_names_the_member(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    async with bridge_to(telegram, tmp_path) as runtime:
        telegram.write("remove it")
        question, buttons = await telegram.question("delete")
        assert "deleting is yours to decide" in telegram.texts()[-1]
        assert "values from:   the agent itself, in turn 1" in telegram.texts()[-1]
        assert set(buttons) == {"Approve once", "Deny"}
        telegram.press(buttons["Approve once"], question, sender=8)
        await telegram.until(lambda it: "Gone." in it.texts())
        telegram.press(buttons["Approve once"], question)
        await telegram.until(lambda it: any("no longer waits" in text for text in it.texts()))
        [answered] = [each for each in await events(runtime) if isinstance(each, EscalationAnswered)]
    assert not (tmp_path / "work" / "a.txt").exists()
    assert (answered.principal, answered.transport, answered.response.scope) == ("person:ben", "bot", "once")
    assert any(
        method == "editMessageText" and "Approved once by ben" in f["text"] for method, f in telegram.sent
    )


async def test_a_denied_call_is_not_made(telegram: TelegramStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, DELETE, "Kept.")
    async with bridge_to(telegram, tmp_path):
        telegram.write("remove it")
        question, buttons = await telegram.question("delete")
        telegram.press(buttons["Deny"], question)
        await telegram.until(lambda it: "Kept." in it.texts())
    assert (tmp_path / "work" / "a.txt").exists()


async def test_f06_a_message_leaves_the_inbox_as_soon_as_the_journal_has_it(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE)
    async with bridge_to(telegram, tmp_path):
        telegram.write("remove it")
        await telegram.question("delete")
        inbox = tmp_path / "holdfast" / "messengers" / "bot"
        assert not list(inbox.iterdir()), "a deleted session would leave its message here"


async def test_strangers_get_no_reply_and_their_buttons_do_nothing(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    async with bridge_to(telegram, tmp_path) as runtime:
        telegram.write("remove it", sender=STRANGER)
        telegram.write("remove it", sender=STRANGER, chat=200)
        telegram.write("remove it")
        question, buttons = await telegram.question("delete")
        telegram.press(buttons["Approve once"], question, sender=STRANGER)
        telegram.write("/waiting")
        telegram.write("/help", chat=300)
        await telegram.until(lambda it: any("Commands:" in text for text in it.texts()))
        assert (tmp_path / "work" / "a.txt").exists()
        assert len(await runtime.store.sessions()) == 1
    assert {fields["chat_id"] for _, fields in telegram.sent} == {100, 300}


async def test_no_forged_button_value_approves(telegram: TelegramStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    chance = random.Random(1)
    async with bridge_to(telegram, tmp_path) as runtime:
        telegram.write("remove it")
        question, buttons = await telegram.question("delete")
        verb, id, digest = buttons["Approve once"].split(":")
        forged = [
            "", "y", "y:", f"y:{id}", f"y:{id}:", f"y:{id}:{digest[:-1]}", f"y:{id}:{digest.upper()}!", f"yes:{id}:{digest}",
            f"y:{id[::-1]}:{digest}", f"{verb} :{id}:{digest}", f"y:{id}:{'0' * 32}", f"y:{id}:{digest}:x", "y:\0:\0",
        ]  # fmt: skip
        alphabet = buttons["Approve once"] + "yn:\n é"
        forged += ["".join(chance.choices(alphabet, k=chance.randint(0, 50))) for _ in range(40)]
        for value in forged:
            telegram.press(value, question)
        await telegram.until(
            lambda it: sum(method == "editMessageText" for method, _ in it.sent) == len(forged)
        )
        # A button of one thread is worth nothing in another.
        telegram.press(buttons["Approve once"], question, chat=200)
        await telegram.until(
            lambda it: sum(method == "editMessageText" for method, _ in it.sent) > len(forged)
        )
        assert not any(isinstance(each, EscalationAnswered) for each in await events(runtime))
    assert (tmp_path / "work" / "a.txt").exists()


@pytest.mark.soak
async def test_none_of_a_hundred_thousand_button_values_approves(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    chance = random.Random(2)
    runtime = await Runtime.start(home=tmp_path / "holdfast", settings=Settings(), servers=())
    messenger = Telegram(TOKEN, base_url=telegram.http.url)
    settings = TelegramSettings(
        token=TOKEN,
        members={str(MEMBER): "anna"},
        workspace=str(tmp_path / "work"),
        policy=str(tmp_path / "asking.yaml"),
        model=f"scripted:{tmp_path / 'script.json'}",
    )
    bridge = Bridge("bot", messenger, settings, runtime=runtime, clock=FakeClock())
    session = await bridge.open_session("100", "100")
    turn = asyncio.create_task(session.send("remove it"))
    try:
        _, buttons = await telegram.question("delete")
        right = buttons["Approve once"]
        for _ in range(100_000):
            value = list(right)
            for _ in range(chance.randint(1, 4)):
                value[chance.randrange(len(value))] = chance.choice("0123456789abcdefyn:\0")
            if (forged := "".join(value)) == right or forged.startswith("n:"):
                continue
            press = PressedButton(
                id="1", thread="100", channel="100", sender=str(MEMBER), value=forged, question="1"
            )
            with pytest.raises(EscalationUnknown):
                await bridge.press(press)
        assert (tmp_path / "work" / "a.txt").exists()
    finally:
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await runtime.close()


async def test_a_call_that_cannot_be_shown_whole_has_no_approve_button(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    write = "with open('b.txt', 'w') as f:\n    f.write('line\\n' * 2000)"
    prepared(tmp_path, runs(write), "Denied.")
    policy = tmp_path / "asking.yaml"
    policy.write_text(policy.read_text().replace("stage: world.write", "escalate: world.write"))
    async with bridge_to(telegram, tmp_path):
        telegram.write("write it")
        question, buttons = await telegram.question("answer on your machine: holdfast waiting")
        assert set(buttons) == {"Deny"}
        telegram.press(buttons["Deny"].replace("n:", "y:"), question)
        telegram.press(buttons["Deny"], question)
        await telegram.until(lambda it: any(text.startswith("Denied by anna") for text in it.texts()))


@pytest.mark.parametrize("lines", [2, 2000])
async def test_a_question_links_to_the_page_where_one_runs(
    telegram: TelegramStandIn, tmp_path: Path, lines: int
) -> None:
    prepared(tmp_path, runs(f"with open('b.txt', 'w') as f:\n    f.write('line\\n' * {lines})"), "Denied.")
    policy = tmp_path / "asking.yaml"
    policy.write_text(policy.read_text().replace("stage: world.write", "escalate: world.write"))
    async with bridge_to(telegram, tmp_path) as runtime:
        with published_address(runtime.home, WebAddress(origin="http://127.0.0.1:1", since_ms=1)):
            telegram.write("write it")
            _, buttons = await telegram.question("http://127.0.0.1:1/#/s/bot-100-1")
    assert set(buttons) == ({"Approve once", "Deny"} if lines == 2 else {"Deny"})


async def test_staged_changes_come_back_as_text_or_as_a_file_and_are_committed(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    write = "with open('{}', 'w') as f:\n    f.write('line\\n' * {})"
    prepared(tmp_path, runs(write.format("b.txt", 2)), "Short.", runs(write.format("c.txt", 2000)), "Long.")
    async with bridge_to(telegram, tmp_path):
        telegram.write("write a little")
        await telegram.until(lambda it: any("+line" in text for text in it.texts()))
        assert not (tmp_path / "work" / "b.txt").exists()
        telegram.write("/commit")
        await telegram.until(lambda it: "Committed: b.txt" in it.texts())
        telegram.write("write a lot")
        await telegram.until(lambda it: any(method == "sendDocument" for method, _ in it.sent))
        telegram.write("/reject")
        await telegram.until(lambda it: "Rejected: c.txt" in it.texts())
    assert (tmp_path / "work" / "b.txt").read_text() == "line\nline\n"
    assert not (tmp_path / "work" / "c.txt").exists()
    document = next(fields["body"] for method, fields in telegram.sent if method == "sendDocument")
    assert document.count(b"+line") == 2000


@pytest.mark.promise("P19")
async def test_a_commit_covers_only_what_was_shown_before_it_was_written(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    write = "with open('{}', 'w') as f:\n    f.write('line')"
    prepared(tmp_path, runs(write.format("b.txt")), "One.", runs(write.format("Makefile")), "Two.")
    async with bridge_to(telegram, tmp_path):
        telegram.write("write something")
        await telegram.until(lambda it: any("+line" in text for text in it.texts()))
        telegram.write("write more")
        telegram.write("/commit")
        await telegram.until(lambda it: any(text.startswith("Not committed") for text in it.texts()))
        await telegram.until(
            lambda it: sum("Makefile: this runs when you run make" in text for text in it.texts()) == 2
        )
        assert not (tmp_path / "work" / "b.txt").exists()
        telegram.write("/commit")
        await telegram.until(lambda it: any(text.startswith("Committed: ") for text in it.texts()))
    assert (tmp_path / "work" / "Makefile").exists()


async def test_what_a_removed_member_left_is_dropped(telegram: TelegramStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, "One.")
    private_folder(tmp_path / "holdfast")
    inbox = Inbox(tmp_path / "holdfast" / "messengers" / "bot")
    inbox.put(IncomingMessage(id="1", thread="100", channel="100", sender="31337", text="/commit"))
    async with bridge_to(telegram, tmp_path):
        telegram.write("hello")
        await telegram.until(lambda it: "One." in it.texts())
        assert "Nothing is staged." not in telegram.texts()
    assert inbox.items() == []


async def test_a_message_that_arrives_twice_starts_one_turn(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, "One.", "Two.")
    async with bridge_to(telegram, tmp_path) as runtime:
        id = telegram.write("count")
        telegram.write("count", id=id)
        telegram.write("count on")
        await telegram.until(lambda it: "Two." in it.texts())
        posted = [each for each in await events(runtime) if isinstance(each, MessagePosted)]
    assert [each.text for each in posted] == ["count", "count on"]


async def test_after_a_restart_in_mid_turn_the_question_comes_again_and_nothing_is_lost(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE, "Gone.", "And on.")
    async with bridge_to(telegram, tmp_path):
        telegram.write("remove it")
        old, old_buttons = await telegram.question("delete")
        telegram.write("then go on")  # behind the turn that waits
    telegram.sent.clear()
    async with bridge_to(telegram, tmp_path) as runtime:
        question, buttons = await telegram.question("delete")
        assert (question, buttons) != (old, old_buttons)
        telegram.press(buttons["Approve once"], question)
        await telegram.until(lambda it: "And on." in it.texts())
        posted = [each for each in await events(runtime) if isinstance(each, MessagePosted)]
    assert [each.text for each in posted] == ["remove it", "then go on"]
    assert telegram.texts().count("Gone.") == 1


async def test_cancel_stops_a_turn_that_waits_and_new_starts_another_session(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, DELETE, "Gone.")
    async with bridge_to(telegram, tmp_path) as runtime:
        telegram.write("remove it")
        await telegram.question("delete")
        telegram.write("/cancel@holdfast_bot")
        await telegram.until(lambda it: any(text.startswith("Stopped.") for text in it.texts()))
        telegram.write("/new")
        await telegram.until(lambda it: "This is a new session." in it.texts())
        telegram.write("/sessions")
        await telegram.until(lambda it: any("bot-100-2" in text for text in it.texts()))
        assert {each.id for each in await runtime.store.sessions()} == {"bot-100-1", "bot-100-2"}
    assert (tmp_path / "work" / "a.txt").exists()


async def test_a_question_of_the_agent_is_answered_by_the_next_message(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, runs("print(person.ask(question='Which colour?'))"), "Done.")
    async with bridge_to(telegram, tmp_path, policy="scratch") as runtime:
        telegram.write("paint")
        await telegram.until(lambda it: any("Which colour?" in text for text in it.texts()))
        telegram.write("green")
        await telegram.until(lambda it: "Done." in it.texts())
        [answered] = [each for each in await events(runtime) if isinstance(each, EscalationAnswered)]
    assert answered.response.reason == "green"


async def test_rate_limits_of_the_service_and_of_members_are_respected(
    telegram: TelegramStandIn, tmp_path: Path
) -> None:
    prepared(tmp_path, "One.", "Two.", "Three.")
    async with bridge_to(telegram, tmp_path, per_minute=2):
        telegram.faults = [(429, {"parameters": {"retry_after": 0.01}}), (500, {}), (502, {})]
        for text in ("a", "b", "c"):
            telegram.write(text)
        await telegram.until(lambda it: any("Too many messages" in text for text in it.texts()))
    assert telegram.texts()[:2] == ["One.", "Two."]


async def test_an_outage_is_survived_and_the_token_is_never_logged(
    telegram: TelegramStandIn, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    prepared(tmp_path, "Back.")
    caplog.set_level(logging.DEBUG, "holdfast")
    telegram.http.answers = [(502, {}), (500, {}), (404, {}), (200, {})]
    async with bridge_to(telegram, tmp_path):
        telegram.write("hello")
        await telegram.until(lambda it: "Back." in it.texts())
    assert "no updates" in caplog.text
    assert "secret-token" not in caplog.text


async def test_a_channel_has_its_own_policy_and_workspace(telegram: TelegramStandIn, tmp_path: Path) -> None:
    prepared(tmp_path, DELETE, "Refused.")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("other")
    channel = ChannelSettings(workspace=str(tmp_path / "other"), policy="safe-analysis")
    async with bridge_to(telegram, tmp_path, channels={"200": channel}) as runtime:
        telegram.write("remove it", chat=200)
        await telegram.until(lambda it: "Refused." in it.texts())
        summary = await runtime.store.summary(await runtime.store.find("bot-200-1"))
    assert (summary.workspace, summary.policy) == (str(tmp_path / "other"), "safe-analysis")
    assert (tmp_path / "other" / "a.txt").exists()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (TelegramSettings(token="${NOT_SET}", members={"1": "a"}), "NOT_SET is not set"),
        (TelegramSettings(token="t"), "nobody could talk"),
        (TelegramSettings(token="t", members={"1": "a"}, base_url="http://example.com"), "must be https"),
    ],
)
def test_a_messenger_that_cannot_work_is_refused(settings: TelegramSettings, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=reason):
        create_messenger("bot", settings, {})
