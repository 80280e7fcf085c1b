"""The connection to one claude process. Requests and replies are matched by id, never by order."""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from uuid import uuid4

from holdfast.core import Json, JsonObject, Refused, Returned
from holdfast.teams.claude import protocol
from holdfast.teams.contract import OnCall
from holdfast.teams.errors import MemberLost
from holdfast.teams.members.line_process import ASK_AGAIN, LineProcess, SilenceTimeout

INTERRUPT_SECONDS = 5.0


class ClaudeConnection:
    """The line protocol of one process: control requests, turns, and the gate's answers to its hooks."""

    def __init__(self) -> None:
        self._answers: dict[str, asyncio.Future[JsonObject]] = {}
        self._results: dict[str, asyncio.Future[JsonObject]] = {}
        self._started: set[str] = set()
        self._pending_hooks: dict[str, asyncio.Task[None]] = {}
        self._on_call: OnCall | None = None
        self._process: LineProcess
        self._silence: SilenceTimeout
        self.last_error = ""
        self.unmatched_results = 0
        """How many results matched none of our messages."""

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        *,
        folder: str,
        environment: Mapping[str, str],
        silence_seconds: float,
    ) -> "ClaudeConnection":
        """Start the program. Raises MemberFailed."""
        connection = cls()
        connection._process = await LineProcess.start(
            command, folder=folder, environment=environment, on_line=connection._on_line
        )
        connection._silence = SilenceTimeout(
            connection._process, name="claude", silence_seconds=silence_seconds
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
        for task in list(self._pending_hooks.values()):
            task.cancel()
        await asyncio.gather(*self._pending_hooks.values(), return_exceptions=True)
        await self._process.stop()

    async def request(self, subtype: str, *, seconds: float) -> JsonObject:
        """Send a control request, which is not part of the conversation. Raises MemberLost."""
        id = str(uuid4())
        waiting = self._answers[id] = asyncio.get_running_loop().create_future()
        line = (
            protocol.initialize(id) if subtype == "initialize" else protocol.control(id, {"subtype": subtype})
        )
        try:
            await self._process.write(line)
            body = (await self._silence.wait_at_most(waiting, seconds, subtype)).get("response")
            return body if isinstance(body, dict) else {}
        finally:
            self._answers.pop(id, None)

    async def turn(self, id: str, line: JsonObject, on_call: OnCall | None = None) -> JsonObject | None:
        """Send a message and wait for its result; None if an earlier process completed it. Raises MemberLost."""
        if not self.is_alive:
            raise MemberLost("claude is not running", hint=ASK_AGAIN)
        self._on_call = on_call
        waiting = self._results[id] = asyncio.get_running_loop().create_future()
        try:
            await self._process.write(line)
            result = await self._silence.wait_for(waiting)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupt(waiting))
            raise
        finally:
            self._on_call = None
            self._results.pop(id, None)
            self._started.discard(id)
        return result if result.get("type") == "result" else None

    async def _interrupt(self, waiting: asyncio.Future[JsonObject]) -> None:
        """Stop the turn and wait for its end, so that its answer is never taken for another; else stop the program."""
        if not self._process.is_running or waiting.done():
            return
        with contextlib.suppress(MemberLost, TimeoutError):
            await self._process.write(protocol.control(str(uuid4()), {"subtype": "interrupt"}))
            async with asyncio.timeout(INTERRUPT_SECONDS):
                await asyncio.shield(waiting)
            return
        await self._process.stop(is_immediate=True)

    # -- what the program sends

    def _on_line(self, line: JsonObject) -> None:
        self._silence.reset()
        match line.get("type"):
            case "control_response":
                self._on_control_response(line.get("response"))
            case "control_request":
                self._on_control_request(line)
            case "control_cancel_request":
                task = self._pending_hooks.get(str(line.get("request_id")))
                if task is not None:
                    task.cancel()
            case "command_lifecycle":
                self._on_lifecycle(str(line.get("command_uuid")), line)
            case "result":
                self._on_result(line)
            case _:
                pass

    def _on_control_response(self, answer: Json) -> None:
        if isinstance(answer, dict):
            waiting = self._answers.get(str(answer.get("request_id")))
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def _on_result(self, line: JsonObject) -> None:
        if line.get("is_error") and isinstance(line.get("errors"), list):
            self.last_error = str(line["errors"])
        for message_id, waiting in self._results.items():
            if protocol.belongs_to(line, message_id) and not waiting.done():
                waiting.set_result(line)
                return
        self.unmatched_results += 1

    def _on_lifecycle(self, message_id: str, line: JsonObject) -> None:
        """A message that completes without having started was completed by an earlier process."""
        if line.get("state") == "started":
            self._started.add(message_id)
        waiting = self._results.get(message_id)
        if (
            line.get("state") == "completed"
            and waiting
            and not waiting.done()
            and message_id not in self._started
        ):
            waiting.set_result(line)

    def _on_control_request(self, line: JsonObject) -> None:
        id = str(line.get("request_id"))
        task = asyncio.get_running_loop().create_task(self._respond(id, line.get("request")))
        self._pending_hooks[id] = task
        task.add_done_callback(lambda _: self._pending_hooks.pop(id, None))

    async def _respond(self, id: str, request: Json) -> None:
        """Answer a request of the program. A request that cannot be answered is denied."""
        asked = request if isinstance(request, dict) else {}
        with self._silence.paused():
            if asked.get("subtype") == "hook_callback" and asked.get("callback_id") == protocol.GATE:
                line = protocol.response(id, protocol.hook_decision(await self._judge(asked.get("input"))))
            elif asked.get("subtype") == "can_use_tool":
                # The gate has judged every tool in a hook; no further permission is granted.
                line = protocol.response(
                    id, {"behavior": "deny", "message": "the policy gives no permission for this"}
                )
            else:
                line = protocol.refusal(id, "not supported")
        with contextlib.suppress(MemberLost):
            await self._process.write(line)

    async def _judge(self, asked: Json) -> Returned | Refused:
        tool = asked.get("tool_name") if isinstance(asked, dict) else None
        arguments = asked.get("tool_input") if isinstance(asked, dict) else None
        if self._on_call is None or not isinstance(tool, str) or not isinstance(arguments, dict):
            return Refused(
                reason="no message is being answered, or the question cannot be read", rule="teams"
            )
        return await self._on_call(tool, arguments)
