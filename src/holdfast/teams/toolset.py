"""The `teams.*` tools: how a member that is a Holdfast session messages other teams, in its own team's name.

They pass the gate like any other tool, so the member's policy decides whether it may ask at all; the roster decides who
may ask whom. A message names the session whose turn sends it, which bounds its hops and prevents deadlocks. Its id is
derived from the call, so a call repeated after a crash is the same message.
"""

from uuid import UUID, uuid5

import msgspec

from holdfast.core import ArgumentRoles, Call, Json, JsonObject, Performed, SessionId, Tool
from holdfast.core.errors import HoldfastError, InvalidInput, ToolFailed
from holdfast.teams.broker import Broker
from holdfast.teams.members.factory import MemberFactory

GROUP = "teams"
MAX_SECONDS = 3600.0
_NAMESPACE = UUID("6f3c2b7e-4d6a-5a0e-9a55-7d0c6a3b1c11")


class TeamsToolset:
    """The tools of one session for reaching other teams."""

    def __init__(self, broker: Broker, *, team: str, asking_session: SessionId) -> None:
        self._broker = broker
        self._team = team
        self._within = asking_session

    def tools(self) -> tuple[Tool, ...]:
        return (
            _tool("ask", "Ask another team and wait for its answer.", question=_TEXT, seconds=_SECONDS),
            _tool("send", "Send another team a message without waiting.", message=_TEXT),
            _tool(
                "notify",
                "Leave a notice for another team; it is delivered with your next message.",
                message=_TEXT,
            ),
        )

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if is_staged:
            raise ToolFailed(
                f"{call.operation} reaches another team and cannot be staged",
                hint="let the policy allow, deny or escalate it",
            )
        arguments = call.arguments
        receiver, thread = str(arguments["team"]), str(arguments.get("thread") or "")
        message_id = str(uuid5(_NAMESPACE, f"{self._within}/{call.id}"))
        try:
            match call.operation:
                case "teams.ask":
                    reply = await self._broker.ask(
                        self._team,
                        receiver,
                        str(arguments["question"]),
                        thread=thread,
                        seconds=_seconds(arguments.get("seconds")),
                        message_id=message_id,
                        asking_session=self._within,
                    )
                    return Performed(result=_to_json(reply))
                case "teams.send":
                    sent = await self._broker.send(
                        self._team,
                        receiver,
                        str(arguments["message"]),
                        thread=thread,
                        message_id=message_id,
                        asking_session=self._within,
                    )
                    return Performed(result=_to_json(sent))
                case _:
                    notice = await self._broker.notify(
                        self._team, receiver, str(arguments["message"]), thread=thread
                    )
                    return Performed(result=_to_json(notice))
        except HoldfastError as error:
            raise ToolFailed(str(error), hint=error.hint) from error


def give_tools(factory: MemberFactory, broker: Broker) -> None:
    """Let members that are Holdfast sessions ask other teams."""
    factory.extra_tools = lambda pair, session: (
        TeamsToolset(broker, team=pair.receiver, asking_session=session),
    )


_TEXT: JsonObject = {"type": "string"}
_SECONDS: JsonObject = {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS}


def _tool(verb: str, description: str, **own: Json) -> Tool:
    properties: JsonObject = {"team": _TEXT, **own, "thread": _TEXT}
    required: list[Json] = ["team", next(iter(own))]
    return Tool(
        name=f"{GROUP}.{verb}",
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        roles={name: ArgumentRoles(default=("none",)) for name in properties},
        is_idempotent=verb != "notify",
    )


def _seconds(value: Json) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_SECONDS:
        raise InvalidInput(f"seconds must be a number above 0 and at most {MAX_SECONDS:g}")
    return float(value)


def _to_json(value: object) -> Json:
    plain: Json = msgspec.to_builtins(value)
    return plain
