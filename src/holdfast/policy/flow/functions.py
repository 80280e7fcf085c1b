"""Functions of a program: what they are given, over all their calls, and what they return."""

import ast

from holdfast.policy.flow.atoms import ANY, KEYS, NOTHING, Function, Heap, Made, Val
from holdfast.policy.flow.call_arguments import CallArguments
from holdfast.policy.flow.effects import has_effects
from holdfast.policy.flow.scopes import FunctionNode, Scope
from holdfast.policy.flow.variables import Variables

_RETURNED, _CONDITION, _REACHED = "<returned>", "<condition>", "<reached>"


class Functions:
    """The functions that the program defines. Each is run once a pass, with everything that any call gives it."""

    def __init__(self, heap: Heap, variables: Variables) -> None:
        self._heap = heap
        self._variables = variables
        self._nodes: dict[int, FunctionNode] = {}
        self._scopes: dict[int, Scope] = {}
        self._reached: dict[int, None] = {}

    def define(self, node: FunctionNode, defaults: dict[str, Val]) -> Function:
        """The function that a definition makes."""
        number = id(node)
        if number not in self._nodes:
            self._nodes[number] = node
            self._scopes[number] = self._variables.names.function_scope(node, number, self._variables.scope)
        for name, value in defaults.items():
            self._variables.grow(number, name, value)
        return Function(number)

    def reached(self) -> list[int]:
        """The functions that are called."""
        self._heap.progress.use(_REACHED)
        return list(self._reached)

    def call(self, number: int, given: CallArguments) -> Val:
        """What a call of a function returns."""
        if number not in self._reached:
            self._reached[number] = None
            self._heap.progress.grew(_REACHED)
        arguments = self._nodes[number].args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args)]
        keyword_only = [each.arg for each in arguments.kwonlyargs]
        for name, value in zip(names, given.positional, strict=False):
            self._variables.grow(number, name, value)
        for name, value in given.keywords.items():
            if name in names or name in keyword_only:
                self._variables.grow(number, name, value)
        for name in (*names, *keyword_only) if given.has_rest else ():
            self._variables.grow(number, name, given.rest)
        for extra, is_dict in ((arguments.vararg, False), (arguments.kwarg, True)):
            if extra is not None:
                made = Made(id(extra), is_dict)
                self._heap.add(made, ANY, given.everything())
                self._heap.add(made, KEYS, self._heap.computed(given.rest))
                self._variables.grow(number, extra.arg, frozenset({made}))
        self._variables.grow(number, _CONDITION, self._variables.decided_by())
        return self._variables.cell(number, _RETURNED)

    def has_effects(self, number: int) -> bool:
        """Whether a call of a function may change anything but its result."""
        node = self._nodes[number]
        return any(has_effects(each) for each in ([node.body] if isinstance(node, ast.Lambda) else node.body))

    def enter(self, number: int) -> FunctionNode:
        """Begin to run the body of a function."""
        self._variables.scope, self._variables.depth = self._scopes[number], 1
        self._variables.condition = self._variables.cell(number, _CONDITION)
        return self._nodes[number]

    def add_returned(self, value: Val) -> None:
        """The function that runs returns a value."""
        number = self._variables.function_scope().number
        self._variables.grow(number, _RETURNED, value | self._variables.decided_by() | NOTHING)
