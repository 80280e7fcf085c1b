"""The tools of the teams server: parameters, audience, and the broker method behind each."""

from collections.abc import Awaitable, Callable

import msgspec

from holdfast.core import Json, JsonObject, is_success
from holdfast.core.errors import InvalidInput
from holdfast.teams.broker import Broker
from holdfast.teams.contract import TeamReply
from holdfast.teams.server.auth import Caller

MAX_TIMEOUT_MS = 3_600_000
DEFAULT_TIMEOUT_MS = 30_000


class ToolRequest:
    """One tool call: the caller, the sender it speaks for, and the arguments."""

    def __init__(self, broker: Broker, caller: Caller, sender: str, arguments: JsonObject) -> None:
        self.broker = broker
        self.caller = caller
        self.sender = sender
        self.arguments = arguments

    def text(self, name: str) -> str:
        """A required argument."""
        return str(self.arguments[name])

    @property
    def thread(self) -> str:
        """The thread; empty for the default thread."""
        return str(self.arguments.get("thread") or "")

    @property
    def team(self) -> str:
        """The receiving team."""
        return self.text("team")


Run = Callable[[ToolRequest], Awaitable[Json]]


class ServerTool:
    """One tool of the server. The first `required_count` parameters are required."""

    def __init__(
        self,
        name: str,
        description: str,
        parameters: JsonObject,
        required_count: int,
        run: Run,
        *,
        is_operator_only: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters
        self.required = list(parameters)[:required_count]
        self.run = run
        self.is_operator_only = is_operator_only
        """Whether only operators may call it."""

    def check(self, arguments: JsonObject) -> None:
        """Raise InvalidInput for an unknown or missing argument, or one of the wrong type."""
        for name, value in arguments.items():
            if name not in self.parameters:
                raise InvalidInput(
                    f"{self.name} has no argument {name!r}",
                    hint=f"its arguments are: {', '.join(self.parameters) or 'none'}",
                )
            expected = self.parameters[name]
            if expected is _TEXT and not isinstance(value, str):
                raise InvalidInput(f"{name} must be a string, not {value!r}")
            if expected is _FLAG and not isinstance(value, bool):
                raise InvalidInput(f"{name} must be true or false, not {value!r}")
        for name in self.required:
            if name not in arguments:
                raise InvalidInput(f"{self.name} needs the argument {name!r}")


async def _ask(request: ToolRequest) -> Json:
    return await _deliver(request, request.team, request.text("question"), is_waiting=True)


async def _send(request: ToolRequest) -> Json:
    is_waiting = request.arguments.get("waitForResponse", True) is True
    return await _deliver(request, request.text("toTeam"), request.text("message"), is_waiting=is_waiting)


async def _deliver(request: ToolRequest, receiver: str, text: str, *, is_waiting: bool) -> Json:
    timeout = timeout_of(request.arguments.get("timeout", DEFAULT_TIMEOUT_MS))
    message_id = request.text("messageId") if "messageId" in request.arguments else None
    broker, asking_session = request.broker, request.caller.asking_session
    if not is_waiting or timeout == -1:
        sent = await broker.send(
            request.sender,
            receiver,
            text,
            thread=request.thread,
            message_id=message_id,
            asking_session=asking_session,
        )
        return _to_json(sent)
    reply = await broker.ask(
        request.sender,
        receiver,
        text,
        thread=request.thread,
        seconds=timeout / 1000 if timeout else None,
        message_id=message_id,
        asking_session=asking_session,
    )
    return _to_json(reply)


async def _notify(request: ToolRequest) -> Json:
    days = request.arguments.get("ttlDays", 30)
    if isinstance(days, bool) or not isinstance(days, int | float):
        raise InvalidInput("ttlDays must be a number")
    notice = await request.broker.notify(
        request.sender, request.text("toTeam"), request.text("message"), thread=request.thread, ttl_days=days
    )
    return _to_json(notice)


async def _report(request: ToolRequest) -> Json:
    return {
        "messages": _to_json(
            await request.broker.report(request.sender, request.team, thread=request.thread)
        ),
        "notices": _to_json(
            await request.broker.notices(request.sender, request.team, thread=request.thread)
        ),
    }


async def _status(request: ToolRequest) -> Json:
    states = request.broker.pool.states()
    return [
        {
            "pair": summary.description,
            "session": summary.id,
            "state": "archived" if summary.lifecycle == "paused" else states.get(summary.id, "asleep"),
            "messages": summary.turns,
            "tokens": summary.tokens,
            "lastUsedMs": summary.active_ms,
        }
        for summary in await request.broker.sessions()
    ]


async def _threads(request: ToolRequest) -> Json:
    pair = f"{request.sender} -> {request.team}"
    summaries = await request.broker.sessions()
    return [summary.description for summary in summaries if summary.description.partition(" #")[0] == pair]


async def _wake(request: ToolRequest) -> Json:
    reply = await request.broker.wake(request.sender, request.team, thread=request.thread)
    return {"awake": True, "reply": _to_json(reply)}


async def _sleep(request: ToolRequest) -> Json:
    is_forced = request.arguments.get("force") is True
    is_asleep = await request.broker.sleep(
        request.sender, request.team, thread=request.thread, is_forced=is_forced
    )
    return {"asleep": is_asleep}


async def _cancel(request: ToolRequest) -> Json:
    return {"cancelled": await request.broker.cancel(request.sender, request.team, thread=request.thread)}


async def _fork(request: ToolRequest) -> Json:
    branch = await request.broker.fork(
        request.sender, request.team, request.text("toThread"), thread=request.thread
    )
    return {"pair": str(branch), "session": request.broker.session_id(branch)}


_TEXT: JsonObject = {"type": "string"}
_TIMEOUT: JsonObject = {
    "type": "integer",
    "minimum": -1,
    "maximum": MAX_TIMEOUT_MS,
    "description": "milliseconds; -1 does not wait, 0 waits for a whole turn",
}
_ASK_PARAMETERS: JsonObject = {"fromTeam": _TEXT, "thread": _TEXT, "timeout": _TIMEOUT, "messageId": _TEXT}
_SEND_PARAMETERS: JsonObject = {"toTeam": _TEXT, "message": _TEXT}
_PAIR_PARAMETERS: JsonObject = {"team": _TEXT, "fromTeam": _TEXT, "thread": _TEXT}
_FLAG: JsonObject = {"type": "boolean"}

TOOLS = (
    ServerTool("teams_ask", "Ask a team.", {"team": _TEXT, "question": _TEXT, **_ASK_PARAMETERS}, 2, _ask),
    ServerTool(
        "teams_send_message",
        "Send a team a message; wait for its answer or not.",
        {**_SEND_PARAMETERS, "waitForResponse": _FLAG, **_ASK_PARAMETERS},
        2,
        _send,
    ),
    ServerTool(
        "teams_notify",
        "Leave a notice for a team; it is delivered with your next message.",
        {**_SEND_PARAMETERS, "fromTeam": _TEXT, "thread": _TEXT, "ttlDays": {"type": "number"}},
        2,
        _notify,
    ),
    ServerTool("teams_report", "The status of your messages to a team.", _PAIR_PARAMETERS, 1, _report),
    ServerTool(
        "teams_status", "Every pair that has exchanged messages.", {}, 0, _status, is_operator_only=True
    ),
    ServerTool(
        "teams_threads", "The threads of a pair.", _PAIR_PARAMETERS, 1, _threads, is_operator_only=True
    ),
    ServerTool("teams_wake", "Wake a pair's member.", _PAIR_PARAMETERS, 1, _wake, is_operator_only=True),
    ServerTool(
        "teams_sleep",
        "Put a pair's member to sleep.",
        {**_PAIR_PARAMETERS, "force": _FLAG},
        1,
        _sleep,
        is_operator_only=True,
    ),
    ServerTool(
        "teams_cancel",
        "Cancel what a pair's member is answering.",
        _PAIR_PARAMETERS,
        1,
        _cancel,
        is_operator_only=True,
    ),
    ServerTool(
        "teams_fork",
        "Copy a pair's conversation into another thread.",
        {"team": _TEXT, "toThread": _TEXT, "fromTeam": _TEXT, "thread": _TEXT},
        2,
        _fork,
        is_operator_only=True,
    ),
)


def timeout_of(value: Json) -> int:
    """A timeout in milliseconds; -1 does not wait, 0 waits for a whole turn. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= MAX_TIMEOUT_MS:
        raise InvalidInput(
            f"a timeout must be a whole number from -1 to {MAX_TIMEOUT_MS} milliseconds, not {value!r}"
        )
    return value


def is_failed(answer: Json) -> bool:
    """Whether the answer of a tool reports a message that failed; the receipts that `teams_report` lists do not count."""
    if not isinstance(answer, dict):
        return False
    return "failed" in (answer.get("status"), answer.get("state")) or is_failed(answer.get("reply"))


def _to_json(value: object) -> Json:
    plain: Json = msgspec.to_builtins(value)
    if isinstance(value, TeamReply) and isinstance(plain, dict):
        plain["status"] = "answered" if is_success(value.outcome) else "failed"
    return plain
