"""Files, proposals and rewinding at the command line."""

import json
from pathlib import Path

import pytest

from holdfast.cli.commands import files, proposals, rewind
from holdfast.cli.exit_codes import DENIED, OK
from holdfast.cli.views.diff_lines import diff_lines
from holdfast.core import PERSON, Amount, Call, CallId, Change, Decision, Ok, call_id, digest_bytes
from holdfast.core.clock import SystemClock
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    Event,
    MessagePosted,
    ProposalsCommitted,
    ProposalsRejected,
    RecordedEvent,
    RestorePointMade,
    SessionOpened,
    SessionRewound,
    TurnEnded,
)
from holdfast.store import Home, Journal, Store, open_store
from holdfast.world import MemoryWorld, RestorePoints, StagedWorld


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    found = Home.default()
    found.prepare()
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


async def opened(home: Home, project: Path) -> tuple[Store, Journal]:
    store = await open_store(home, clock=SystemClock())
    journal = await store.create(
        SessionOpened(
            principal=PERSON,
            folder="",
            workspace=str(project),
            policy="safe-edit",
            policy_digest="",
            model="",
            name="work",
        )
    )
    return store, journal


def calls(number: int, operation: str, *changes: Change) -> tuple[Event, Event]:
    call = Call(id=call_id(1, number), operation=operation, arguments={})
    decision = Decision(verdict="stage", rule="r", reason="because")
    return (
        CallIntended(call=call, decision=decision, digest=call.digest, tool_digest=""),
        CallSettled(call=CallId(call.id), status="ok", changes=changes, amount=Amount()),
    )


async def command(module: object, *words: str) -> int:
    import argparse

    parser = argparse.ArgumentParser()
    module.configure(parser)  # type: ignore[attr-defined]
    return await module.run(parser.parse_args(words))  # type: ignore[attr-defined,no-any-return]


async def read_events(home: Home) -> list[RecordedEvent]:
    store = await open_store(home, clock=SystemClock())
    try:
        return list(await store.read(await store.find("work")))
    finally:
        await store.close()


