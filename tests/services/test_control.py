"""Control requests: another process asks, and the process that holds the session carries it out at once and records it."""

import asyncio
import sys
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.commands import probe_sandbox
from holdfast.core import Limits, Nonconverged, Ok, Principal, SystemClock, digest
from holdfast.core.errors import SessionNotReady
from holdfast.core.events import ControlRequestApplied, Noted
from holdfast.gate import (
    AnyControlRequest,
    CancelTurn,
    CommitProposals,
    ControlRequests,
    PostMessage,
    PreviewPort,
    RaiseBudget,
    RejectProposals,
    RewindSession,
    SessionRequest,
)
from holdfast.policy import FixedPolicy
from holdfast.services import request_of_holder, send_control_request
from holdfast.session import Session, Settings, view_rewind
from holdfast.store import Store, open_store


@pytest.fixture
async def holder(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(), servers=())
    yield runtime
    await runtime.close()


@pytest.fixture
async def other(holder: Runtime) -> AsyncIterator[Store]:
    """The store as another process opens it."""
    store = await open_store(holder.home, clock=SystemClock(), redact=bytes)
    yield store
    await store.close()


async def staged(holder: Runtime) -> Session:
    session = await holder.create(policy=FixedPolicy(default="stage"), needs_model=False)
    await session.execute("world.write(path='a.txt', content='a')\nworld.write(path='b.txt', content='b')")
    return session


async def ask(holder: Runtime, other: Store, session: Session, request: SessionRequest) -> str:
    """Request something, and return the error that the holder recorded."""
    applied = await request_of_holder(holder.home, other, session.id, request, timeout_seconds=60)
    assert (applied.principal, applied.transport) == (request.principal, "web")
    return applied.error


