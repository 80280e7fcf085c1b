"""The numbered cases of other projects that need several steps: listing, pruning, saving and the journal. Run by
`test_session_cases`."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from tests.store.processes import answer, child
from tests.store.sample_events import ended, opened, replied, said, turn
from tests.store.test_crashes import copy
from tests.store.test_salvage import statement, texts

from holdfast.app import Runtime
from holdfast.cli.main import main
from holdfast.cli.views.resume import resume_notice
from holdfast.core import (
    FakeClock,
    ModelMessage,
    SessionId,
    SystemClock,
    ToolCallPart,
    check_session_id,
    encode,
)
from holdfast.core.errors import (
    InvalidId,
    InvalidInput,
    JournalDamaged,
    SessionExists,
)
from holdfast.core.events import (
    CallSettled,
    ModelReplied,
    RestorePointMade,
    SessionOpened,
    decode_event,
    encode_event,
)
from holdfast.core.ids import CallId
from holdfast.core.messages import Usage
from holdfast.models import Prompt, Reply, ScriptedModel, say
from holdfast.session import last_point, plan_rewind
from holdfast.store import Home, prune
from holdfast.store.sqlite.store import SqliteStore
from holdfast.teams.message_text import parse_message_id

HOUR_MS = 60 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a case runs on: an open store, its home and the clock."""

    store: SqliteStore
    home: Home
    clock: FakeClock
    patch: pytest.MonkeyPatch

    async def sessions(self, *ids: str) -> None:
        """Create sessions a day apart, oldest first, none of them held."""
        for id in ids:
            await (await self.store.create(opened(), session=SessionId(id))).release()
            self.clock.advance(24 * 60 * 60)

    async def listed(self) -> list[str]:
        return [str(line.id) for line in await self.store.sessions()]

    async def damaged(self, sql: str) -> SqliteStore:
        """Restart the store after a change to its file."""
        await self.store.close()
        statement(self.home, sql)
        return await SqliteStore.start(self.home, clock=self.clock)

    async def command(self, *words: str) -> int:
        """Run a command on this home, in another event loop, and return its exit code."""
        self.patch.setenv("HOLDFAST_HOME", str(self.home.root))
        try:
            return await asyncio.to_thread(main, words)
        except SystemExit as end:
            return int(end.code or 0)


Story = Callable[[Stage], Awaitable[None]]
STORIES: dict[str, Story] = {}


def case(*numbers: str) -> Callable[[Story], Story]:
    def entered(story: Story) -> Story:
        STORIES.update(dict.fromkeys(numbers, story))
        return story

    return entered


@case("N26")
async def two_spellings_are_one_name_and_the_second_is_refused(stage: Stage) -> None:
    await stage.store.create(opened(name="My Session"))
    with pytest.raises(SessionExists):
        await stage.store.create(opened(name="my-session"))


@case("I13")
async def a_generated_id_is_its_own_spelling(stage: Stage) -> None:
    for _ in range(50):
        id = (await stage.store.create(opened())).session
        assert re.fullmatch(r"\d{4}(-\d\d){5}-\d{3}-[a-z0-9]{4}", id)
        assert check_session_id(id) == id == id.lower()


@case("I14")
async def a_resumed_session_is_saved_under_its_id(stage: Stage) -> None:
    id = (await stage.store.create(opened())).session
    for number in range(20):
        await stage.store.close()
        store = await SqliteStore.start(stage.home, clock=stage.clock)
        journal = await store.open(id)
        await journal.append(said(number))
        assert journal.session == id
        assert [line.id for line in await store.sessions()] == [id]
        await store.close()


@case("I16", "I17", "I18")
async def where_a_uuid_is_required_nothing_else_passes(stage: Stage) -> None:
    for given in ("not-a-uuid", "", "custom"):
        with pytest.raises(InvalidInput):
            parse_message_id(given)
    with pytest.raises(InvalidId):
        check_session_id(None)


@case("X1")
async def a_new_session_is_listed_and_the_last(stage: Stage) -> None:
    await stage.sessions("a", "b")
    assert await stage.listed() == ["b", "a"]
    assert (await stage.store.sessions(limit=1, folder="/project"))[0].id == "b"


@case("X2")
async def going_on_keeps_the_birth_and_moves_the_activity(stage: Stage) -> None:
    journal = await stage.store.create(opened())
    born = stage.clock.now_ms()
    stage.clock.advance(60)
    await journal.append(said(1))
    line = await stage.store.summary(journal.session)
    assert (line.created_ms, line.active_ms) == (born, born + 60_000)


@case("X3")
async def the_newest_comes_first(stage: Stage) -> None:
    await stage.sessions("a", "b", "c")
    assert await stage.listed() == ["c", "b", "a"]


