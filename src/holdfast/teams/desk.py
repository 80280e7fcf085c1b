"""The desk: the switchboard as tools of the Model Context Protocol. Operators see more of them than teams do.

`from` is whoever the token was given to. A `fromTeam` in the arguments is only checked against it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from holdfast.core import Json, JsonObject, is_success
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.teams.callers import Caller
from holdfast.teams.contract import Reply
from holdfast.teams.errors import AskRefused
from holdfast.teams.pairs import OUTSIDE
from holdfast.teams.switchboard import Switchboard

MAX_TIMEOUT_MS = 3_600_000
DEFAULT_TIMEOUT_MS = 30_000
Context = ServerRequestContext[Any, Any]
_TEXT: JsonObject = {"type": "string"}
_TIMEOUT: JsonObject = {
    "type": "integer",
    "minimum": -1,
    "maximum": MAX_TIMEOUT_MS,
    "description": "milliseconds; -1 does not wait, 0 waits as long as a turn may take",
}
_ASKING: JsonObject = {"fromTeam": _TEXT, "thread": _TEXT, "timeout": _TIMEOUT, "messageId": _TEXT}
_PAIR: JsonObject = {"team": _TEXT, "fromTeam": _TEXT, "thread": _TEXT}


class Desk:
    """The protocol server of one switchboard; `identify` says who makes a request."""

    def __init__(self, board: Switchboard, identify: Callable[[Context], Caller]) -> None:
        self._board = board
        self._identify = identify
        self._teams_tools: dict[str, tuple[mcp_types.Tool, _Run]] = {
            "teams_ask": (
                _tool("teams_ask", "Ask a team.", {"team": _TEXT, "question": _TEXT, **_ASKING}, 2),
                self._ask,
            ),
            "teams_send_message": (
                _tool(
                    "teams_send_message",
                    "Send a team a message; wait for its answer or not.",
                    {"toTeam": _TEXT, "message": _TEXT, "waitForResponse": {"type": "boolean"}, **_ASKING},
                    2,
                ),
                self._send,
            ),
            "teams_notify": (
                _tool(
                    "teams_notify",
                    "Leave word for a team; it goes with your next message.",
                    {
                        "toTeam": _TEXT,
                        "message": _TEXT,
                        "fromTeam": _TEXT,
                        "thread": _TEXT,
                        "ttlDays": {"type": "number"},
                    },
                    2,
                ),
                self._notify,
            ),
            "teams_report": (
                _tool("teams_report", "What became of your messages to a team.", _PAIR, 1),
                self._report,
            ),
        }
        self._operators_tools: dict[str, tuple[mcp_types.Tool, _Run]] = {
            "teams_status": (_tool("teams_status", "Every pair that ever talked.", {}, 0), self._status),
            "teams_threads": (_tool("teams_threads", "The threads of a pair.", _PAIR, 1), self._threads),
            "teams_wake": (_tool("teams_wake", "Have a pair's member ready.", _PAIR, 1), self._wake),
            "teams_sleep": (
                _tool(
                    "teams_sleep", "Put a pair's member to sleep.", _PAIR | {"force": {"type": "boolean"}}, 1
                ),
                self._sleep,
            ),
            "teams_cancel": (
                _tool("teams_cancel", "Interrupt what a pair's member does.", _PAIR, 1),
                self._cancel,
            ),
        }
        self.server: Server[Any] = Server(
            "holdfast-teams", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )
        # What passes here is the teams' own and goes to no exporter of traces.
        self.server.middleware[:] = []

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(
            tools=[tool for tool, _ in self._tools(self._identify(context)).values()]
        )

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        caller = self._identify(context)
        offered = self._tools(caller).get(params.name)
        try:
            if offered is None:
                raise InvalidInput(f"there is no tool {params.name!r} for {caller.team}")
            tool, run = offered
            arguments = params.arguments or {}
            _check(arguments, tool)
            sender = self._sender(caller, arguments)
            return _result(await run(caller, sender, arguments))
        except HoldfastError as error:
            return _result({"error": str(error), "code": error.code, "hint": error.hint}, is_error=True)

    def _tools(self, caller: Caller) -> "dict[str, tuple[mcp_types.Tool, _Run]]":
        return self._teams_tools | (self._operators_tools if caller.is_operator else {})

    def _sender(self, caller: Caller, arguments: JsonObject) -> str:
        declared = arguments.get("fromTeam") or caller.team
        if declared != caller.team and not caller.is_operator:
            raise AskRefused(f"this token is that of {caller.team}, not of {declared}")
        return str(declared)

    # -- the tools

    async def _ask(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        return await self._letter(caller, sender, str(given["team"]), str(given["question"]), given, True)

    async def _send(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        waits = given.get("waitForResponse", True) is True
        return await self._letter(caller, sender, str(given["toTeam"]), str(given["message"]), given, waits)

    async def _letter(
        self, caller: Caller, sender: str, receiver: str, text: str, given: JsonObject, waits: bool
    ) -> Json:
        timeout = timeout_of(given.get("timeout", DEFAULT_TIMEOUT_MS))
        id = given.get("messageId")
        message = id if isinstance(id, str) else None
        thread = str(given.get("thread") or "")
        if not waits or timeout == -1:
            sent = self._board.send(
                sender, receiver, text, thread=thread, message=message, within=caller.within
            )
            return _plain(sent)
        reply = await self._board.ask(
            sender,
            receiver,
            text,
            thread=thread,
            seconds=timeout / 1000 if timeout else None,
            message=message,
            within=caller.within,
        )
        return _plain(reply)

    async def _notify(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        days = given.get("ttlDays", 30)
        if isinstance(days, bool) or not isinstance(days, int | float):
            raise InvalidInput("ttlDays is a number")
        thread = str(given.get("thread") or "")
        notice = await self._board.notify(
            sender, str(given["toTeam"]), str(given["message"]), thread=thread, ttl_days=days
        )
        return _plain(notice)

    async def _report(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        team, thread = str(given["team"]), str(given.get("thread") or "")
        return {
            "messages": _plain(self._board.report(sender, team, thread=thread)),
            "notices": _plain(await self._board.notices(sender, team, thread=thread)),
        }

    async def _status(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        states = self._board.pool.states()
        return [
            {
                "pair": line.description,
                "session": line.id,
                "state": states.get(line.id, "asleep"),
                "messages": line.turns,
                "tokens": line.tokens,
                "lastUsedMs": line.active_ms,
            }
            for line in await self._board.sessions()
        ]

    async def _threads(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        pair = f"{sender} -> {given['team']}"
        lines = await self._board.sessions()
        return [line.description for line in lines if line.description.partition(" #")[0] == pair]

    async def _wake(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        thread = str(given.get("thread") or "")
        return {
            "awake": True,
            "reply": _plain(await self._board.wake(sender, str(given["team"]), thread=thread)),
        }

    async def _sleep(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        is_forced, thread = given.get("force") is True, str(given.get("thread") or "")
        return {
            "asleep": await self._board.sleep(sender, str(given["team"]), thread=thread, is_forced=is_forced)
        }

    async def _cancel(self, caller: Caller, sender: str, given: JsonObject) -> Json:
        thread = str(given.get("thread") or "")
        return {"cancelled": await self._board.cancel(sender, str(given["team"]), thread=thread)}


_Run = Callable[[Caller, str, JsonObject], Awaitable[Json]]


def timeout_of(value: Json) -> int:
    """-1 does not wait, 0 waits as long as a turn may take, else milliseconds. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= MAX_TIMEOUT_MS:
        raise InvalidInput(
            f"a timeout is a whole number from -1 to {MAX_TIMEOUT_MS} milliseconds, not {value!r}"
        )
    return value