async def test_changes_are_committed_as_they_were_shown(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    shown = {each.path: digest(each) for each in session.proposals() if each.path == "a.txt"}
    assert await ask(holder, other, session, CommitProposals(shown=shown, transport="web")) == ""
    assert session.workspace.read("a.txt") == b"a"
    assert [each.path for each in session.proposals()] == ["b.txt"]


async def test_a_change_that_is_not_the_one_shown_is_not_committed(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    shown = {each.path: digest(each) for each in session.proposals()}
    await session.execute("world.write(path='a.txt', content='other')")
    refused = await ask(holder, other, session, CommitProposals(shown=shown, transport="web"))
    assert "not the ones that were shown: a.txt" in refused
    assert not session.workspace.exists("a.txt")
    assert not session.workspace.exists("b.txt"), "all or none"


async def test_a_commit_of_nothing_is_refused(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    assert await ask(holder, other, session, CommitProposals(shown={}, transport="web"))
    assert len(session.proposals()) == 2


async def test_changes_are_rejected(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    assert await ask(holder, other, session, RejectProposals(paths=("a.txt",), transport="web")) == ""
    assert [each.path for each in session.proposals()] == ["b.txt"]


async def test_a_turn_is_cancelled(holder: Runtime, other: Store) -> None:
    session = await holder.create(policy=FixedPolicy(default="escalate"), needs_model=False)
    await session.execute("world.write(path='a.txt', content='a')")
    assert len(session.escalations()) == 1
    assert await ask(holder, other, session, CancelTurn(transport="web")) == ""
    assert not session.status.has_open_turn
    assert isinstance(session.history()[-1].outcome, Nonconverged)


async def test_a_session_is_rewound(holder: Runtime, other: Store) -> None:
    session = await holder.create(policy=FixedPolicy(default="allow"), needs_model=False)
    await session.execute("world.write(path='a.txt', content='a')")
    assert await ask(holder, other, session, RewindSession(turn=0, transport="web")) == ""
    assert not session.workspace.exists("a.txt")


async def test_a_session_is_rewound_only_as_shown(holder: Runtime, other: Store) -> None:
    session = await holder.create(policy=FixedPolicy(default="allow"), needs_model=False)
    await session.execute("world.write(path='a.txt', content='a')")
    from_outside = digest(await view_rewind(holder.home, other, session.id, 0))
    request = RewindSession(turn=0, shown=from_outside, transport="web")
    assert await ask(holder, other, session, request) == ""
    assert not session.workspace.exists("a.txt")
    await session.execute("world.write(path='a.txt', content='other')")
    assert "not what was shown; nothing was rewound" in await ask(holder, other, session, request)
    assert session.workspace.exists("a.txt")
    shown = digest(await session.plan_rewind(0))
    assert await ask(holder, other, session, RewindSession(turn=0, shown=shown, transport="web")) == ""
    assert not session.workspace.exists("a.txt")


async def test_a_message_goes_to_a_process_that_takes_messages(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    taken: list[tuple[str, Principal]] = []
    shown: list[AnyControlRequest] = []
    session.on_request = shown.append
    owner = Principal("ci")
    message = PostMessage(text="go on", transport="web", principal=owner)
    assert "takes no messages" in await ask(holder, other, session, message)
    session.receive_message = lambda text, principal: taken.append((text, principal))
    assert await ask(holder, other, session, message) == ""
    assert taken == [("go on", owner)]
    assert shown == [message, message]


async def test_a_raised_budget_applies_without_a_call(holder: Runtime, other: Store) -> None:
    session = await holder.create(
        policy=FixedPolicy(default="allow"), needs_model=False, limits=Limits(calls=1)
    )
    raised = asyncio.Event()
    shown: list[AnyControlRequest] = []
    session.on_request = shown.append
    session.follow(lambda entry: raised.set() if session.budget.limits.calls == 6 else None)
    request = RaiseBudget(added=Limits(calls=5), transport="web")
    assert await send_control_request(holder.home, other, session.id, request)
    async with asyncio.timeout(60):
        await raised.wait()
    assert shown == [request]


async def test_a_request_that_no_process_takes_is_withdrawn(holder: Runtime, other: Store) -> None:
    session = await staged(holder)
    await holder._control.close()  # as in a process that hangs
    with pytest.raises(SessionNotReady, match="did not react"):
        await request_of_holder(holder.home, other, session.id, CancelTurn(), timeout_seconds=0.05)
    assert ControlRequests(holder.home.control_requests(session.id)).count() == 0


async def test_a_request_that_was_left_over_is_not_carried_out_later(holder: Runtime) -> None:
    session = await staged(holder)
    await session.close()
    ControlRequests(holder.home.control_requests(session.id)).put(RejectProposals(paths=("a.txt",)))
    again = await holder.resume(session.id, needs_model=False, policy=FixedPolicy(default="stage"))
    assert len(again.proposals()) == 2
    assert any(note.code == "request-expired" for note in again.notes())
    assert not any(
        isinstance(entry.event, ControlRequestApplied) for entry in await holder.store.read(again.id)
    )


async def test_a_request_that_is_not_valid_is_refused_and_noted(holder: Runtime) -> None:
    session = await staged(holder)
    folder = holder.home.control_requests(session.id)
    folder.mkdir(mode=0o700)
    (folder / "x.json").write_text('{"do":"commit-proposals","shown":{"a.txt":1}}')
    await session.apply_control_requests()
    notes = [e.event for e in await holder.store.read(session.id) if isinstance(e.event, Noted)]
    assert [note.code for note in notes] == ["request-refused"]
    assert len(session.proposals()) == 2


async def test_a_server_in_the_sandbox_is_opened_to_the_browser_from_another_terminal(
    holder: Runtime, other: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if (await probe_sandbox(tmp_path / "probe")).tier != "full":
        pytest.skip("the full sandbox does not stand here")
    session = await holder.create(policy="scratch", needs_model=False)
    nothing = PreviewPort(port=8000, transport="web")
    assert "no program runs in the background" in await ask(holder, other, session, nothing)
    server = "python3 -m http.server 8000 --bind 127.0.0.1"
    start = f"shell.start(script='echo served > a.txt && {server}', ready={{'port': 8000}})['is_ready']"
    assert await session.execute(start) == Ok(value=True)
    monkeypatch.setenv("HOLDFAST_HOME", str(holder.home.root))
    command = [sys.executable, "-m", "holdfast", "preview", "8000", session.id]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    address = (await process.communicate())[0].decode().strip()
    assert process.returncode == 0

    def fetch() -> bytes:
        with urllib.request.urlopen(f"{address}a.txt") as reply:
            content: bytes = reply.read()
            return content

    assert await asyncio.to_thread(fetch) == b"served\n"