@case("X4")
async def at_one_moment_the_later_comes_first(stage: Stage) -> None:
    for id in ("b", "c", "a"):
        await stage.store.create(opened(), session=SessionId(id))
    assert await stage.listed() == ["a", "c", "b"]


@case("X5")
async def nothing_goes_by_itself_and_the_oldest_goes_when_asked(stage: Stage) -> None:
    await stage.sessions("a", "b", "c", "d")
    assert len(await stage.listed()) == 4
    await prune(stage.store, now_ms=stage.clock.now_ms(), keep=3)
    assert await stage.listed() == ["d", "c", "b"]


@case("X6", "X7", "X8")
async def a_number_is_how_many_stay(stage: Stage) -> None:
    await stage.sessions("a", "b", "c", "d")
    for keep, gone in ((2, 2), (5, 0), (0, 2)):
        report = await prune(stage.store, now_ms=stage.clock.now_ms(), keep=keep)
        assert len(report.pruned) == gone
    assert await stage.store.sessions(limit=1) == []


@case("X9", "X10")
async def a_number_that_is_none_is_refused(stage: Stage) -> None:
    await stage.sessions("a", "b")
    with pytest.raises(InvalidInput):
        await prune(stage.store, now_ms=stage.clock.now_ms(), keep=-5)
    for given in ("-5", "NaN", "nan", "1.5", ""):
        assert await stage.command("prune", "--keep", given) == 2
    assert await stage.listed() == ["b", "a"]


@case("X11", "X12", "X13")
async def an_id_that_begins_with_a_number_is_an_id(stage: Stage) -> None:
    ids = ("2025-01-04-00-00-00-000-abcd", "3-foo", "x", "y")
    await stage.sessions(*ids)
    for id in ids[:2]:
        assert await stage.command("prune", id) == 2
        assert await stage.command("prune", "--keep", id) == 2
    assert len(await stage.listed()) == 4
    for id in ids[:2]:
        assert await stage.command("delete", id, "--yes") == 0
    assert await stage.listed() == ["y", "x"]
    assert await stage.command("prune", "--keep", "12") == 0
    assert await stage.listed() == ["y", "x"]


@case("X14", "X15", "X16", "X17")
async def a_corrupt_or_missing_list_is_rebuilt(stage: Stage) -> None:
    await stage.sessions("a", "b")
    store = stage.store
    for damage in (
        "UPDATE session SET tally = 'half a li'",
        "UPDATE session SET tally = '[1, 2]'",
        "DELETE FROM session",
        "UPDATE session SET tally = 'null'",
    ):
        await store.close()
        statement(stage.home, damage)
        store = await SqliteStore.start(stage.home, clock=stage.clock)
        assert [line.id for line in await store.sessions()] == ["b", "a"]
        assert len(store.notices) == 1
    await store.close()


@case("X18", "X22")
async def a_session_that_cannot_be_read_is_listed_as_damaged(stage: Stage) -> None:
    await stage.sessions("a", "b")
    store = await stage.damaged("UPDATE event SET body = 'no event' WHERE session = 'a'")
    with pytest.raises(JournalDamaged):
        await store.open(SessionId("a"))
    assert {line.id: line.is_damaged for line in await store.sessions()} == {"a": True, "b": False}
    await store.close()


@case("X19", "X20", "X21")
async def the_last_session_is_the_newest_there_is(stage: Stage) -> None:
    await stage.sessions("a", "b")
    await stage.store.delete(SessionId("b"))
    assert [line.id for line in await stage.store.sessions(limit=1, folder="/project")] == ["a"]
    await stage.store.delete(SessionId("a"))
    assert await stage.store.sessions(limit=1, folder="/project") == []
    assert await stage.command("-c", "go on") == 1


@case("X23")
async def fifty_at_once_are_fifty(stage: Stage) -> None:
    made = await asyncio.gather(*(stage.store.create(opened()) for _ in range(50)))
    assert set(await stage.listed()) == {journal.session for journal in made}
    assert len(await stage.listed()) == 50


@case("X24")
async def four_processes_lose_none_of_each_other(stage: Stage) -> None:
    async def create() -> int:
        async with child("create", stage.home, "100") as process:
            out, _ = await process.communicate()
            return len(out.split())

    assert await asyncio.gather(*(create() for _ in range(4))) == [100] * 4
    assert len(set(await stage.listed())) == 400


@case("X25")
async def the_newest_survives_a_clock_that_was_set_back(stage: Stage) -> None:
    await stage.sessions("a", "b")
    stage.clock.set_back(30 * 24 * 60 * 60)
    await stage.sessions("newest")
    await prune(stage.store, now_ms=stage.clock.now_ms(), keep=2)
    assert await stage.listed() == ["newest", "b"]


