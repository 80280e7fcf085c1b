"""The claude program as an agent: one process, one conversation, one message in flight."""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from uuid import uuid4

import msgspec

from holdfast.core import Error, Ok, Usage
from holdfast.teams.claude import launch, protocol, transcripts
from holdfast.teams.claude.connection import ClaudeConnection
from holdfast.teams.config.roster import Team
from holdfast.teams.contract import (
    Compaction,
    MemberCapabilities,
    OnCall,
    OpenedConversation,
    TeamMessage,
    TeamReply,
)
from holdfast.teams.errors import MemberFailed, MemberLost, MemberMissing
from holdfast.teams.members.line_process import ASK_AGAIN
from holdfast.teams.message_text import render_message

READY_SECONDS = 60.0
CONTROL_SECONDS = 10.0
GONE = "No conversation found"


class ClaudeAgent:
    """Keeps a conversation over the program's line protocol."""

    kind = "claude"
    capabilities = MemberCapabilities(gate="every-call", is_idempotent=True)

    def __init__(
        self,
        *,
        team: Team,
        folder: Path,
        environ: Mapping[str, str],
        silence_seconds: float,
        teams_server: Mapping[str, object] | None = None,
    ) -> None:
        self._team = team
        self._folder = folder
        self._environ = environ
        self._silence_seconds = silence_seconds
        self._teams_server = teams_server
        self._connection: ClaudeConnection | None = None
        self._conversation = ""
        self._cost: Decimal | None = None
        """The running total of the conversation; None if unknown."""
        self._has_history = False
        self._max_tokens: int | None = None
        """An upper bound for the tokens in the conversation: what all calls of the last turn used; None if unknown."""

    @property
    def is_alive(self) -> bool:
        return self._connection is not None and self._connection.is_alive

    @property
    def pid(self) -> int | None:
        """The process id of the supervisor above the program."""
        return self._connection.pid if self._connection is not None else None

    async def open(self, conversation: str | None) -> OpenedConversation:
        program = launch.find_program(self._team, self._environ)
        launch.create_folders(self._folder)
        kept = conversation or transcripts.newest(self._folder, self._team.project)
        reason = transcripts.resume_problem(self._folder, kept, self._team.project) if kept else ""
        if kept is not None and not reason:
            try:
                version = await self._start(program, "--resume", kept)
                self._conversation = kept
                await self._learn_history()
                return OpenedConversation(conversation=kept, is_new=False, version=version)
            except MemberFailed as error:
                if GONE not in str(error):
                    raise
                reason = "the program no longer knows it"
        return await self._start_new(program, reason)

    async def ask(self, message: TeamMessage, on_call: OnCall) -> TeamReply:
        result = await self._running_connection().turn(
            message.id, protocol.user_message(message.id, render_message(message)), on_call
        )
        if result is None:
            return self._answered_before(message)
        usage = protocol.usage_of(result, cost_before=self._cost)
        self._cost, self._has_history = protocol.total_cost(result), True
        self._max_tokens = usage.input_tokens + usage.output_tokens if usage.input_tokens else None
        return TeamReply(outcome=protocol.outcome_of(result), text=protocol.text_of(result), usage=usage)

    async def compact(self, *, above_tokens: int, estimated_tokens: int) -> Compaction:
        if not self._has_history or (self._max_tokens is not None and self._max_tokens <= above_tokens):
            return "unneeded"
        usage = await self._running_connection().request("get_context_usage", seconds=CONTROL_SECONDS)
        tokens = usage.get("totalTokens")
        if not isinstance(tokens, int) or tokens <= above_tokens:
            return "unneeded"
        id = str(uuid4())
        result = await self._running_connection().turn(id, protocol.slash_command(id, "/compact"))
        return "done" if result is not None and not result.get("is_error") else "unable"

    async def start_over(self) -> OpenedConversation:
        return await self._start_new(launch.find_program(self._team, self._environ), "")

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _learn_history(self) -> None:
        """Read what a resumed conversation has cost so far."""
        self._cost = protocol.reported_cost(
            await self._running_connection().request("get_session_cost", seconds=CONTROL_SECONDS)
        )
        self._has_history, self._max_tokens = True, None

    async def _start_new(self, program: str, reason: str) -> OpenedConversation:
        fresh = str(uuid4())
        version = await self._start(program, "--session-id", fresh)
        self._conversation, self._cost, self._has_history = fresh, Decimal(0), False
        return OpenedConversation(conversation=fresh, is_new=True, version=version, reason=reason)

    async def _start(self, program: str, *conversation: str) -> str:
        await self.close()
        connection = self._connection = await ClaudeConnection.start(
            launch.command(self._team, program=program, conversation=conversation, servers=self._servers()),
            folder=self._team.project,
            environment=launch.environment(self._team, folder=self._folder, environ=self._environ),
            silence_seconds=self._silence_seconds,
        )
        try:
            ready = await connection.request("initialize", seconds=READY_SECONDS)
        except MemberLost as error:
            await self.close()
            raise MemberFailed(f"claude did not start: {connection.last_error or error}") from error
        if ready.get("hook_on_failure_supported") is not True:
            await self.close()
            raise MemberMissing(
                "this version of claude lets a tool run when our gate fails",
                hint="install a newer one with: npm install -g @anthropic-ai/claude-code@latest",
            )
        return str(ready.get("version") or ready.get("claude_code_version") or "")

    def _servers(self) -> Path | None:
        """Write the file that configures the teams server for the program. It holds a token, so only this user may read it."""
        if self._teams_server is None:
            return None
        path = self._folder / "servers.json"
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.encode({"mcpServers": {"teams": self._teams_server}}))
        return path

    def _answered_before(self, message: TeamMessage) -> TeamReply:
        text = transcripts.answer_to(self._folder, self._conversation, message.id)
        notes = ("this message was answered before a crash; this is the answer from then",)
        if text is None:
            lost = Error(
                message="this message was answered before a crash, and the answer is not in the transcript",
                code="answer-lost",
                hint="ask again under another id",
            )
            return TeamReply(outcome=lost, notes=notes)
        return TeamReply(outcome=Ok(value=text), text=text, usage=Usage(), notes=notes)

    def _running_connection(self) -> ClaudeConnection:
        if self._connection is None or not self._connection.is_alive:
            raise MemberLost("claude is not running", hint=ASK_AGAIN)
        return self._connection
