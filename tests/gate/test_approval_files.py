"""Approval by files, in the format that other programs already use, in both directions and against hostile files."""

import asyncio
import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.core import PERSON, Call, FakeClock, FunctionToolset, Parked, Returned, Tool, call_id
from holdfast.core.approval_text import describe_effect, describe_facts
from holdfast.core.events import MessagePosted, Noted, SessionOpened
from holdfast.gate import ApprovalFiles, Gate, Ruling
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore

TOOL = Tool(
    name="filesystem.read_file",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
    roles={},
)
CALL = Call(id=call_id(1, 1), operation=TOOL.name, arguments={"path": "/etc/hostname"})

OTHER_PROGRAM = """
import json, os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
for _ in range(2000):
    requests = sorted(folder.glob("request-*.json"))
    if requests:
        break
    time.sleep(0.005)
request = json.loads(requests[0].read_text())
assert request["toolName"] == "read_file", request
draft = folder / "draft.tmp"
draft.write_text(json.dumps({"decision": "approved"}))
os.replace(draft, folder / f"response-{request['escalationId']}.json")
"""


class RequestFolder:
    def __init__(self, path: Path, gate: Gate, journal: Journal, clock: FakeClock) -> None:
        self.path, self.gate, self.journal, self.clock = path, gate, journal, clock

    async def ask(self, number: int = 1) -> Parked:
        call = Call(id=call_id(1, number), operation=TOOL.name, arguments={"path": f"/etc/{number}"})
        parked = await self.gate.submit(call)
        assert isinstance(parked, Parked)
        return parked

    def answer(self, parked: Parked, content: object) -> None:
        draft = self.path / "draft"
        draft.write_text(content if isinstance(content, str) else json.dumps(content))
        draft.rename(self.response(parked))

    def response(self, parked: Parked) -> Path:
        return self.path / f"response-{parked.escalation}.json"

    async def ruling(self, parked: Parked) -> Ruling:
        return await self.gate.wait(parked.escalation)


@asynccontextmanager
async def approval_files(path: Path, journal: Journal | None = None) -> AsyncIterator[RequestFolder]:
    clock = FakeClock()
    if journal is None:
        opened = SessionOpened(
            principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model=""
        )
        journal = await MemoryStore(clock=clock).create(opened)
        await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    gate = Gate(
        journal=journal,
        policy=FixedPolicy(default="escalate"),
        toolsets=[FunctionToolset({TOOL.name: (TOOL, lambda _: "content")})],
        paths=LexicalPaths(),
        clock=clock,
    )
    meeting = ApprovalFiles(path, gate=gate, journal=journal)
    await meeting.open()
    try:
        yield RequestFolder(path, gate, journal, clock)
    finally:
        await meeting.close()


