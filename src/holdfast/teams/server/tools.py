"""Services of the desk: each tool with its parameters, who it is for, and what it does with the switchboard."""

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
    """One request for a service: who asks, in whose name, with which arguments."""

    def __init__(self, board: Broker, caller: Caller, sender: str, given: JsonObject) -> None:
        self.board = board
        self.caller = caller
        self.sender = sender
        self.given = given

    def text(self, name: str) -> str:
        """An argument that has to be there."""
        return str(self.given[name])

    @property
    def thread(self) -> str:
        """The thread that is meant; empty for the usual one."""
        return str(self.given.get("thread") or "")

    @property
    def team(self) -> str:
        """The team whose pair is meant."""
        return self.text("team")


Run = Callable[[ToolRequest], Awaitable[Json]]


class Service:
    """A tool of the desk. The first `needed` of its parameters are required."""

    def __init__(
        self,
        name: str,
        description: str,
        parameters: JsonObject,
        needed: int,
        run: Run,
        *,
        is_ours: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.parameters = parameters
        self.needed = list(parameters)[:needed]
        self.run = run
        self.is_ours = is_ours
        """Whether it is for operators alone."""

    def check(self, arguments: JsonObject) -> None:
        """Raise InvalidInput for arguments that it does not have, that are missing, or of another type than it says."""
        for name, value in arguments.items():
            if name not in self.parameters:
                raise InvalidInput(
                    f"{self.name} has no argument {name!r}",
                    hint=f"it has {', '.join(self.parameters) or 'none'}",
                )
            expected = self.parameters[name]
            if expected is _TEXT and not isinstance(value, str):
                raise InvalidInput(f"{name} is a text, not {value!r}")
            if expected is _FLAG and not isinstance(value, bool):
                raise InvalidInput(f"{name} is true or false, not {value!r}")
        for name in self.needed:
            if name not in arguments:
                raise InvalidInput(f"{self.name} needs the text {name!r}")


async def _ask(order: ToolRequest) -> Json:
    return await _letter(order, order.team, order.text("question"), is_waiting=True)


async def _send(order: ToolRequest) -> Json:
    is_waiting = order.given.get("waitForResponse", True) is True
    return await _letter(order, order.text("toTeam"), order.text("message"), is_waiting=is_waiting)


async def _letter(order: ToolRequest, receiver: str, text: str, *, is_waiting: bool) -> Json:
    timeout = timeout_of(order.given.get("timeout", DEFAULT_TIMEOUT_MS))
    message = order.text("messageId") if "messageId" in order.given else None
    board, within = order.board, order.caller.within
    if not is_waiting or timeout == -1:
        sent = await board.send(
            order.sender, receiver, text, thread=order.thread, message=message, within=within
        )
        return _plain(sent)
    reply = await board.ask(
        order.sender,
        receiver,
        text,
        thread=order.thread,
        seconds=timeout / 1000 if timeout else None,
        message=message,
        within=within,
    )
    return _plain(reply)


async def _notify(order: ToolRequest) -> Json:
    days = order.given.get("ttlDays", 30)
    if isinstance(days, bool) or not isinstance(days, int | float):
        raise InvalidInput("ttlDays is a number")
    notice = await order.board.notify(
        order.sender, order.text("toTeam"), order.text("message"), thread=order.thread, ttl_days=days
    )
    return _plain(notice)


async def _report(order: ToolRequest) -> Json:
    return {
        "messages": _plain(await order.board.report(order.sender, order.team, thread=order.thread)),
        "notices": _plain(await order.board.notices(order.sender, order.team, thread=order.thread)),
    }


async def _status(order: ToolRequest) -> Json:
    states = order.board.pool.states()
    return [
        {
            "pair": line.description,
            "session": line.id,
            "state": "archived" if line.lifecycle == "paused" else states.get(line.id, "asleep"),
            "messages": line.turns,
            "tokens": line.tokens,
            "lastUsedMs": line.active_ms,
        }
        for line in await order.board.sessions()
    ]


async def _threads(order: ToolRequest) -> Json:
    pair = f"{order.sender} -> {order.team}"
    lines = await order.board.sessions()
    return [line.description for line in lines if line.description.partition(" #")[0] == pair]


async def _wake(order: ToolRequest) -> Json:
    reply = await order.board.wake(order.sender, order.team, thread=order.thread)
    return {"awake": True, "reply": _plain(reply)}


async def _sleep(order: ToolRequest) -> Json:
    is_forced = order.given.get("force") is True
    slept = await order.board.sleep(order.sender, order.team, thread=order.thread, is_forced=is_forced)
    return {"asleep": slept}


async def _cancel(order: ToolRequest) -> Json:
    return {"cancelled": await order.board.cancel(order.sender, order.team, thread=order.thread)}


async def _fork(order: ToolRequest) -> Json:
    branch = await order.board.fork(order.sender, order.team, order.text("toThread"), thread=order.thread)
    return {"pair": str(branch), "session": order.board.key(branch)}


_TEXT: JsonObject = {"type": "string"}
_TIMEOUT: JsonObject = {
    "type": "integer",
    "minimum": -1,
    "maximum": MAX_TIMEOUT_MS,
    "description": "milliseconds; -1 does not wait, 0 waits as long as a turn may take",
}
_ASKING: JsonObject = {"fromTeam": _TEXT, "thread": _TEXT, "timeout": _TIMEOUT, "messageId": _TEXT}
_SENDING: JsonObject = {"toTeam": _TEXT, "message": _TEXT}
_PAIR: JsonObject = {"team": _TEXT, "fromTeam": _TEXT, "thread": _TEXT}
_FLAG: JsonObject = {"type": "boolean"}

SERVICES = (
    Service("teams_ask", "Ask a team.", {"team": _TEXT, "question": _TEXT, **_ASKING}, 2, _ask),
    Service(
        "teams_send_message",
        "Send a team a message; wait for its answer or not.",
        {**_SENDING, "waitForResponse": _FLAG, **_ASKING},
        2,
        _send,
    ),
    Service(
        "teams_notify",
        "Leave word for a team; it goes with your next message.",
        {**_SENDING, "fromTeam": _TEXT, "thread": _TEXT, "ttlDays": {"type": "number"}},
        2,
        _notify,
    ),
    Service("teams_report", "What became of your messages to a team.", _PAIR, 1, _report),
    Service("teams_status", "Every pair that ever talked.", {}, 0, _status, is_ours=True),
    Service("teams_threads", "The threads of a pair.", _PAIR, 1, _threads, is_ours=True),
    Service("teams_wake", "Have a pair's member ready.", _PAIR, 1, _wake, is_ours=True),
    Service(
        "teams_sleep", "Put a pair's member to sleep.", {**_PAIR, "force": _FLAG}, 1, _sleep, is_ours=True
    ),
    Service("teams_cancel", "Interrupt what a pair's member does.", _PAIR, 1, _cancel, is_ours=True),
    Service(
        "teams_fork",
        "Copy a pair's conversation into another thread.",
        {"team": _TEXT, "toThread": _TEXT, "fromTeam": _TEXT, "thread": _TEXT},
        2,
        _fork,
        is_ours=True,
    ),
)


def timeout_of(value: Json) -> int:
    """-1 does not wait, 0 waits as long as a turn may take, else milliseconds. Raises InvalidInput."""
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value <= MAX_TIMEOUT_MS:
        raise InvalidInput(
            f"a timeout is a whole number from -1 to {MAX_TIMEOUT_MS} milliseconds, not {value!r}"
        )
    return value


def _plain(value: object) -> Json:
    plain: Json = msgspec.to_builtins(value)
    if isinstance(value, TeamReply) and isinstance(plain, dict):
        plain["status"] = "answered" if is_success(value.outcome) else "failed"
    return plain