async def test_files_go_in_and_out_of_a_session(
    home: Home, project: Path, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    store, _ = await opened(home, project)
    await store.close()
    (tmp_path / "local").write_bytes(b"\x00\xffbytes")
    assert await command(files, "put", "work", "local", "d/in.bin") == OK
    assert (project / "d" / "in.bin").read_bytes() == b"\x00\xffbytes"
    with pytest.raises(InvalidInput):
        await command(files, "put", "work", "local", "d/in.bin")
    await command(files, "put", "work", "local", "d/in.bin", "--force")
    capfdbinary.readouterr()
    await command(files, "ls", "work")
    assert capfdbinary.readouterr().out == b"           7  d/in.bin\n"
    await command(files, "ls", "work", "d/*", "--json")
    assert json.loads(capfdbinary.readouterr().out)[0]["size"] == 7
    await command(files, "cat", "work", "d/in.bin")
    assert capfdbinary.readouterr().out == b"\x00\xffbytes"
    await command(files, "get", "work", "d/in.bin")
    assert (tmp_path / "in.bin").read_bytes() == b"\x00\xffbytes"
    with pytest.raises(InvalidInput):
        await command(files, "get", "work", "d/in.bin")
    with pytest.raises(HoldfastError):
        await command(files, "cat", "work", "../local")
    with pytest.raises(InvalidInput):
        await command(files, "rm", "work", "d")
    await command(files, "rm", "work", "d", "-r")
    assert list(project.iterdir()) == []


async def staged(home: Home, project: Path) -> None:
    (project / "a").write_bytes(b"old\n")
    store, journal = await opened(home, project)
    after = await store.put_blob(b"new\n")
    changes = [
        Change(path="a", kind="modified", before=digest_bytes(b"old\n"), after=after, is_staged=True),
        Change(path="b", kind="created", after=after, is_staged=True),
    ]
    await journal.append(*calls(1, "world.write", *changes))
    await store.close()


async def test_proposals_are_shown_committed_and_rejected(
    home: Home, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await staged(home, project)
    await command(proposals, "show", "work")
    assert "-old\n+new\n" in capsys.readouterr().out
    await command(proposals, "show", "work", "b", "--json")
    assert [each["path"] for each in json.loads(capsys.readouterr().out)] == ["b"]
    await command(proposals, "commit", "work", "a")
    assert (project / "a").read_bytes() == b"new\n"
    assert not (project / "b").exists()
    await command(proposals, "reject", "work")
    last = [entry.event for entry in await read_events(home)][-2:]
    assert isinstance(last[0], ProposalsCommitted)
    assert isinstance(last[1], ProposalsRejected)
    capsys.readouterr()
    await command(proposals, "show", "work")
    assert capsys.readouterr().out == ""


def test_a_proposal_is_shown_by_its_kind() -> None:
    base = MemoryWorld({"old.txt": b"same\n", "picture": b"\x00\x01", "esc": b"plain\n"})
    staged = StagedWorld(base)
    staged.move("old.txt", "new.txt")
    staged.write("picture", b"\x00\x01\x02")
    staged.write("esc", b"\x1b]0;owned\x07\n")
    text = "\n".join(line.text for proposal in staged.proposals() for line in diff_lines(proposal))
    assert "new.txt renamed from old.txt" in text
    assert "binary file picture: 2 bytes" in text
    assert "\x1b" not in text, "nothing in a diff steers the terminal"
    assert "+<U+001B>]0;owned<U+0007>" in text


async def test_w13_a_checked_commit_is_made_only_if_the_check_passes_on_the_changed_files(
    home: Home, project: Path
) -> None:
    await staged(home, project)
    for failing in ("false", "test ! -e b", "exit 7", "no-such-program"):
        assert await command(proposals, "commit", "work", "--check", failing) == DENIED
        assert (project / "a").read_bytes() == b"old\n"
    with pytest.raises(InvalidInput):
        await command(proposals, "commit", "work", "a", "--check", "true")
    passing = "grep -q new a && grep -q new b && rm a"
    assert await command(proposals, "commit", "work", "--check", passing) == OK
    assert (project / "a").read_bytes() == (project / "b").read_bytes() == b"new\n"


async def turns(home: Home, project: Path) -> None:
    """A start and two turns; the second sent a message away."""
    store, journal = await opened(home, project)
    points = RestorePoints(project, store=store)
    (project / "a").write_bytes(b"start")
    await journal.append(RestorePointMade(turn=0, manifest=(await points.make()).manifest))
    for turn in (1, 2):
        await journal.append(MessagePosted(turn=turn, text=f"task {turn}", principal=PERSON))
        (project / "a").write_bytes(b"%d" % turn)
        (project / f"new-{turn}").write_bytes(b"")
        if turn == 2:
            await journal.append(*calls(1, "mail.send"), *calls(2, "world.write"))
        await journal.append(TurnEnded(turn=turn, outcome=Ok()))
        await journal.append(RestorePointMade(turn=turn, manifest=(await points.make()).manifest))
    await store.close()


async def test_rewinding_brings_files_and_chat_back_together(
    home: Home, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await turns(home, project)
    await command(rewind, "work")
    assert capsys.readouterr().out == "   0  before the first turn\n   1  task 1\n   2  task 2\n"
    (project / "by-hand").write_bytes(b"since")
    await command(rewind, "work", "--to", "1", "--dry-run", "--json")
    shown = json.loads(capsys.readouterr().out)
    assert shown["stays"] == ["1.1 mail.send"]
    assert [each["path"] for each in shown["changes"]] == ["a", "by-hand", "new-2"]
    assert (project / "by-hand").exists()
    await command(rewind, "work", "--to", "1", "--dry-run")
    report = capsys.readouterr()
    assert report.out == "would be modified  a\nwould be deleted   by-hand\nwould be deleted   new-2\n"
    assert "turn 2 would be removed from the conversation\n" in report.err
    assert (project / "by-hand").exists()
    await command(rewind, "work", "--to", "1")
    report = capsys.readouterr()
    assert report.out == "modified  a\ndeleted   by-hand\ndeleted   new-2\n"
    assert "turn 2 is removed from the conversation\nrewound to the end of turn 1\n" in report.err
    assert sorted(path.name for path in project.iterdir()) == ["a", "new-1"]
    assert (project / "a").read_bytes() == b"1"
    last = (await read_events(home))[-1].event
    assert isinstance(last, SessionRewound)
    assert last.turn == 1
    capsys.readouterr()
    await command(rewind, "work")
    assert capsys.readouterr().out == "   0  before the first turn\n   1  task 1\n"
    with pytest.raises(InvalidInput):
        await command(rewind, "work", "--to", "2")