async def test_a_request_has_the_fields_that_other_programs_read(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked = await folder.ask()
        [path] = folder.path.glob("request-*.json")
        request = json.loads(path.read_text())
        assert path.name == f"request-{parked.escalation}.json"
        assert {key: request[key] for key in ("escalationId", "serverName", "toolName", "arguments")} == {
            "escalationId": parked.escalation,
            "serverName": "filesystem",
            "toolName": "read_file",
            "arguments": {"path": "/etc/1"},
        }
        assert request["reason"]
        [asked] = folder.gate.escalations.waiting()
        assert (request["effect"], request["facts"]) == (describe_effect(asked), describe_facts(asked))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700


@pytest.mark.parametrize(("decision", "verdict"), [("approved", "approve"), ("denied", "deny")])
async def test_a_response_is_read_and_both_files_are_removed(
    tmp_path: Path, decision: str, verdict: str
) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked = await folder.ask()
        folder.answer(parked, {"decision": decision})
        assert (await folder.ruling(parked)).verdict == verdict
        assert list(folder.path.iterdir()) == []


async def test_a_program_that_knows_only_the_file_format_can_approve(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", OTHER_PROGRAM, str(folder.path), stderr=subprocess.PIPE
        )
        parked = await folder.gate.submit(CALL)
        assert isinstance(parked, Parked)
        _, trouble = await other.communicate()
        assert other.returncode == 0, trouble
        assert (await folder.ruling(parked)).verdict == "approve"
        assert await folder.gate.submit(CALL) == Returned(value="content")


async def test_many_may_wait_at_once_and_each_gets_its_own_answer(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked = [await folder.ask(number) for number in range(1, 6)]
        for number, each in enumerate(reversed(parked)):
            folder.answer(each, {"decision": "approved" if number % 2 else "denied"})
        rulings = [await folder.ruling(each) for each in reversed(parked)]
        assert [ruling.verdict for ruling in rulings] == ["deny", "approve", "deny", "approve", "deny"]


def _oversized(path: Path) -> None:
    path.write_text(json.dumps({"decision": "approved", "reason": "x" * 100_000}))


def _link(path: Path) -> None:
    real = path.parent.parent / "elsewhere.json"
    real.write_text('{"decision": "approved"}')
    path.with_name("draft").symlink_to(real)
    path.with_name("draft").rename(path)


def _fifo(path: Path) -> None:
    os.mkfifo(path.with_name("draft"))
    path.with_name("draft").rename(path)


def _folder(path: Path) -> None:
    path.with_name("draft").mkdir()
    (path.with_name("draft") / "inside").write_text("x")
    path.with_name("draft").rename(path)


HOSTILE: dict[str, Callable[[Path], object]] = {
    "another word": lambda path: path.write_text('{"decision": "yes"}'),
    "no decision": lambda path: path.write_text("{}"),
    "null": lambda path: path.write_text("null"),
    "half written": lambda path: path.write_text('{"decision": "appr'),
    "empty": lambda path: path.write_text(""),
    "binary": lambda path: path.write_bytes(b"\xff\x00\xfe"),
    "binary within a word": lambda path: path.write_bytes(b'{"decision": "approved", "reason": "\xff"}'),
    "half of a surrogate": lambda path: path.write_bytes(b'{"decision": "approved", "reason": "\\ud800"}'),
    "yes and no": lambda path: path.write_text('{"decision": "denied", "decision": "approved"}'),
    "nested without end": lambda path: path.write_text('{"decision": ' + "[" * 60_000),
    "unknown key": lambda path: path.write_text('{"decision": "approved", "as": "root"}'),
    "scope that is not offered": lambda path: path.write_text('{"decision": "approved", "scope": "always"}'),
    "minutes without a number": lambda path: path.write_text('{"decision": "approved", "scope": "minutes"}'),
    "another call's digest": lambda path: path.write_text('{"decision": "approved", "digest": "00"}'),
    "oversized": _oversized,
    "a link": _link,
    "a pipe": _fifo,
    "a folder": _folder,
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_anything_but_a_clear_approval_is_a_denial(tmp_path: Path, kind: str) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked = await folder.ask()
        HOSTILE[kind](folder.response(parked))
        assert (await folder.ruling(parked)).verdict == "deny"


async def test_files_of_a_dead_process_are_removed_and_do_not_block(tmp_path: Path) -> None:
    (tmp_path / "e").mkdir()
    for name in ("request-phantom00001.json", "response-phantom00001.json", "junk", ".request-x.json.new"):
        (tmp_path / "e" / name).write_text('{"decision": "approved"}')
    async with approval_files(tmp_path / "e") as folder:
        assert list(folder.path.iterdir()) == []
        parked = await folder.ask()
        folder.answer(parked, {"decision": "approved"})
        assert (await folder.ruling(parked)).verdict == "approve"


async def test_an_answer_given_while_no_process_watched_counts_after_a_restart(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked, journal = await folder.ask(), folder.journal
    folder.answer(parked, {"decision": "approved"})
    async with approval_files(tmp_path / "e", journal) as again:
        assert (await again.ruling(parked)).verdict == "approve"


async def test_a_late_answer_is_reported_as_late(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked, other = await folder.ask(1), await folder.ask(2)
        folder.clock.advance(301)
        await folder.gate.escalations.expire(parked.escalation, "no one answered in time")
        folder.answer(parked, {"decision": "approved"})
        noted = asyncio.Event()
        folder.journal.follow(lambda entry: noted.set() if isinstance(entry.event, Noted) else None)
        await noted.wait()
        assert not folder.response(parked).exists()
        assert other.escalation in {each.id for each in folder.gate.escalations.waiting()}


async def test_a_folder_in_place_of_a_file_does_not_block_opening(tmp_path: Path) -> None:
    (tmp_path / "e" / "request-phantom00001.json" / "deep").mkdir(parents=True)
    async with approval_files(tmp_path / "e") as folder:
        assert list(folder.path.iterdir()) == []


async def test_an_answer_among_many_other_files_is_still_read(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked, first = await folder.ask(1), await folder.ask(2)
        folder.answer(first, {"decision": "denied"})
        await folder.ruling(first)  # it listens
        queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        noise = [folder.path / "one", folder.path / "other"]
        noise[0].touch()
        for number in range(min(queued, 20_000) + 10):
            noise[number % 2].rename(noise[1 - number % 2])
        folder.answer(parked, {"decision": "approved"})
        assert (await folder.ruling(parked)).verdict == "approve"


async def test_closing_with_an_open_escalation_is_prompt_and_keeps_it_open(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        await folder.ask()
    assert len(folder.gate.escalations.waiting()) == 1
    assert list(folder.path.glob("request-*")) == []


async def test_f50_stray_responses_do_not_delay_an_answer_or_fill_the_journal(tmp_path: Path) -> None:
    async with approval_files(tmp_path / "e") as folder:
        parked, first = await folder.ask(1), await folder.ask(2)
        folder.answer(first, {"decision": "denied"})
        await folder.ruling(first)  # it listens
        for number in range(5_000):
            (folder.path / f"response-stray{number}.json").write_text("{}")
        folder.answer(parked, {"decision": "approved"})
        assert (await folder.ruling(parked)).verdict == "approve"
        notes = [entry for entry in folder.journal.recorded if isinstance(entry.event, Noted)]
        assert len(notes) <= 20
