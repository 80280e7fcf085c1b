"""Calls of tools: what each call expression gives its tool."""

import ast
from collections.abc import Mapping

from holdfast.policy.flow.atoms import (
    ANY,
    COMPUTED,
    KEYS,
    NOTHING,
    PART,
    WHOLE,
    Heap,
    Read,
    ToolName,
    Val,
    made_object,
    unknown,
)
from holdfast.policy.flow.call_arguments import CallArguments
from holdfast.policy.flow.result import Signature
from holdfast.policy.flow.variables import Variables
from holdfast.policy.labels.levels import READER_OPERATIONS

_READ, _RAISED = "<read>", "<raised>"


class ToolCall:
    """What the calls of one tool from one expression are given."""

    def __init__(self, node: ast.expr, tool: str, source: int) -> None:
        self.node = node
        self.tool = tool
        self.source = source
        self.arguments: dict[str, Val] = {}
        self.rest: Val = NOTHING
        self.condition: Val = NOTHING


class ToolCalls:
    """All calls of tools in a program."""

    def __init__(self, heap: Heap, variables: Variables, tools: Mapping[str, Signature]) -> None:
        self._heap = heap
        self._variables = variables
        self._tools = tools
        self._calls: dict[tuple[int, str], ToolCall] = {}
        self._read: Val = NOTHING
        self._raised: Val = NOTHING
        self.shown: Val = NOTHING

    def all(self) -> list[ToolCall]:
        """The calls, in the order of their numbers."""
        return list(self._calls.values())

    def call(self, tool: ToolName, given: CallArguments) -> Val:
        """The result of a call."""
        call = self._of(tool, given)
        names = list(self._tools[tool.name].parameters)
        for position, value in enumerate(given.positional):
            if position < len(names):
                self._give(call, names[position], value)
            else:
                call.rest |= self._heap.parts(value)
        for name, value in given.keywords.items():
            self._give(call, name, value)
        if given.has_rest:
            call.rest |= self._heap.computed(given.rest)
        condition = call.condition | self._variables.decided_by()
        if condition != call.condition:
            call.condition = condition
            self._heap.progress.grew(call)
        self._heap.progress.use(call)
        self.note_read(frozenset({Read(call.source, (), PART)}))
        if self._tools[tool.name].operation in READER_OPERATIONS:
            answer = self._heap.computed(given.everything()) | call.condition | {made_object(given.node)}
            self._heap.add(made_object(given.node), ANY, answer)
            self._heap.add(made_object(given.node), KEYS, answer)
            return answer
        result = frozenset({Read(call.source, (), WHOLE)})
        return result | self._heap.chosen(given.everything()) | call.condition

    def call_indirectly(self, tool: ToolName, given: CallArguments) -> Val:
        """The result of a call that something else makes for the program, with what is not known."""
        self._of(tool, given).rest |= unknown()
        return unknown()

    def show(self, value: Val) -> None:
        """The program prints a value, or ends with it."""
        self.shown = self.shown | self._heap.parts(value) | self._variables.decided_by()

    def note_read(self, value: Val) -> None:
        """The program reads a value from outside."""
        if not value <= self._read:
            self._read |= value
            self._heap.progress.grew(_READ)

    def everything_read(self) -> Val:
        """Anything that the program read."""
        self._heap.progress.use(_READ)
        return COMPUTED | self._heap.parts(self._read)

    def note_raised(self, value: Val) -> None:
        """The program raises a value."""
        if not value <= self._raised:
            self._raised |= value
            self._heap.progress.grew(_RAISED)

    def caught(self) -> Val:
        """What an exception may be, and carry."""
        self._heap.progress.use(_RAISED)
        return self.everything_read() | self._raised

    def _of(self, tool: ToolName, given: CallArguments) -> ToolCall:
        key = id(given.node), tool.name
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = ToolCall(given.node, tool.name, len(self._calls))
        return call

    def _give(self, call: ToolCall, name: str, value: Val) -> None:
        given = self._heap.parts(value) | self._variables.decided_by()
        call.arguments[name] = call.arguments.get(name, NOTHING) | given
