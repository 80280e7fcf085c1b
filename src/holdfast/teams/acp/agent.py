"""An agent of the Agent Client Protocol: one process, one conversation, one message in flight.

The protocol lets an agent ask permission before a tool, but does not require it. Its gate is therefore `asks` and not
`every-call`, the roster must accept that, and the reply lists the tools that ran without permission.
"""

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any

from acp import RequestError
from acp.schema import HttpHeader, HttpMcpServer
from pydantic import ValidationError

import holdfast.teams.members.agent_home as agent_home
from holdfast.core import Error, Ok, Outcome, Usage, pluralize
from holdfast.teams.acp.connection import AcpConnection, TurnUpdates
from holdfast.teams.acp.tools import GROUP
from holdfast.teams.config.roster import Team
from holdfast.teams.contract import (
    Compaction,
    MemberCapabilities,
    OnCall,
    OpenedConversation,
    TeamMessage,
    TeamReply,
)
from holdfast.teams.errors import MemberFailed, MemberLost
from holdfast.teams.members.line_process import ASK_AGAIN
from holdfast.teams.message_text import render_message

COMPACT = "compact"
AUTHENTICATION_NEEDED = -32000


class AcpAgent:
    """Keeps a conversation with an ACP agent."""

    kind = GROUP
    capabilities = MemberCapabilities(gate="asks", is_idempotent=False)

    def __init__(
        self,
        *,
        team: Team,
        folder: Path,
        environ: Mapping[str, str],
        silence_seconds: float,
        teams_server: Mapping[str, Any] | None = None,
    ) -> None:
        self._team = team
        self._folder = folder
        self._environ = environ
        self._silence_seconds = silence_seconds
        self._teams_server = teams_server
        self._name = PurePath(team.program).name
        self._connection: AcpConnection | None = None
        self._conversation = ""
        self._cost = Decimal(0)

    @property
    def is_alive(self) -> bool:
        return self._connection is not None and self._connection.is_alive

    @property
    def pid(self) -> int | None:
        """The process id of the supervisor above the program."""
        return self._connection.pid if self._connection is not None else None

    async def open(self, conversation: str | None) -> OpenedConversation:
        return await self._connect(conversation, is_new=False)

    async def _connect(self, conversation: str | None, *, is_new: bool) -> OpenedConversation:
        await self.close()
        agent_home.create_folders(self._folder)
        program = agent_home.find_program(
            self._team.program, self._environ, hint="install it, or correct program: in the roster"
        )
        self._connection = await AcpConnection.start(
            (program, *self._team.arguments),
            name=self._name,
            folder=self._team.project,
            environment=agent_home.environment(self._team, folder=self._folder, environ=self._environ),
            silence_seconds=self._silence_seconds,
        )
        try:
            return await self._bind(self._connection, conversation, is_new=is_new)
        except (MemberLost, RequestError, ValidationError) as error:
            await self.close()
            needs_login = isinstance(error, RequestError) and error.code == AUTHENTICATION_NEEDED
            raise MemberFailed(
                f"{self._name} did not start: {_error_text(error)}",
                hint="name the variable that holds its key in environment:" if needs_login else None,
            ) from error
        except MemberFailed:
            await self.close()
            raise

    async def ask(self, message: TeamMessage, on_call: OnCall) -> TeamReply:
        try:
            answer, updates = await self._running_connection().turn(
                self._conversation, render_message(message), on_call
            )
        except (RequestError, ValidationError) as error:
            return TeamReply(outcome=Error(message=_error_text(error), code="agent-failed"))
        text = "".join(updates.texts)
        outcome = _outcome(answer.stop_reason, text)
        return TeamReply(
            outcome=outcome, text=text, usage=self._usage(answer.usage), notes=_unasked_note(updates)
        )

    async def compact(self, *, above_tokens: int, estimated_tokens: int) -> Compaction:
        connection = self._running_connection()
        if (connection.used_tokens or estimated_tokens) <= above_tokens:
            return "unneeded"
        if COMPACT not in connection.commands:
            return "unable"
        answer, _ = await connection.turn(self._conversation, f"/{COMPACT}", None)
        return "done" if answer.stop_reason == "end_turn" else "unable"

    async def start_over(self) -> OpenedConversation:
        # Another process, because an agent may keep only one conversation at a time.
        return await self._connect(None, is_new=True)

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _bind(
        self, connection: AcpConnection, conversation: str | None, *, is_new: bool
    ) -> OpenedConversation:
        ready = await connection.initialize()
        capabilities = ready.agent_capabilities
        version = f"{ready.agent_info.name} {ready.agent_info.version}" if ready.agent_info else ""
        options = {"cwd": self._team.project, "mcp_servers": self._servers(capabilities)}
        kept = None if is_new else conversation or await self._latest(connection, capabilities)
        reason = ""
        if kept is not None and capabilities is not None and capabilities.load_session:
            try:
                loaded = await connection.request(
                    connection.agent.load_session(session_id=kept, **options), "session/load"
                )
            except RequestError as error:
                reason = f"{self._name} cannot resume it: {_error_text(error)}"
            else:
                await self._choose_mode(connection, kept, loaded.modes if loaded is not None else None)
                self._conversation = kept
                return OpenedConversation(conversation=kept, is_new=False, version=version)
        elif kept is not None:
            reason = f"{self._name} does not support resuming conversations"
        started = await connection.request(connection.agent.new_session(**options), "session/new")
        await self._choose_mode(connection, started.session_id, started.modes)
        self._conversation, self._cost = started.session_id, Decimal(0)
        return OpenedConversation(
            conversation=started.session_id, is_new=True, version=version, reason=reason
        )

    async def _latest(self, connection: AcpConnection, capabilities: Any) -> str | None:
        """The latest conversation in this pair's agent home, for a pair whose journal was lost."""
        sessions = capabilities.session_capabilities if capabilities is not None else None
        if sessions is None or sessions.list is None or not capabilities.load_session:
            return None
        listed = await connection.request(
            connection.agent.list_sessions(cwd=self._team.project), "session/list"
        )
        found = max(listed.sessions, key=lambda each: each.updated_at or "", default=None)
        return found.session_id if found is not None else None

    async def _choose_mode(self, connection: AcpConnection, conversation: str, modes: Any) -> None:
        """Set the mode. It decides what the agent asks about, so the roster must name it if the agent offers any."""
        offered = [mode.id for mode in modes.available_modes] if modes is not None else []
        if not self._team.mode and not offered:
            return
        if self._team.mode not in offered:
            raise MemberFailed(
                f"{self._name} has the modes {', '.join(offered) or 'none'}, not {self._team.mode!r}",
                hint="set mode: in the roster to the one in which it asks before its tools",
            )
        await connection.request(
            connection.agent.set_session_mode(session_id=conversation, mode_id=self._team.mode),
            "session/set_mode",
        )
        connection.mode = self._team.mode

    def _servers(self, capabilities: Any) -> list[HttpMcpServer]:
        """The teams server, if the agent can reach it."""
        given = self._teams_server
        if (
            given is None
            or capabilities is None
            or capabilities.mcp_capabilities is None
            or not capabilities.mcp_capabilities.http
        ):
            return []
        headers = [HttpHeader(name=name, value=value) for name, value in given["headers"].items()]
        return [HttpMcpServer(type="http", name="teams", url=given["url"], headers=headers)]

    def _usage(self, reported: Any) -> Usage:
        """The usage of the turn, as far as the agent reports it. Its cost is a running total."""
        cost = self._running_connection().cost if self.is_alive else None
        price = None
        if cost is not None and cost.currency == "USD":
            total = Decimal(str(cost.amount))
            price, self._cost = max(Decimal(0), total - self._cost), total
        if reported is None:
            return Usage(cost_usd=price)
        return Usage(
            input_tokens=reported.input_tokens,
            output_tokens=reported.output_tokens,
            cached_tokens=min(reported.cached_read_tokens or 0, reported.input_tokens),
            cost_usd=price,
        )

    def _running_connection(self) -> AcpConnection:
        if self._connection is None or not self._connection.is_alive:
            raise MemberLost(f"{self._name} is not running", hint=ASK_AGAIN)
        return self._connection


def _outcome(stop_reason: str, text: str) -> Outcome:
    if stop_reason == "end_turn":
        return Ok(value=text)
    return Error(
        message=f"the agent stopped: {stop_reason.replace('_', ' ')}", code=stop_reason.replace("_", "-")
    )


def _unasked_note(updates: TurnUpdates) -> tuple[str, ...]:
    calls = updates.unasked
    if not calls:
        return ()
    named = "; ".join(f"{call.verb}: {call.title}"[:100] for call in calls[:5])
    return (f"the agent used {pluralize(len(calls), 'tool')} without asking ({named})",)


def _error_text(error: Exception) -> str:
    data = getattr(error, "data", None)
    return f"{error} ({data})"[:500] if data else str(error)[:500]