@case("X26", "X27")
async def by_age_the_old_go_and_a_dry_run_removes_nothing(stage: Stage) -> None:
    for id, hours in (("old", 24), ("recent", 1)):
        await (await stage.store.create(opened(), session=SessionId(id))).release()
        stage.clock.advance(hours * 60 * 60)
    for is_dry_run, left in ((True, ["recent", "old"]), (False, ["recent"])):
        report = await prune(
            stage.store, now_ms=stage.clock.now_ms(), older_than_ms=24 * HOUR_MS, is_dry_run=is_dry_run
        )
        assert [one.session for one in report.pruned] == ["old"]
        assert await stage.listed() == left


@case("X28")
async def a_folder_that_belongs_to_no_session_is_left_alone(stage: Stage) -> None:
    await stage.sessions("a")
    stranger = stage.home.prepare_session(SessionId("stranger"))
    await prune(stage.store, now_ms=stage.clock.now_ms(), keep=0)
    assert stranger.exists()
    assert await stage.listed() == []


@case("X29")
async def an_age_that_was_lost_is_told_by_the_events(stage: Stage) -> None:
    await stage.sessions("old", "recent")
    store = await stage.damaged("UPDATE session SET tally = '{\"summary\": 7}'")
    report = await prune(store, now_ms=stage.clock.now_ms(), older_than_ms=36 * HOUR_MS)
    assert [one.session for one in report.pruned] == ["old"]
    await store.close()


@case("X30")
async def what_cannot_be_removed_is_reported_and_the_others_go(stage: Stage) -> None:
    await stage.sessions("a", "b", "c")
    store = await stage.damaged(
        "CREATE TRIGGER refuse BEFORE DELETE ON event WHEN old.session = 'b' "
        "BEGIN SELECT RAISE(ABORT, 'permission denied'); END"
    )
    report = await prune(store, now_ms=stage.clock.now_ms(), keep=0)
    assert {one.session for one in report.pruned} == {"a", "c"}
    assert [(one.session, one.why) for one in report.spared] == [("b", "failed")]
    assert "permission denied" in report.spared[0].detail
    assert [line.id for line in await store.sessions()] == ["b"]
    await store.close()


@case("X31")
async def a_draft_that_a_crash_left_is_collected_and_the_old_file_stays(stage: Stage) -> None:
    large = b"large" * 300_000
    digest = await stage.store.put_blob(large)
    await stage.store.close()
    draft = stage.home.blobs / f".{digest[:16]}-half"
    draft.write_bytes(b"half")
    store = await SqliteStore.start(stage.home, clock=stage.clock)
    assert not draft.exists()
    assert await store.blob(digest) == large
    await store.close()


@case("S1", "S2", "S3")
async def the_preview_is_the_first_words_of_the_person(stage: Stage) -> None:
    journal = await stage.store.create(opened())
    line = await stage.store.summary(journal.session)
    assert (line.messages, line.first_words) == (0, "")
    await journal.append(replied(1, "I begin"))
    line = await stage.store.summary(journal.session)
    assert (line.messages, line.first_words) == (1, "")
    await journal.append(said(1, "x" * 300), said(2, "later"))
    assert (await stage.store.summary(journal.session)).first_words == "x" * 200


@case("S4", "S5", "S7")
async def a_thousand_messages_of_any_script_come_back_equal(stage: Stage) -> None:
    words = [
        f"{n} \"quoted\" 'single' <tag> & 日本語 \U0001f468\u200d\U0001f469 \\ \n\t" for n in range(1000)
    ]
    journal = await stage.store.create(opened())
    await journal.append(*(said(n, word) for n, word in enumerate(words)))
    await stage.store.close()
    store = await SqliteStore.start(stage.home, clock=stage.clock)
    assert await texts(store, journal.session) == words
    await store.close()


@case("S6")
async def a_tool_keeps_its_name_its_id_and_its_result(stage: Stage) -> None:
    part = ToolCallPart(id="call-7", tool="read", arguments={"path": "a"})
    written = (
        ModelReplied(turn=1, step=1, model="m", message=ModelMessage(parts=(part,)), usage=Usage()),
        CallSettled(call=CallId("1.1"), status="ok", result={"text": "content"}),
    )
    journal = await stage.store.create(opened())
    await journal.append(*written)
    assert tuple(one.event for one in await stage.store.read(journal.session, after=1)) == written


