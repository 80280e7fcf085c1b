"""The claude program as an agent: one process, one conversation, one message in flight."""

import asyncio
import contextlib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from holdfast.core import Error, Json, JsonObject, Ok, Refused, Returned, Usage
from holdfast.teams.claude import launch, transcripts, wire
from holdfast.teams.claude.lines import LineProcess
from holdfast.teams.contract import Bound, Capabilities, Letter, OnCall, Reply
from holdfast.teams.errors import MemberFailed, MemberLost, MemberMissing
from holdfast.teams.letters import written
from holdfast.teams.roster import Team

READY_SECONDS = 60.0
INTERRUPT_SECONDS = 5.0
CONTROL_SECONDS = 10.0
GONE = "No conversation found"


class ClaudeAgent:
    """Speaks the program's own line protocol; what it is asked and what it asks us is told apart by ids, never by order."""

    kind = "claude"
    capabilities = Capabilities(gate="every-call", is_idempotent=True)

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
        self._process: LineProcess | None = None
        self._conversation = ""
        self._cost: Decimal | None = None
        """The running total of the conversation, None where it is not known."""
        self._has_history = False
        self._at_most: int | None = None
        """No more tokens than these are in the conversation: what the last turn's calls took together."""
        self._answers: dict[str, asyncio.Future[JsonObject]] = {}
        self._results: dict[str, asyncio.Future[JsonObject]] = {}
        self._started: set[str] = set()
        self._judging: dict[str, asyncio.Task[None]] = {}
        self._on_call: OnCall | None = None
        self._heard = asyncio.Event()
        self._last_error = ""
        self.unasked = 0
        """Results that belonged to no message of ours."""

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_running

    @property
    def pid(self) -> int | None:
        """Of the process that stands over the program."""
        return self._process.pid if self._process is not None else None

    # -- opening

    async def open(self, conversation: str | None) -> Bound:
        program = launch.program_of(self._team, self._environ)
        launch.prepare(self._folder)
        kept = conversation or transcripts.newest(self._folder)
        if kept is not None and transcripts.find(self._folder, kept) is not None:
            try:
                version = await self._start(program, kept, is_resumed=True)
                self._cost = wire.told_cost(await self._request("get_session_cost", CONTROL_SECONDS))
                self._has_history = True
                return Bound(conversation=kept, is_new=False, version=version)
            except MemberFailed as error:
                if GONE not in str(error):
                    raise
                reason = "the program no longer knows it"
        else:
            reason = "its transcript is not there" if conversation else ""
        fresh = str(uuid4())
        version = await self._start(program, fresh, is_resumed=False)
        self._cost, self._has_history = Decimal(0), False
        return Bound(conversation=fresh, is_new=True, version=version, reason=reason)

    async def _start(self, program: str, conversation: str, *, is_resumed: bool) -> str:
        await self.close()
        self._last_error = ""
        self._conversation = conversation
        self._process = await LineProcess.start(
            launch.command(
                self._team,
                program=program,
                conversation=conversation,
                is_resumed=is_resumed,
                servers=self._servers(),
            ),
            folder=self._team.project,
            environment=launch.environment(self._team, folder=self._folder, environ=self._environ),
            on_line=self._hear,
        )
        try:
            ready = await self._request("initialize", READY_SECONDS)
        except MemberLost as error:
            await self.close()
            raise MemberFailed(f"claude did not get ready: {self._last_error or error}") from error
        if ready.get("hook_on_failure_supported") is not True:
            await self.close()
            raise MemberMissing(
                "this version of claude lets a tool run when our gate fails",
                hint="install a newer one: pip install -U claude-agent-sdk",
            )
        return str(ready.get("version") or ready.get("claude_code_version") or "")

    def _servers(self) -> Path | None:
        """The file that tells the program of the teams' own server; its token is nobody else's to read."""
        if self._teams_server is None:
            return None
        path = self._folder / "servers.json"
        path.touch(mode=0o600)
        path.write_bytes(msgspec.json.encode({"mcpServers": {"teams": self._teams_server}}))
        return path

    # -- turns

    async def ask(self, letter: Letter, on_call: OnCall) -> Reply:
        self._on_call = on_call
        try:
            result = await self._turn(letter.id, wire.letter(letter.id, written(letter)))
        finally:
            self._on_call = None
        if result is None:
            return self._answered_before(letter)
        usage = wire.usage_of(result, cost_before=self._cost)
        self._cost, self._has_history = wire.total_cost(result), True
        self._at_most = usage.input_tokens + usage.output_tokens if usage.input_tokens else None
        return Reply(outcome=wire.outcome_of(result), text=wire.text_of(result), usage=usage)

    async def compact(self, *, above_tokens: int) -> bool:
        if not self._has_history or (self._at_most is not None and self._at_most <= above_tokens):
            return False
        usage = await self._request("get_context_usage", CONTROL_SECONDS)
        tokens = usage.get("totalTokens")
        if not isinstance(tokens, int) or tokens <= above_tokens:
            return False
        id = str(uuid4())
        result = await self._turn(id, wire.own_command(id, "/compact"))
        return result is not None and not result.get("is_error")

    async def close(self) -> None:
        process, self._process = self._process, None
        for task in list(self._judging.values()):
            task.cancel()
        await asyncio.gather(*self._judging.values(), return_exceptions=True)
        if process is not None:
            await process.stop()

    async def _turn(self, id: str, line: JsonObject) -> JsonObject | None:
        """Say a line and wait for its result; None where it was answered in an earlier life."""
        process = self._living()
        waiting = self._results[id] = asyncio.get_running_loop().create_future()
        try:
            await process.write(line)
            result = await self._watched(waiting)
        except asyncio.CancelledError:
            await asyncio.shield(self._interrupt(waiting))
            raise
        finally:
            self._results.pop(id, None)
            self._started.discard(id)
        return result if result.get("type") == "result" else None

    async def _watched(self, waiting: asyncio.Future[JsonObject]) -> JsonObject:
        """Wait for as long as the program lives and says anything at all, or waits for us."""
        process = self._living()
        ended = asyncio.ensure_future(process.ended.wait())
        try:
            while True:
                self._heard.clear()
                heard = asyncio.ensure_future(self._heard.wait())
                patience = None if self._judging else self._silence_seconds
                watched: set[asyncio.Future[Any]] = {waiting, ended, heard}
                await asyncio.wait(watched, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
                is_silent = not (waiting.done() or ended.done() or heard.done())
                heard.cancel()
                if waiting.done():
                    return waiting.result()
                if ended.done():
                    await process.finished()
                    raise MemberLost(
                        f"claude {process.ending}", hint="ask again: it takes its conversation up anew"
                    )
                if is_silent and not self._judging:
                    await process.stop(is_hurried=True)
                    raise MemberLost(
                        f"claude said nothing for {self._silence_seconds:g} seconds and was ended"
                    )
        finally:
            ended.cancel()

    async def _interrupt(self, waiting: asyncio.Future[JsonObject]) -> None:
        """Stop the turn and wait for its end, so that its answer is never taken for another's; else end the program."""
        process = self._process
        if process is None or not process.is_running or waiting.done():
            return
        with contextlib.suppress(MemberLost, TimeoutError):
            await process.write(wire.control(str(uuid4()), {"subtype": "interrupt"}))
            await asyncio.wait_for(asyncio.shield(waiting), INTERRUPT_SECONDS)
            return
        await process.stop(is_hurried=True)

    def _answered_before(self, letter: Letter) -> Reply:
        text = transcripts.answer_to(self._folder, self._conversation, letter.id)
        notes = ("this letter was answered before a crash; this is the answer it got then",)
        if text is None:
            lost = Error(
                message="this message was answered before a crash, and the answer is not in the transcript",
                code="answer-lost",
                hint="ask again under another id",
            )
            return Reply(outcome=lost, notes=notes)
        return Reply(outcome=Ok(value=text), text=text, usage=Usage(), notes=notes)

    # -- what it says

    def _hear(self, line: JsonObject) -> None:
        self._heard.set()
        match line.get("type"):
            case "control_response":
                self._take_answer(line.get("response"))
            case "control_request":
                self._be_asked(line)
            case "control_cancel_request":
                task = self._judging.get(str(line.get("request_id")))
                if task is not None:
                    task.cancel()
            case "command_lifecycle":
                self._follow_message(str(line.get("command_uuid")), line)
            case "result":
                self._take_result(line)
            case _:
                pass

    def _take_answer(self, answer: Json) -> None:
        if isinstance(answer, dict):
            waiting = self._answers.get(str(answer.get("request_id")))
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)

    def _take_result(self, line: JsonObject) -> None:
        if line.get("is_error") and isinstance(line.get("errors"), list):
            self._last_error = str(line["errors"])
        for message, waiting in self._results.items():
            if wire.belongs_to(line, message) and not waiting.done():
                waiting.set_result(line)
                return
        self.unasked += 1

    def _follow_message(self, message: str, line: JsonObject) -> None:
        """A message that is completed without having been started was completed in an earlier life."""
        if line.get("state") == "started":
            self._started.add(message)
        waiting = self._results.get(message)
        if (
            line.get("state") == "completed"
            and waiting
            and not waiting.done()
            and message not in self._started
        ):
            waiting.set_result(line)

    def _be_asked(self, line: JsonObject) -> None:
        id = str(line.get("request_id"))
        task = asyncio.get_running_loop().create_task(self._respond(id, line.get("request")))
        self._judging[id] = task

        def done(_: asyncio.Task[None]) -> None:
            self._judging.pop(id, None)
            self._heard.set()

        task.add_done_callback(done)

    async def _respond(self, id: str, request: Json) -> None:
        """Answer a question of the program. Whatever cannot be answered is a no."""
        asked = request if isinstance(request, dict) else {}
        if asked.get("subtype") == "hook_callback" and asked.get("callback_id") == wire.GATE:
            line = wire.response(id, wire.verdict(await self._judge(asked.get("input"))))
        elif asked.get("subtype") == "can_use_tool":
            # Every tool came by the gate before; what the program would ask besides, nobody here may grant.
            line = wire.response(
                id, {"behavior": "deny", "message": "the policy gives no permission for this"}
            )
        else:
            line = wire.refusal(id, "not supported")
        with contextlib.suppress(MemberLost):
            if self._process is not None:
                await self._process.write(line)

    async def _judge(self, asked: Json) -> Returned | Refused:
        tool = asked.get("tool_name") if isinstance(asked, dict) else None
        arguments = asked.get("tool_input") if isinstance(asked, dict) else None
        if self._on_call is None or not isinstance(tool, str) or not isinstance(arguments, dict):
            return Refused(
                reason="no message is being answered, or the question cannot be read", rule="teams"
            )
        return await self._on_call(tool, arguments)

    async def _request(self, subtype: str, seconds: float) -> JsonObject:
        """Ask about the conversation. Raises MemberLost."""
        process = self._living()
        id = str(uuid4())
        waiting = self._answers[id] = asyncio.get_running_loop().create_future()
        line = wire.initialize(id) if subtype == "initialize" else wire.control(id, {"subtype": subtype})
        ended = asyncio.ensure_future(process.ended.wait())
        try:
            await process.write(line)
            watched: set[asyncio.Future[Any]] = {waiting, ended}
            await asyncio.wait(watched, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waiting.done():
                body = waiting.result().get("response")
                return body if isinstance(body, dict) else {}
            if ended.done():
                await process.finished()
                raise MemberLost(f"claude {process.ending}")
            raise MemberLost(f"claude gave no answer to {subtype} within {seconds:g} seconds")
        finally:
            ended.cancel()
            self._answers.pop(id, None)

    def _living(self) -> LineProcess:
        if self._process is None or not self._process.is_running:
            raise MemberLost("claude is not running", hint="ask again: it takes its conversation up anew")
        return self._process
