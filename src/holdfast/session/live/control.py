"""Control requests of other processes, carried out in the live sessions of this one as soon as they are signalled.

Processes of one data directory write them as files, `posted_requests` has those that a shared store keeps.
"""

import asyncio
from contextlib import suppress
from typing import assert_never

from holdfast.core import digest
from holdfast.core.errors import CommitConflict, EscalationUnknown, HoldfastError, InvalidInput
from holdfast.core.events import ControlRequestApplied
from holdfast.gate import (
    AnswerEscalation,
    CancelTurn,
    CommitProposals,
    ControlRequests,
    DecideHunks,
    PostMessage,
    PreviewPort,
    RejectProposals,
    RevealOutput,
    RewindSession,
    SessionRequest,
)
from holdfast.session.live.live_sessions import LiveSessions
from holdfast.session.session import Session
from holdfast.store import FileWatch, Home, private_folder


class ControlWatch:
    """Waits for signals, and carries out the requests to the session that each one names."""

    def __init__(self, home: Home, live: LiveSessions) -> None:
        self._home = home
        self._live = live
        self._files: FileWatch | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Start to watch. Where no more watches are allowed, a request waits for the session's next step, or is withdrawn."""
        private_folder(self._home.request_signals)
        with suppress(OSError):
            self._files = FileWatch(self._home.request_signals, on_name=self._on_signal)

    async def close(self) -> None:
        """Stop, and wait for what is being carried out. Idempotent."""
        if self._files is not None:
            self._files.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_signal(self, name: str | None) -> None:
        for session in self._live.all():
            if name in (None, session.id):  # None: signals were lost
                requests = ControlRequests(self._home.control_requests(session.id))
                task = asyncio.ensure_future(apply_requests(session, requests))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)


async def apply_requests(session: Session, requests: ControlRequests) -> None:
    """Carry out every request to a live session, and record each with its result."""
    if session.is_closed:
        return
    await session.apply_control_requests()
    for name, request in requests.take():
        error = result = ""
        try:
            result = await carry_out(session, request)
        except HoldfastError as refusal:
            error = str(refusal)
        except OSError as problem:
            error = f"it failed: {problem.strerror}"
        await session.record_request(
            ControlRequestApplied(
                request=name,
                action=str(type(request).__struct_config__.tag),
                transport=request.transport,
                principal=request.principal,
                error=error,
                result=result,
            )
        )


async def carry_out(session: Session, request: SessionRequest) -> str:
    """Carry out a request in a live session. Returns what its sender waits for; empty for most requests."""
    session.on_request(request)
    match request:
        case PostMessage():
            if session.receive_message is None:
                raise InvalidInput(
                    "the process that holds this session takes no messages",
                    hint="send it there, or when it has ended",
                )
            session.receive_message(request.text, request.principal)
        case CancelTurn():
            await session.cancel()
        case CommitProposals():
            staged = {each.path: digest(each) for each in session.proposals()}
            changed = sorted(path for path, shown in request.shown.items() if staged.get(path) != shown)
            if changed or not request.shown:
                raise CommitConflict(
                    f"these changes are not the ones that were shown: {', '.join(changed)}",
                    hint="look at them again",
                )
            await session.commit(*request.shown, principal=request.principal)
        case DecideHunks():
            await session.decide_hunks(*request.decisions, principal=request.principal)
        case RejectProposals():
            await session.reject(*request.paths, principal=request.principal)
        case RewindSession():
            await session.rewind(request.turn, shown=request.shown, principal=request.principal)
        case RevealOutput():
            await session.reveal(request.output, principal=request.principal, transport=request.transport)
        case AnswerEscalation():
            await _answer(session, request)
        case PreviewPort():
            return str(await session.preview(request.port, at=request.at))
        case _:
            assert_never(request)
    return ""


async def _answer(session: Session, request: AnswerEscalation) -> None:
    shown = {each.id: each.digest for each in session.escalations()}
    if request.escalation in shown and shown[request.escalation] != request.digest:
        raise EscalationUnknown("what was shown is not what waits", hint="look at it again")
    await session.resolve(
        request.escalation, request.response, principal=request.principal, transport=request.transport
    )
