"""A session: a conversation with memory and a boundary. It runs one turn at a time, and its journal records everything."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.agent import Conversation, ModelStep, Turn
from holdfast.commands import MAX_TIMEOUT_SECONDS, ProcessStatus, SandboxStatus
from holdfast.core import (
    DIMENSIONS,
    PERSON,
    Attachment,
    Call,
    Escalation,
    EscalationId,
    Grant,
    GrantId,
    JsonObject,
    Level,
    Limits,
    Nonconverged,
    Outcome,
    Principal,
    Response,
    SessionId,
    digest_bytes,
)
from holdfast.core.errors import InvalidInput, SessionNotReady
from holdfast.core.events import (
    BudgetRaised,
    CodePosted,
    CommitsAccepted,
    CommitsProposed,
    ControlRequestApplied,
    Event,
    MessagePosted,
    Noted,
    OutputRevealed,
    ProposalsCommitted,
    ProposalsRejected,
    ProposalsSplit,
    RecordedEvent,
    SessionClosed,
    SessionPaused,
    SessionRenamed,
    SessionResumed,
    SessionRewound,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.projection import imported_through, without_rewound
from holdfast.gate import (
    AnyControlRequest,
    AuditEntry,
    AuditStats,
    Budget,
    Gate,
    JournalRequest,
    Ruling,
    audit_stats,
    audit_view,
)
from holdfast.guests import check_timeout
from holdfast.models import OnPiece, estimate_media_tokens
from holdfast.policy import Policy
from holdfast.session.approver import Approver, ask_approver
from holdfast.session.branches.merge import Merge, MergePlan, MergeSide, fork_base, parent_of
from holdfast.session.branches.rewind_fork import RewindPlan, changed_by_others, plan_rewind
from holdfast.session.commands.session_commands import SessionCommands
from holdfast.session.diagnostics import Diagnostic, diagnostics_of
from holdfast.session.event_stream import EventStream
from holdfast.session.restore_points import TurnRestorePoints
from holdfast.session.staged_changes import approved_paths, committed_since, restage
from holdfast.session.status import Activity, Status, TurnRecord
from holdfast.session.turn_lock import TurnLock
from holdfast.session.turn_result import TurnResult
from holdfast.store import Journal, Store, as_work_store, chosen_name, shortened_note
from holdfast.world import HunkDecision, Proposal, StagedWorld, World


class AttachedFile(NamedTuple):
    """A picture or document with its content."""

    attachment: Attachment
    content: bytes


class AttachedText(NamedTuple):
    """Where the text of files begins in a message, and the digests of the files."""

    start: int
    digests: tuple[str, ...]


def attached_file(name: str, media_type: str, content: bytes) -> AttachedFile:
    """A file to send with a message."""
    attachment = Attachment(
        name=name,
        media_type=media_type,
        digest=digest_bytes(content),
        size=len(content),
        tokens=estimate_media_tokens(media_type, content),
    )
    return AttachedFile(attachment, content)


class Session:
    """One live session. `build_session` makes it; closing it releases what it holds and deletes nothing."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        status: Status,
        gate: Gate,
        model_step: ModelStep,
        turn: Turn,
        staged: StagedWorld,
        store: Store,
        restore_points: TurnRestorePoints,
        resources: AsyncExitStack,
        commands: SessionCommands | None = None,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._model_step = model_step
        self._turn = turn
        self._staged = staged
        self._store = store
        self._restore_points = restore_points
        self._resources = resources
        self._commands = commands
        self._lock = TurnLock(journal.session, status)
        self._event_stream = EventStream(journal)
        self._closing: asyncio.Task[None] | None = None
        self.is_suspended = False
        """Whether its lease is released and everything else is kept: see `suspend`."""
        self.status = status
        self.workspace: World = staged.base
        self.approver: Approver | None = None
        self.approver_name = "approver"
        """The transport recorded for the approver's answers."""
        self.project_instructions: tuple[str, ...] = ()
        """The files that the model has as instructions from the start."""
        self.server_problems: tuple[str, ...] = ()
        """Which MCP servers cannot be used as it was opened, and why."""
        self.on_piece: OnPiece = lambda _: None
        """Receives the pieces of a model's reply while it arrives."""
        self.on_request: Callable[[AnyControlRequest], None] = lambda _: None
        """Receives each control request of another process, before it is carried out, to show it."""
        gate.on_request = lambda request: self.on_request(request)
        self.receive_message: Callable[[str, Principal], None] | None = None
        """Takes a message that another process sends to the agent, and whose it is; None if this process takes none."""
        self.on_output: Callable[[str], None] = lambda _: None
        """Receives the output of a program while it runs."""
        if commands is not None:
            commands.toolset.on_output = lambda _, text: self.on_output(text)
            commands.ask_person = self._ask_here

    def __repr__(self) -> str:
        return f"<Session {self.id}, {self.activity}>"

    @property
    def id(self) -> SessionId:
        """The session's id, which is its only key."""
        return self._journal.session

    @property
    def activity(self) -> Activity:
        """What the session is doing here; `initializing` while its servers start, `closed` once it is released."""
        if self._lock.is_closed:
            return "closed"
        return "initializing" if self._lock.is_preparing else self.status.activity

    @property
    def description(self) -> str:
        """What the creator of the session wrote about it."""
        return self.status.opened.description if self.status.opened is not None else ""

    @property
    def is_closed(self) -> bool:
        """Whether this process has released the session."""
        return self._lock.is_closed

    def preparing(self) -> AbstractContextManager[None]:
        """Refuse every turn while the block runs."""
        return self._lock.preparing()

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        """Every event so far, in order."""
        return self._journal.recorded

    @property
    def last_seq(self) -> int:
        """The sequence number of the newest event."""
        return self._journal.recorded[-1].seq

    @property
    def budget(self) -> Budget:
        """What may still be spent."""
        return self._gate.budget

    async def raise_budget(
        self, limits: Limits, *, added: Limits | None = None, principal: Principal = PERSON
    ) -> None:
        """Replace the session's limits; a turn that ran out of budget can resume with `advance`.

        The current turn and the tree get the same increase: `added`, by default the difference.
        """
        self._lock.check_live()
        added = limits.above(self.budget.limits) if added is None else added
        await self._journal.append(BudgetRaised(limits=limits, added=added, principal=principal))
        await self.budget.synchronize()

    def unknown_calls(self) -> tuple[Call, ...]:
        """Calls that were interrupted: whether they took effect is unknown, so check before asking for them again."""
        interrupted = self._gate.calls.all_interrupted()
        calls = tuple(intended.call for intended in interrupted if not intended.is_idempotent)
        # While a turn runs here, its own calls are not interrupted, only not finished.
        return (
            calls
            if self._lock.holder is None
            else tuple(c for c in calls if c.turn < self._conversation.turn)
        )

    # -- turns

    def can_continue(self) -> bool:
        """Whether the host can go on, with a message or with `advance`: the session is open here, it is neither paused
        nor over, and its budget is not spent. A turn that needed more than is left counts as spent until the limit is raised.
        """
        if self.is_closed or self.status.lifecycle != "open" or not self.budget.has_remaining():
            return False
        outcome = self.status.turns[-1].outcome if self.status.turns else None
        if not isinstance(outcome, Nonconverged) or outcome.reason != "budget":
            return True
        stopped_at = next((each for each in DIMENSIONS if each == outcome.dimension), None)
        return self.status.can_reopen_turn or (
            stopped_at is not None and self.budget.is_turn_limit(stopped_at)
        )

    async def send(
        self,
        text: str,
        *,
        principal: Principal = PERSON,
        transport: str = "library",
        message: str = "",
        queue: bool = False,
        files: Sequence[AttachedFile] = (),
        attached_text: AttachedText | None = None,
    ) -> Outcome:
        """Send one message and run the turn until it ends, or until it waits for a person who cannot be asked here (`Needs`).

        `files` are pictures and documents for models that take them. `attached_text` says which part of the text comes from files.

        While a turn is open a message is refused or, with `queue`, waits until that turn is over. It is recorded only then.
        """
        async with self._lock.acquire(queue=queue):
            turn = len(self.status.turns) + 1
            posted = MessagePosted(
                turn=turn,
                text=text,
                principal=principal,
                transport=transport,
                message=message,
                attachments=tuple(each.attachment for each in files),
                typed=attached_text.start if attached_text is not None else None,
                quoted=attached_text.digests if attached_text is not None else (),
            )
            return await self._drive(posted, blobs=[each.content for each in files])

    async def execute(
        self,
        code: str,
        *,
        language: str | None = None,
        timeout_seconds: float | None = None,
        principal: Principal = PERSON,
    ) -> Outcome:
        """Run code of the host as a turn: same gate, same journal, no model.

        `language` is `python`, `lisp` or a sandbox; by default the session's own. Each sandbox keeps its own variables.

        `timeout_seconds` is how long this run may take, from 1 to 300, without waits for calls; by default
        `code.wall_seconds` of the configuration, which is 30. A configured limit of code stays an upper bound.
        With the language `shell`, a script for bash, it is from 1 to 1800, which is also the default.
        """
        longest = {"most": MAX_TIMEOUT_SECONDS} if language == "shell" else {}
        timeout = None if timeout_seconds is None else check_timeout(timeout_seconds, **longest)
        async with self._lock.acquire():
            posted = CodePosted(
                turn=len(self.status.turns) + 1,
                code=code,
                language=self._turn.language_of(language),
                principal=principal,
                timeout_seconds=timeout,
            )
            return await self._drive(posted)

    async def advance(self) -> Outcome | None:
        """Resume a turn that was interrupted, waited, or ran out of a budget that was raised; None if there is none."""
        self._lock.check_live()
        await self._gate.apply_control_requests()  # another process may have raised a limit
        if not self.status.has_open_turn and not self.status.can_reopen_turn:
            return None
        if self._lock.holder is not None:
            raise SessionNotReady("a turn is running", hint="wait for it, or cancel it")
        with self._lock.hold():
            if not self.status.has_open_turn:
                await self._journal.append(TurnReopened(turn=self._conversation.turn))
            return await self._drive()

    async def rest(self) -> None:
        """Return when the turn that runs has taken its step: its calls have ended, and it makes no others. Then close the session."""
        await self._turn.rest()

    async def preload_model(self) -> None:
        """Load the library of the session's model before its first request, while the person types."""
        await self._model_step.preload()

    async def compact(self, *, keep_turns: int = 2) -> str:
        """Replace older turns with a summary and return it; the originals stay in the journal."""
        async with self._lock.acquire():
            return await self._model_step.compact(keep_turns=keep_turns)

    def hidden_outputs(self) -> dict[str, Level]:
        """The outputs that the model knows by name only, each with the level of its words."""
        return self._turn.hidden_outputs()

    async def reveal(
        self, output: str, *, principal: Principal = PERSON, transport: str = "library"
    ) -> OutputRevealed:
        """Let the model read an output that it knows by name only. What it writes from then on has the level of the words.

        Raises InvalidInput if there is no such output.
        """
        async with self._lock.acquire():
            event = await self._turn.revealed(output, principal=principal, transport=transport)
            await self._journal.append(event)
        return event

    async def make_title(self) -> str:
        """Ask the model for a title of the session, beside its turns, and return it. Raises BudgetExceeded or ModelError."""
        self._lock.check_live()
        return await self._model_step.make_title()

    async def cancel(self) -> None:
        """End the open turn, whether it runs or waits. What it did is kept, and the session is ready again."""
        if self._lock.holder is not None:
            await self._lock.cancel_holder()
        elif self.status.has_open_turn and not self._lock.is_closed:
            with self._lock.hold():
                await self._end_cancelled()

    # -- approvals and proposals

    def escalations(self) -> tuple[Escalation, ...]:
        """Open escalations, oldest first."""
        return self._gate.escalations.waiting()

    async def preview_edit(self, escalation: Escalation, arguments: JsonObject) -> Escalation:
        """The escalation as it would be with other arguments: its targets and the decision. Nothing is recorded."""
        return await self._gate.preview_edit(escalation, arguments)

    async def resolve(
        self,
        escalation: EscalationId,
        response: Response,
        *,
        principal: Principal = PERSON,
        transport: str = "library",
    ) -> Ruling:
        """Answer an escalation. Raises EscalationUnknown if it was already answered or has expired."""
        return await self._gate.resolve(escalation, response, principal=principal, transport=transport)

    @property
    def policy(self) -> Policy:
        """The policy that judges the calls of this session."""
        return self._gate.policy

    def grants(self) -> tuple[Grant, ...]:
        """The active grants, of this session and of every session."""
        return self._gate.grants.active()

    async def revoke(self, grant: GrantId) -> None:
        """Revoke a grant. A grant of every session is revoked with `holdfast grants revoke`."""
        await self._gate.revoke(grant)

    def proposals(self) -> tuple[Proposal, ...]:
        """Staged changes that wait to be committed or rejected."""
        return self._staged.proposals()

    def staged_paths(self) -> tuple[str, ...]:
        """The paths of staged changes, without their diffs, which take time for large files."""
        return self._staged.staged_paths()

    async def commit(
        self, *paths: str, principal: Principal = PERSON, approve: bool = False
    ) -> tuple[str, ...]:
        """Commit staged changes, all of these or none. Raises CommitConflict.

        A proposal that asks (`Proposal.asks`) is committed only if its own path is given, or with `approve`. Without
        that it stays staged.
        """
        self._lock.check_not_closed()
        changes = self._staged.commit(approved_paths(self._staged, paths, approve=approve))
        saved = await self._restore_points.checkpoint(len(self.status.turns))
        await self._journal.append(ProposalsCommitted(changes=changes, principal=principal), *saved)
        await self._save_decision()
        return tuple(change.path for change in changes)

    async def decide_hunks(self, *decisions: HunkDecision, principal: Principal = PERSON) -> tuple[str, ...]:
        """Commit the accepted hunks of staged changes, all or none, and drop the rejected ones; the others stay staged.

        Returns the files that were changed. Raises CommitConflict if a file or a proposal is not what was shown, InvalidInput
        if a hunk does not exist.
        """
        self._lock.check_not_closed()
        split = await asyncio.to_thread(self._staged.split, decisions)
        parts, rests = self._staged.recorded(split)
        if parts or rests:
            # Before the commit, so that after a crash it is known what stays staged.
            blobs = [*split.parts.values(), *split.rests.values()]
            await self._journal.append(
                ProposalsSplit(parts=parts, rests=rests, principal=principal), blobs=blobs
            )
        changes = self._staged.apply_split(split)
        events: list[Event] = []
        if split.dropped:
            events.append(ProposalsRejected(paths=tuple(split.dropped), principal=principal))
        if changes:
            events.append(ProposalsCommitted(changes=changes, principal=principal))
            events += await self._restore_points.checkpoint(len(self.status.turns))
        if events:
            await self._journal.append(*events)
            await self._save_decision()
        return tuple(change.path for change in changes)

    def copy_proposed(self, folder: Path) -> None:
        """Copy the workspace, with every staged change applied, to a folder on disk."""
        self._staged.copy_out(".", folder)

    async def reject(self, *paths: str, principal: Principal = PERSON) -> tuple[str, ...]:
        """Drop staged changes; the session continues."""
        self._lock.check_not_closed()
        dropped = self._staged.reject(paths or None)
        await self._journal.append(ProposalsRejected(paths=dropped, principal=principal))
        await self._save_decision()
        return dropped

    async def _save_decision(self) -> None:
        """Make a restore point between turns: a fork and an undo start from here, where nothing that was decided is staged."""
        if self.status.turns and self._lock.holder is None and not self.status.has_open_turn:
            await self._restore_points.make(len(self.status.turns))

    # -- merge

    async def plan_merge(self, fork: "Session", *paths: str) -> MergePlan:
        """What a merge of a fork of this session would change here, and what conflicts. Changes nothing."""
        return (await self._prepare_merge(fork, paths)).plan()

    async def merge(
        self,
        fork: "Session",
        *paths: str,
        shown: MergePlan | None = None,
        principal: Principal = PERSON,
    ) -> MergePlan:
        """Commit what a fork of this session changed, or only these paths, all or nothing. Raises CommitConflict.

        With `shown`, the plan that a person approved, only if it is still the same.
        """
        with self._lock.hold_idle(), fork._lock.hold_idle():
            merge = await self._prepare_merge(fork, paths)
            plan = merge.plan()
            plan.check(shown)
            await merge.commit(self._store, principal, fork=fork._journal, parent=self._journal)
            if self.status.turns and not self.status.has_open_turn:
                await self._restore_points.make(len(self.status.turns))
        return plan

    async def _prepare_merge(self, fork: "Session", paths: Sequence[str]) -> Merge:
        recorded = fork._journal.recorded
        if parent_of(fork.id, recorded).session != self.id:
            raise InvalidInput(f"session {fork.id} is not a fork of {self.id}")
        merge = Merge(
            fork=MergeSide(fork.id, recorded, fork._staged),
            parent=MergeSide(self.id, self._journal.recorded, self._staged),
            changes=await fork._restore_points.changes_since(fork_base(recorded)),
        )
        merge.stage(paths)
        return merge

    # -- commits made in the sandbox

    def offered_commits(self) -> tuple[CommitsProposed, ...]:
        """Commits that wait for the person, the newest of each repository."""
        waiting: dict[str, CommitsProposed] = {}
        imported = imported_through(self._journal.recorded)
        for entry in without_rewound(self._journal.recorded):
            match entry.event:
                case _ if entry.seq <= imported:
                    pass  # a file can show other commits than it holds
                case CommitsProposed():
                    waiting[entry.event.repository] = entry.event
                case CommitsAccepted():
                    waiting.pop(entry.event.repository, None)
                case _:
                    pass
        return tuple(waiting.values())

    async def accept_commits(
        self, *, heads: Collection[str] | None = None, principal: Principal = PERSON
    ) -> tuple[CommitsAccepted, ...]:
        """Take the offered commits into the repository, as objects and one branch; with `heads` only these. Raises CommandError."""
        self._lock.check_not_closed()
        if self._commands is None or self._commands.git is None:
            raise InvalidInput("this session cannot run programs", hint="see why with: holdfast doctor")
        accepted: list[CommitsAccepted] = []
        for offered in self.offered_commits():
            if heads is not None and offered.head not in heads:
                continue
            done = await self._commands.git.accept(offered, replaces=self._last_accepted(offered.repository))
            event = CommitsAccepted(
                repository=done.repository,
                ref=done.ref,
                before=done.before,
                after=done.after,
                principal=principal,
            )
            await self._journal.append(event)
            accepted.append(event)
        return tuple(accepted)

    def _last_accepted(self, repository: str) -> str:
        """The head that was last accepted, also before a rewind: a rewritten branch may replace it."""
        recorded = self._journal.recorded
        imported = imported_through(recorded)
        accepted = [
            entry.event
            for entry in recorded
            if isinstance(entry.event, CommitsAccepted) and entry.seq > imported
        ]
        return next((event.after for event in reversed(accepted) if event.repository == repository), "")

    # -- programs

    def processes(self) -> tuple[ProcessStatus, ...]:
        """The programs that the agent started in the background, running or ended."""
        return self._commands.processes() if self._commands is not None else ()

    async def preview(self, port: int, *, at: int = 0) -> int:
        """Forward a port of this machine to a program in the background. Returns the port. Raises CommandError."""
        if self._commands is None:
            raise InvalidInput("this session cannot run programs", hint="see why with: holdfast doctor")
        return await self._commands.preview(port, at=at)

    @property
    def sandbox_status(self) -> SandboxStatus:
        """The sandbox that programs run in; its tier is `none` if the session runs no programs."""
        return self._commands.status if self._commands is not None else SandboxStatus(tier="none")

    # -- rewind

    async def plan_rewind(self, to: int) -> RewindPlan:
        """What a rewind to the end of a turn would change, and what cannot be undone. 0 is before the first turn."""
        plan = plan_rewind(self._journal.recorded, to, has_open_ports=self._has_open_ports)
        return await self._restore_points.preview(plan)

    async def rewind(self, to: int, *, shown: str = "", principal: Principal = PERSON) -> RewindPlan:
        """Rewind to the end of a turn: messages, files, staged changes, budget and grants together.

        With `shown`, the digest of the plan that a person approved, only if it is still the same; else raises CommitConflict.
        """
        async with self._lock.acquire():
            plan = await self.plan_rewind(to)
            if shown:
                # A process without the lease names the effects of all programs, see `view_rewind`.
                cautious = plan_rewind(self._journal.recorded, to)
                plan.check(shown, msgspec.structs.replace(plan, stays=cautious.stays))
            await self._rewind(plan, principal)
        return plan

    async def plan_undo(self) -> RewindPlan:
        """What `undo` would change, and what cannot be undone. Raises InvalidInput if there is no turn."""
        if not self.status.turns:
            raise InvalidInput("there is no turn to undo")
        recorded = self._journal.recorded
        before = self.status.turns[-1].number - 1
        plan = plan_rewind(recorded, before, is_newest=True, has_open_ports=self._has_open_ports)
        kept = committed_since(recorded, plan.seq)
        shown = await self._restore_points.preview(plan)
        changes = tuple(change for change in shown.changes if change.path not in kept)
        plan = msgspec.structs.replace(shown, changes=changes, kept=kept)
        return msgspec.structs.replace(plan, by_others=changed_by_others(recorded, plan))

    async def undo(self, *, principal: Principal = PERSON) -> RewindPlan:
        """Undo the last turn and what was committed of it. Older changes that were committed since then stay committed."""
        async with self._lock.acquire():
            plan = await self.plan_undo()
            await self._rewind(plan, principal)
            if plan.kept:
                changes = self._staged.commit(plan.kept)
                await self._journal.append(ProposalsCommitted(changes=changes, principal=principal))
                await self._restore_points.make(plan.turn)
        return plan

    @property
    def _has_open_ports(self) -> bool:
        return self._commands is None or self._commands.has_open_ports

    async def _rewind(self, plan: RewindPlan, principal: Principal) -> None:
        if self._commands is not None:
            await self._commands.rewind()
        await self._restore_points.restore(plan)
        await self._journal.append(SessionRewound(seq=plan.seq, turn=plan.turn, principal=principal))
        await restage(self._staged, self._journal, self._store)

    async def save_restore_point(self) -> None:
        """Make a restore point of the workspace as it is now."""
        async with self._lock.acquire():
            await self._restore_points.make(len(self.status.turns))

    # -- history

    def history(self) -> tuple[TurnRecord, ...]:
        """Every turn, numbered from 1."""
        return tuple(self.status.turns)

    def last_turn(self) -> TurnResult | None:
        """The result of the last turn, with the budget and the proposals as they are now; None before the first turn."""
        if not self.status.turns:
            return None
        turn = self.status.turns[-1]
        return TurnResult(
            outcome=turn.outcome,
            turn_number=turn.number,
            budget_remaining=self.budget.remaining_all(),
            proposals=self.proposals(),
            prompt_tokens=turn.prompt_tokens,
            completion_tokens=turn.completion_tokens,
            spent=turn.spent,
        )

    def notes(self) -> tuple[Noted, ...]:
        """The newest thousand notes about the session, oldest first."""
        return tuple(self.status.notes)

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The newest thousand notes, calls and texts of the agent as short lines, oldest first."""
        return diagnostics_of(self._journal.recorded)

    def audit_stats(self) -> AuditStats:
        """Totals of the audit log: calls by operation and by result, and tokens."""
        return audit_stats(self._journal.recorded)

    def audit(self, *, turn: int | None = None, operation: str | None = None) -> list[AuditEntry]:
        """Every recorded call, refusals included."""
        return audit_view(self._journal.recorded, turn=turn, operation=operation)

    @property
    def instruction_files(self) -> tuple[str, ...]:
        """The files of the project that the model has as instructions of the person, those of folders it works in included."""
        return (*self.project_instructions, *self._turn.instruction_files)

    def follow(self, follower: Callable[[RecordedEvent], None]) -> None:
        """Call a function with every past and future event. It must neither raise nor block."""
        self._journal.follow(follower)

    def events(self, *, after: int = 0) -> AsyncIterator[RecordedEvent]:
        """Every event after a sequence number, then each new one once it is durable; ends when the session is closed."""
        return self._event_stream.events(after)

    async def note(self, code: str, text: str) -> None:
        """Record a note that changes nothing."""
        await self._journal.append(Noted(code=code, text=text))

    async def apply_control_requests(self) -> None:
        """Apply what other processes requested of the budget and the grants."""
        await self._gate.apply_control_requests()

    async def apply_request(self, name: str, request: JournalRequest) -> None:
        """Apply a request of another process to the budget or the grants, once under its name."""
        self._lock.check_not_closed()
        await self._gate.apply_request(name, request)

    async def record_request(self, applied: ControlRequestApplied) -> None:
        """Record a control request that was carried out or refused."""
        if not self.is_closed:
            await self._journal.append(applied)

    # -- lifecycle

    async def rename(self, name: str | None) -> None:
        """Rename the session, or remove its name. Raises InvalidName, SessionExists."""
        kept = chosen_name(name) if name is not None else None
        await self._journal.append(SessionRenamed(name=kept))
        if note := shortened_note(name):
            await self.note("name-shortened", note)

    async def pause(self) -> None:
        """Refuse turns until the session is resumed."""
        self._lock.check_ready()
        await self._journal.append(SessionPaused())

    async def resume(self) -> None:
        """Accept turns again."""
        self._lock.check_live()
        if self.status.lifecycle == "paused":
            await self._journal.append(SessionResumed())

    async def abort(self, reason: str = "") -> None:
        """End the session for good and drop what is staged."""
        self._lock.check_live()
        await self.cancel()
        if self._staged.staged_paths():
            await self.reject()
        await self._journal.append(SessionClosed(how="aborted", reason=reason))
        await self.close()

    async def complete(self, reason: str = "") -> None:
        """End the session for good, as completed."""
        self._lock.check_ready()
        await self._journal.append(SessionClosed(how="completed", reason=reason))
        await self.close()

    async def suspend(self) -> bool:
        """Release the lease and keep everything else, for a process that may soon be asked again. False if it cannot wait.

        Until `wake` it refuses everything, like a closed one.
        """
        is_idle = self.status.lifecycle == "open" and not (self._lock.is_busy or self.escalations())
        if self.is_closed or not is_idle or self.processes() or as_work_store(self._store) is None:
            return False
        self.is_suspended = self._lock.is_closed = True
        await self._journal.release()
        return True

    async def wake(self) -> bool:
        """Take the lease again. False if another process held the session since: then close it and open it again."""
        store = as_work_store(self._store)
        if self._closing is None and store is not None and await store.retake(self._journal):
            self.is_suspended = self._lock.is_closed = False
        return not self.is_suspended

    async def close(self) -> None:
        """Release everything this process holds. Idempotent and prompt; the session can be resumed later.

        Once started it runs to completion, even if its caller is cancelled.
        """
        if self._closing is None:
            self._lock.is_closed = True
            self._closing = asyncio.create_task(self._release())
        await asyncio.shield(self._closing)

    # -- inside

    async def _release(self) -> None:
        await self._lock.cancel_holder()
        self._lock.reject_waiters()
        self._event_stream.end()
        await self._resources.aclose()

    async def _ask_here(self) -> None:
        """Ask the approver about what waits while a program runs."""
        if self.approver is not None:
            await ask_approver(self.approver, self._gate, transport=self.approver_name)

    async def _drive(self, *posted: Event, blobs: Sequence[bytes] = ()) -> Outcome:
        try:
            if posted:
                self.workspace.recount()
                await self._restore_points.make_missing(len(self.status.turns))
                await self._post(*posted, blobs=blobs)
            outcome = await self._turn.advance(self.on_piece)
            while self.escalations() and self.approver is not None:
                await ask_approver(self.approver, self._gate, transport=self.approver_name)
                outcome = await self._turn.advance(self.on_piece)
            await self.budget.synchronize()
            if not self.status.has_open_turn:
                await self._restore_points.make(self._conversation.turn)
            return outcome
        except asyncio.CancelledError:
            if self.status.has_open_turn and not self._lock.is_closed:
                await _shielded(self._end_cancelled())
            elif self.status.has_open_turn:
                await _shielded(self._turn.park())
            raise

    async def _post(self, *posted: Event, blobs: Sequence[bytes] = ()) -> None:
        try:
            await self._journal.append(*posted, blobs=blobs)
        except UnicodeEncodeError:
            raise InvalidInput(
                "the text contains half of a surrogate pair", hint="send valid Unicode text"
            ) from None

    async def _end_cancelled(self) -> None:
        for escalation in self.escalations():
            await self._gate.escalations.expire(escalation.id, "the turn was cancelled")
        ended = TurnEnded(
            turn=self._conversation.turn,
            outcome=Nonconverged(reason="cancelled"),
            wall_seconds=self._turn.take_worked_seconds(),
        )
        await self._journal.append(ended)
        await self.budget.synchronize()
        await self._restore_points.make(ended.turn)


async def _shielded(work: Coroutine[object, object, None]) -> None:
    """Finish the last writes of a turn, even if the caller is cancelled again meanwhile."""
    writing = asyncio.create_task(work)
    while not writing.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(writing)
    writing.result()
