"""The session's own tools: `session.*`, a read-only view plus two proposal requests, and `person.ask`.

`person.ask` asks the person a question and returns the answer. It always waits, whatever the policy allows.
"""

from collections.abc import Awaitable, Callable

import msgspec

from holdfast.core import (
    ArgumentRoles,
    Call,
    Json,
    Performed,
    Response,
    SessionId,
    Tool,
    budget_dimension,
    encode,
)
from holdfast.core.errors import CommitConflict, InvalidInput, ToolFailed
from holdfast.gate import Gate
from holdfast.policy import most_permissive_verdict
from holdfast.session.status import Status
from holdfast.world import StagedWorld

ASK_PERSON = Tool(
    name="person.ask",
    description="Ask the person one question and wait for the answer. For what only they can know or decide.",
    parameters={
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    },
    returns={"type": "string"},
    roles={"question": ArgumentRoles(default=("none",))},
    is_idempotent=True,
    asks_person=True,
)


class PersonToolset:
    """Returns the person's answer; the gate does the waiting."""

    def __init__(self, answer_to: Callable[[Call], Response | None]) -> None:
        self._answer_to = answer_to
        self._tools = (ASK_PERSON,)

    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        response = self._answer_to(call)
        if response is None:
            raise ToolFailed("no one was asked")
        return Performed(result=response.reason or "")


def _tool(verb: str, description: str, argument: str = "") -> Tool:
    properties: dict[str, Json] = {argument: {"type": "string"}} if argument else {}
    return Tool(
        name=f"session.{verb}",
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        },
        roles={name: ArgumentRoles(default=("none",)) for name in properties},
        is_idempotent=True,
        is_read_only=True,
    )


VIEW_TOOLS = (
    _tool("turn_number", "The number of the running turn."),
    _tool("status", "How far the session is: active, paused, completed or aborted."),
    _tool("budget_remaining", "How much is left of a dimension; null without a limit.", "dimension"),
    _tool("allowed", "Whether calls of an operation could pass.", "operation"),
    _tool("read_only", "Whether no write could pass."),
    _tool("proposal_mode", "Whether writes become proposals."),
    _tool("audit_log", "Every call of this session so far."),
    _tool("operations_count", "How many calls there were."),
    _tool("proposals", "Staged changes that wait for the person."),
    _tool("id", "The id of this session, the same in every turn."),
    msgspec.structs.replace(
        _tool(
            "commit_proposals", "Commit what is staged, once the person has approved it; returns the paths."
        ),
        is_idempotent=False,
        is_read_only=False,
        requires_approval=True,
    ),
    _tool("rollback_proposals", "Withdraw what is staged."),
)


class ViewToolset:
    """Answers `session.*` from the session's projections."""

    def __init__(
        self,
        *,
        id: SessionId,
        status: Status,
        gate: Callable[[], Gate],
        staged: StagedWorld,
        audit: Callable[[], list[Json]],
        commit: Callable[[], Awaitable[tuple[str, ...]]],
    ) -> None:
        self._id = id
        self._status = status
        self._gate = gate
        self._staged = staged
        self._audit = audit
        self._commit = commit

    def tools(self) -> tuple[Tool, ...]:
        return VIEW_TOOLS

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        if call.operation == "session.rollback_proposals":
            # Include the changes, so that a restart does not rebuild the proposals.
            withdrawn = self._staged.withdraw()
            return Performed(result=[change.path for change in withdrawn], changes=withdrawn)
        if call.operation == "session.commit_proposals":
            try:
                return Performed(result=list(await self._commit()))
            except CommitConflict as error:
                raise ToolFailed(str(error)) from error
        return Performed(result=self._answer(call))

    def _answer(self, call: Call) -> Json:
        match call.operation.partition(".")[2]:
            case "id":
                return str(self._id)
            case "turn_number":
                return len(self._status.turns)
            case "status":
                lifecycle = self._status.lifecycle
                return "active" if lifecycle == "open" else lifecycle
            case "budget_remaining":
                return self._remaining(str(call.arguments["dimension"]))
            case "allowed":
                return self._could_pass(str(call.arguments["operation"]))
            case "read_only":
                return not self._could_pass("world.write")
            case "proposal_mode":
                return self._verdict("world.write") == "stage"
            case "audit_log":
                return self._audit()
            case "operations_count":
                return len(self._audit())
            case "proposals":
                return [{"path": path, "kind": kind} for path, kind in self._staged.staged_kinds().items()]
            case _:
                raise ToolFailed(f"{call.operation} does not exist")

    def _remaining(self, name: str) -> Json:
        try:
            dimension = budget_dimension(name)
        except InvalidInput as error:
            raise ToolFailed(f"{error}: {error.hint}") from error
        left = self._gate().budget.remaining(dimension.field)
        return None if left is None else float(left)

    def _could_pass(self, operation: str) -> bool:
        tool = self._gate().tool(operation)
        return tool is not None and self._gate().policy.could_allow(tool)

    def _verdict(self, operation: str) -> str:
        tool = self._gate().tool(operation)
        return most_permissive_verdict(self._gate().policy, tool) if tool is not None else "deny"


def as_json(entries: object) -> list[Json]:
    """Values as plain JSON, for a guest."""
    plain: list[Json] = msgspec.json.decode(encode(entries))
    return plain
