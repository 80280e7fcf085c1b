"""Calls to the host: which procedure makes which call, how arguments are named, and language features that a policy may forbid.

Everything that touches files, a model or the session is a call that the gate judges. A restricted feature of the language
(`LANGUAGE`) is a call as well: a run makes it once, under the feature's name and without arguments. A fixpoint makes it
before each round, because a round is an iteration of the session's budget.
"""

import base64
from collections.abc import Iterable, Mapping

from holdfast.core import Amount, Answer, ArgumentRoles, Call, Failed, JsonObject, Performed, Tool, pluralize
from holdfast.guests.lisp.data import Datum, Keyword, Operation
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.long_text import LongText

_TOO_WIDE = "of memory as one text"
"""What `world.read` says of a text that takes more memory in Python than a call may carry."""

_API: dict[str, tuple[str, tuple[str, ...]]] = {
    "world/read": ("world.read", ("path",)),
    "world/list": ("world.list", ("pattern",)),
    "world/exists?": ("world.exists", ("path",)),
    "world/stat": ("world.stat", ("path",)),
    "world/write": ("world.write", ("path", "content")),
    "world/delete": ("world.delete", ("path",)),
    "world/search": ("world.search", ("query", "pattern")),
    "world/fingerprint": ("world.fingerprint", ("path",)),
    "llm/complete": ("llm.complete", ("prompt", "max_tokens")),
    "llm/intent": ("llm.intent", ("intent", "max_tokens")),
    "session/id": ("session.id", ()),
    "session/turn-number": ("session.turn_number", ()),
    "session/status": ("session.status", ()),
    "session/budget-remaining": ("session.budget_remaining", ("dimension",)),
    "session/allowed?": ("session.allowed", ("operation",)),
    "session/read-only?": ("session.read_only", ()),
    "session/proposal-mode?": ("session.proposal_mode", ()),
    "session/audit-log": ("session.audit_log", ()),
    "session/operations-count": ("session.operations_count", ()),
    "session/proposals": ("session.proposals", ()),
    "session/commit-proposals!": ("session.commit_proposals", ()),
    "session/rollback-proposals!": ("session.rollback_proposals", ()),
}

API = {name: Operation(name, operation, positions) for name, (operation, positions) in _API.items()}
"""The host procedures of the language. prelude.lisp wraps those for files and models to track dependencies."""


def tool_operations(tools: Iterable[Tool]) -> dict[str, Operation]:
    """The procedures for the tools of a run: `group.some_verb` becomes `group/some-verb` and `group/some_verb`."""
    operations: dict[str, Operation] = {}
    for tool in tools:
        properties = tool.parameters.get("properties")
        positions = tuple(properties) if isinstance(properties, dict) else ()
        lisp_name = tool.name.replace(".", "/", 1)
        for name in (lisp_name, lisp_name.replace("_", "-")):
            operations[name] = Operation(name, tool.name, positions)
    return operations


def name_arguments(name: str, positions: tuple[str, ...], given: list[Datum]) -> Mapping[str, Datum]:
    """Arguments by name: `:path "a.txt"` by its label, and unlabelled ones in the order of `positions`."""
    named: dict[str, Datum] = {}
    unlabelled: list[Datum] = []
    items = iter(given)
    for item in items:
        if not isinstance(item, Keyword):
            unlabelled.append(item)
            continue
        label = _argument_name(item.name, positions)
        if label in named:
            raise LispError("arity-error", f"{name} got :{item.name} twice")
        try:
            named[label] = next(items)
        except StopIteration:
            raise LispError("arity-error", f"{name} got :{item.name} without a value") from None
    if len(unlabelled) > len(positions):
        raise LispError(
            "arity-error", f"{name} takes at most {pluralize(len(positions), 'argument')} without a label"
        )
    for position, value in zip(positions, unlabelled, strict=False):
        if position in named:
            raise LispError("arity-error", f"{name} got {position} twice")
        named[position] = value
    return named


def with_long_content(operation: str, arguments: Mapping[str, Datum]) -> Mapping[str, Datum]:
    """The arguments of a call, with a long text that it writes to a file as base64."""
    content = arguments.get("content")
    is_written = operation in ("world.write", "world.append") and arguments.get("encoding") in (None, "utf-8")
    if not is_written or not isinstance(content, LongText):
        return arguments
    return {**arguments, "content": base64.b64encode(content.content).decode(), "encoding": "base64"}


def read_as_bytes(operation: str, arguments: JsonObject, answer: Answer) -> JsonObject | None:
    """The arguments to read a file as base64, if it takes too much memory as text and is read whole; None otherwise."""
    is_too_wide = isinstance(answer, Failed) and _TOO_WIDE in answer.reason
    is_whole = (
        operation == "world.read" and arguments.get("offset") in (None, 0) and arguments.get("length") is None
    )
    return {**arguments, "encoding": "base64"} if is_too_wide and is_whole else None


def _argument_name(label: str, positions: tuple[str, ...]) -> str:
    """`:max-tokens` is max_tokens, unless the tool's own argument has a dash."""
    return label if label in positions else label.replace("-", "_")


ROUND = "fixpoint"
LANGUAGE = ("eval", "subeval", "memo", ROUND, "assert", "fact?", "facts")
"""Features of the language that a policy can forbid."""


class LanguageToolset:
    """Offers language features as tools, so that a policy judges them like any other tool. Performing them has no effect."""

    def tools(self) -> tuple[Tool, ...]:
        return LANGUAGE_TOOLS

    def max_cost(self, call: Call) -> Amount:
        """One iteration for a round of a fixpoint, and nothing for the rest."""
        return Amount(iterations=1) if call.operation == ROUND else Amount()

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        return Performed(amount=self.max_cost(call))


def _tool(name: str, counts: tuple[str, ...]) -> Tool:
    properties: JsonObject = {count: {"type": "integer"} for count in counts}
    return Tool(
        name=name,
        description=f"The {name} of the Lisp language.",
        parameters={"type": "object", "properties": properties, "additionalProperties": False},
        roles=dict.fromkeys(counts, ArgumentRoles(default=("none",))),
        is_idempotent=True,
        is_read_only=True,
    )


LANGUAGE_TOOLS = tuple(_tool(name, ("round",) if name == ROUND else ()) for name in LANGUAGE)