def _check(arguments: JsonObject, tool: mcp_types.Tool) -> None:
    schema: Any = tool.input_schema
    for name in arguments:
        if name not in schema["properties"]:
            raise InvalidInput(f"{tool.name} has no argument {name!r}")
    for name in schema["required"]:
        if not isinstance(arguments.get(name), str):
            raise InvalidInput(f"{tool.name} needs the text {name!r}")


def _tool(name: str, description: str, properties: JsonObject, required: int) -> mcp_types.Tool:
    needed: list[Json] = list(list(properties)[:required])
    schema: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }
    return mcp_types.Tool(name=name, description=description, input_schema=schema)


def _plain(value: object) -> Json:
    plain: Json = msgspec.to_builtins(value)
    if isinstance(value, Reply) and isinstance(plain, dict):
        plain["status"] = "answered" if is_success(value.outcome) else "failed"
    return plain


def _result(value: Json, *, is_error: bool = False) -> mcp_types.CallToolResult:
    text = msgspec.json.encode(value).decode()
    content = mcp_types.TextContent(type="text", text=text)
    return mcp_types.CallToolResult(content=[content], is_error=is_error)


def outside(_: Context) -> Caller:
    """Whoever it is that reaches us over standard input: the person that configured it."""
    return Caller(team=OUTSIDE)
