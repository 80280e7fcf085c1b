"""The connection to one ACP agent: the library's protocol over our supervised process and its limits.

The agent gets nothing from us but answers to its permission requests: no files, no terminals. The gate judges each
request, and an approval covers only that one call.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from acp import PROTOCOL_VERSION, Client, RequestPermissionResponse, connect_to_agent, text_block
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    AvailableCommandsUpdate,
    ClientCapabilities,
    CurrentModeUpdate,
    DeniedOutcome,
    InitializeResponse,
    PermissionOption,
    PromptResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
)

from holdfast.core import JsonObject, Returned
from holdfast.teams.acp.tools import AgentCall
from holdfast.teams.contract import OnCall
from holdfast.teams.errors import MemberFailed, MemberLost
from holdfast.teams.members.line_process import LineProcess, SilenceTimeout

READY_SECONDS = 120.0
INTERRUPT_SECONDS = 5.0


class TurnUpdates:
    """What the agent has reported during one turn."""

    def __init__(self, on_call: OnCall | None) -> None:
        self.on_call = on_call
        self.texts: list[str] = []
        self.calls: dict[str, AgentCall] = {}
        self.stopped = asyncio.Event()

    @property
    def unasked(self) -> list[AgentCall]:
        """Tools that the agent ran without asking."""
        return [call for call in self.calls.values() if call.has_run and not call.is_asked]


class AcpConnection:
    """One agent process and our side of the protocol."""

    def __init__(self, *, name: str, folder: str) -> None:
        self._name = name
        self._folder = folder
        self._updates = TurnUpdates(None)
        self._incoming: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._process: LineProcess
        self._silence: SilenceTimeout
        self._end_watcher: asyncio.Task[None]
        self.agent: Any = None
        """The library's connection to the agent. Its type is a protocol with many methods that we do not use."""
        self.commands: set[str] = set()
        self.used_tokens = 0
        self.cost: Any = None
        self.mode = ""
        """The chosen mode. An agent that leaves it is stopped."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        name: str,
        folder: str,
        environment: Mapping[str, str],
        silence_seconds: float,
    ) -> "AcpConnection":
        """Start the program. Raises MemberFailed."""
        connection = cls(name=name, folder=folder)
        connection._process = await LineProcess.start(
            command, folder=folder, environment=environment, on_line=connection._on_line
        )
        connection._silence = SilenceTimeout(connection._process, name=name, silence_seconds=silence_seconds)
        connection._end_watcher = asyncio.create_task(connection._forward_end())
        connection.agent = connect_to_agent(
            cast("Client", _Client(connection)), _LineTransport(connection._process, connection._incoming)
        )
        return connection

    @property
    def is_alive(self) -> bool:
        """Whether the process can take requests."""
        return self._process.is_running

    @property
    def pid(self) -> int:
        """The process id of the supervisor above the program."""
        return self._process.pid

    async def close(self) -> None:
        """Stop the program and every process it started."""
        self._updates.stopped.set()
        self._end_watcher.cancel()
        await asyncio.gather(self._end_watcher, return_exceptions=True)
        await self.agent.close()
        await self._process.stop()

    async def initialize(self) -> InitializeResponse:
        """Negotiate the protocol. Raises MemberFailed, MemberLost."""
        nothing = ClientCapabilities(terminal=False)
        answer = await self.request(
            self.agent.initialize(PROTOCOL_VERSION, client_capabilities=nothing), "initialize"
        )
        assert isinstance(answer, InitializeResponse)
        if answer.protocol_version != PROTOCOL_VERSION:
            raise MemberFailed(f"{self._name} speaks version {answer.protocol_version} of the protocol")
        return answer

    async def request(self, asking: Any, what: str) -> Any:
        """Await a request that must be answered within READY_SECONDS. Raises MemberLost, and RequestError if refused."""
        waiting = asyncio.ensure_future(asking)
        try:
            return await self._silence.wait_at_most(waiting, READY_SECONDS, what)
        except ConnectionError:
            raise await self._silence.lost_error() from None
        finally:
            await _cancel(waiting)

    async def turn(
        self, conversation: str, text: str, on_call: OnCall | None
    ) -> tuple[PromptResponse, TurnUpdates]:
        """Run one prompt. Raises MemberLost, RequestError. Cancellation stops the agent's turn and waits for its end."""
        updates = self._updates = TurnUpdates(on_call)
        asking = self.agent.prompt(session_id=conversation, prompt=[text_block(text)])
        waiting: asyncio.Future[PromptResponse] = asyncio.ensure_future(asking)
        try:
            return await self._silence.wait_for(waiting), updates
        except ConnectionError:
            raise await self._silence.lost_error() from None
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupt(conversation, waiting))
            raise
        finally:
            updates.stopped.set()
            self._updates = TurnUpdates(None)
            await _cancel(waiting)

    async def _interrupt(self, conversation: str, waiting: "asyncio.Future[PromptResponse]") -> None:
        """Cancel the agent's turn and wait for its end; stop an agent that does not comply."""
        self._updates.stopped.set()
        if not self.is_alive or waiting.done():
            return
        with contextlib.suppress(MemberLost, ConnectionError):
            await self.agent.cancel(session_id=conversation)
            await asyncio.wait({waiting}, timeout=INTERRUPT_SECONDS)
        if not waiting.done():
            await self._process.stop(is_immediate=True)

    def _on_line(self, line: JsonObject) -> None:
        """Handle a line. The line that ends a turn ends it here, so later permission requests do not belong to it."""
        result = line.get("result")
        if isinstance(result, dict) and "stopReason" in result:
            self._updates.stopped.set()
        self._incoming.put_nowait(line)

    async def _forward_end(self) -> None:
        await self._process.ended.wait()
        self._incoming.put_nowait(None)

    # -- what the agent sends

    def on_update(self, update: Any) -> None:
        """Handle a session update."""
        self._silence.reset()
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self._updates.texts.append(text)
            case ToolCallStart() | ToolCallProgress():
                self._call(update).update(update)
            case UsageUpdate():
                self.used_tokens, self.cost = update.used, update.cost
            case AvailableCommandsUpdate():
                self.commands = {command.name for command in update.available_commands}
            case CurrentModeUpdate() if self.mode and update.current_mode_id != self.mode:
                self._process.terminate(f"left the mode {self.mode!r} and was stopped")
            case _:
                pass

    async def is_permitted(self, tool: ToolCallUpdate) -> bool:
        """Ask the gate. Without a running turn the answer is no."""
        updates = self._updates
        call = self._call(tool)
        call.update(tool)
        call.is_asked = True
        if updates.on_call is None or updates.stopped.is_set():
            return False
        with self._silence.paused():
            judging = asyncio.ensure_future(updates.on_call(call.verb, call.arguments(self._folder)))
            stopping = asyncio.ensure_future(updates.stopped.wait())
            watched: set[asyncio.Future[Any]] = {judging, stopping}
            try:
                await asyncio.wait(watched, return_when=asyncio.FIRST_COMPLETED)
                return judging.done() and isinstance(judging.result(), Returned)
            finally:
                stopping.cancel()
                await _cancel(judging)

    def _call(self, tool: Any) -> AgentCall:
        return self._updates.calls.setdefault(tool.tool_call_id, AgentCall())


class _Client:
    """Our side of the protocol: the methods an agent may call. All others do not exist for it."""

    def __init__(self, connection: AcpConnection) -> None:
        self._connection = connection

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        wanted = "allow_once" if await self._connection.is_permitted(tool_call) else "reject_once"
        chosen = next((option for option in options if option.kind == wanted), None)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(
            outcome=AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        )

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self._connection.on_update(update)


class _LineTransport:
    """The library's transport over our supervised process, with bounded lines."""

    def __init__(self, process: LineProcess, incoming: "asyncio.Queue[dict[str, Any] | None]") -> None:
        self._process = process
        self._incoming = incoming

    async def send(self, message: JsonObject) -> None:
        try:
            await self._process.write(message)
        except MemberLost as error:
            raise ConnectionError(str(error)) from error

    async def receive(self) -> dict[str, Any] | None:
        return await self._incoming.get()

    async def close(self) -> None:
        pass


async def _cancel(waiting: "asyncio.Future[Any]") -> None:
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