@case("S8")
async def the_notice_tells_name_description_counts_and_topic(stage: Stage) -> None:
    first = msgspec.structs.replace(opened(name="my-session"), description="about tokens")
    journal = await stage.store.create(first)
    for number in range(1, 4):
        await journal.append(*turn(number, "Help me with JWT" if number == 1 else "more"))
    notice = resume_notice(await stage.store.summary(journal.session), journal.recorded, now_ms=0)
    for words in ("my-session", "about tokens", "3 from user", "First topic: Help me with JWT"):
        assert words in notice


@case("S9", "J7")
async def the_model_gets_the_conversation_back_and_not_the_notice(stage: Stage) -> None:
    asked: list[Prompt] = []

    def answer(prompt: Prompt) -> Reply:
        asked.append(prompt)
        return say("Second.")

    runtime = await Runtime.start(home=stage.home.root / "runtime", clock=SystemClock())
    session = await runtime.create(model=ScriptedModel(["First.", answer]))
    await session.send("hello")
    await session.close()
    again = await runtime.resume(session.id, model=ScriptedModel(["never asked for this again", answer]))
    summary = await runtime.store.summary(again.id)
    notice = resume_notice(summary, await runtime.store.read(again.id), now_ms=0)
    await again.send("go on")
    await runtime.close()
    (prompt,) = asked
    written = encode(list(prompt.messages)).decode()
    assert [word in written for word in ("hello", "First.", "go on")] == [True] * 3
    assert [line for line in notice.splitlines() if line.partition(":")[0] in written] == []


@case("S10")
async def a_turn_is_on_disk_when_the_process_is_killed(stage: Stage) -> None:
    journal = await stage.store.create(opened())
    await journal.release()
    async with child("write", stage.home, journal.session) as process:
        durable = int(await answer(process))
        process.kill()
        await process.wait()
    assert len(await stage.store.read(journal.session)) >= durable
    assert (await stage.store.verify(journal.session)).is_intact


@case("J1", "J2", "J3")
async def a_journal_begins_with_its_format_and_every_event_stands_alone(stage: Stage) -> None:
    journal = await stage.store.create(opened())
    await journal.append(*turn(1))
    recorded = await stage.store.read(journal.session)
    first = recorded[0].event
    assert isinstance(first, SessionOpened)
    assert first.format == 1
    assert [one.seq for one in recorded] == [1, 2, 3, 4]
    assert [decode_event(encode_event(one.event)) for one in recorded] == [one.event for one in recorded]


@case("J4", "J5", "J6")
async def going_back_takes_the_point_at_or_before_the_target(stage: Stage) -> None:
    journal = await stage.store.create(opened())
    for number in range(1, 4):
        points = [RestorePointMade(turn=number, manifest=str(number))] if number != 3 else []
        await journal.append(said(number), ended(number), *points)
    recorded = journal.recorded
    chosen = [last_point(recorded[:seq]) for seq in (8, 7, 6, 4, 3)]
    assert [point.seq if point else None for point in chosen] == [7, 7, 4, 4, None]
    assert plan_rewind(recorded, 2).manifest == "2"
    with pytest.raises(InvalidInput):
        plan_rewind(recorded, 3)


@case("J8")
async def an_answer_that_is_missing_is_an_error_and_not_asked_for_again(stage: Stage) -> None:
    journal = await stage.store.create(opened(), session=SessionId("a"))
    await journal.append(*turn(1))
    store = await stage.damaged("DELETE FROM event WHERE session = 'a' AND seq = 3")
    with pytest.raises(JournalDamaged):
        await store.open(SessionId("a"))
    await store.close()


@case("J9")
async def opening_what_is_there_truncates_nothing(stage: Stage) -> None:
    journal = await stage.store.create(opened(), session=SessionId("a"))
    await journal.append(*turn(1))
    await journal.release()
    with pytest.raises(SessionExists):
        await stage.store.create(opened(), session=SessionId("a"))
    assert len((await stage.store.open(SessionId("a"))).recorded) == 4


@case("J10")
async def a_torn_end_is_dropped_and_the_rest_loads(stage: Stage) -> None:
    journal = await stage.store.create(opened(), session=SessionId("a"))
    await journal.append(said(1, "whole"))
    await journal.append(said(2, "torn" * 2000))
    crashed = Home(stage.home.root.with_name("crashed"))
    await asyncio.to_thread(copy, stage.home, crashed)
    log = Path(f"{crashed.database}-wal")
    os.truncate(log, log.stat().st_size - 100)
    store = await SqliteStore.start(crashed, clock=stage.clock)
    assert await texts(store, SessionId("a")) == ["whole"]
    await (await store.open(SessionId("a"))).append(said(2, "next"))
    assert (await store.verify(SessionId("a"))).is_intact
    await store.close()
