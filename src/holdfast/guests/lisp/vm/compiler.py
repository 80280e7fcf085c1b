"""The compiler: from syntax tree nodes to instructions. It cannot fail, because the expander has checked the program.

An instruction is an opcode and an argument. A variable is addressed by the number of frames outward and its index there.
Native templates (`HALTED`, `CATCHER`, `BUDGET_END`) are the continuations that no program contains.
"""

from typing import assert_never

from holdfast.guests.lisp.errors import SourcePlace
from holdfast.guests.lisp.lang.nodes import (
    Application,
    Assignment,
    Bindings,
    Builtin,
    Conditional,
    Constant,
    Definition,
    Either,
    Lambda,
    Node,
    Sequence,
    Variable,
)
from holdfast.guests.lisp.lang.trampoline import Recursive, run_trampoline
from holdfast.guests.lisp.vm.environment import Instruction, Level, Root, Scope, Template

VERSION = 2
"""Version of the instructions. A parked run points into its code, so another version cannot resume it."""

(
    LOCAL,
    CONSTANT,
    GLOBAL,
    CALL,
    BRANCH,
    TAIL_CALL,
    RETURN,
    OUTER,
    FAR,
    JUMP,
    EITHER,
    POP,
    CLOSURE,
    ENTER,
    LEAVE,
    SET_LOCAL,
    SET_GLOBAL,
    DEFINE,
    PEEK,
    TABLE,
    HALT,
    CAUGHT,
    BUDGETED,
) = range(23)

Leaf = Constant | Variable | Builtin | Lambda | Bindings
_LEAVES = (Constant, Variable, Builtin, Lambda, Bindings)
"""Nodes without parts that are compiled here."""


def compile_template(template: Template) -> list[Instruction]:
    """Compile a procedure and store the instructions in its template."""
    compiler = _Compiler(template.root)
    run_trampoline(
        compiler.emit(template.node.body, (Level.of(template.node), *template.scope), is_tail=True),
        max_calls=None,
    )
    template.code, template.places = compiler.code, compiler.places
    return compiler.code


class _Compiler:
    def __init__(self, root: Root) -> None:
        self.root = root
        self.code: list[Instruction] = []
        self.places: dict[int, SourcePlace] = {}

    def add(self, operation: int, argument: object = None, place: SourcePlace | None = None) -> int:
        if place is not None:
            self.places[len(self.code)] = place
        self.code.append((operation, argument))
        return len(self.code) - 1

    def patch(self, *jumps: int) -> None:
        """Set the target of these jumps to the next instruction."""
        for jump in jumps:
            self.code[jump] = (self.code[jump][0], len(self.code))

    def emit(self, node: Node, scope: Scope, *, is_tail: bool) -> Recursive[None]:
        """Emit code that pushes the node's value; in tail position it also returns."""
        match node:
            case Application():
                yield from self._call(node, scope, is_tail=is_tail)
            case Conditional():
                yield from self._conditional(node, scope, is_tail=is_tail)
            case Sequence():
                for item in node.items[:-1]:
                    yield from self._part(item, scope)
                    self.add(POP)
                yield from self._part(node.items[-1], scope, is_tail=is_tail)
            case Either():
                yield from self._part(node.first, scope)
                to_end = self.add(EITHER)
                yield from self._part(node.second, scope)
                self.patch(to_end)
                self._return(is_tail)
            case Definition() | Assignment():
                yield from self._part(node.value, scope)
                self._store(node, scope)
                self._return(is_tail)
            case _:
                self._leaf(node, scope)
                self._return(is_tail)

    def _part(self, node: Node, scope: Scope, *, is_tail: bool = False) -> Recursive[None]:
        """Emit code for a part of a node. A leaf needs no recursion."""
        if isinstance(node, _LEAVES):
            self._leaf(node, scope)
            self._return(is_tail)
        else:
            yield self.emit(node, scope, is_tail=is_tail)

    def _leaf(self, node: Leaf, scope: Scope) -> None:
        match node:
            case Constant():
                self.add(CONSTANT, node.value)
            case Variable():
                self._variable(node.name, scope, node.place)
            case Builtin():
                self.add(GLOBAL, (self.root.base or self.root).cell(node.name))
            case Lambda():
                self.add(CLOSURE, Template(node, scope, self.root))
            case Bindings():
                self._bindings(node.names, scope)
            case _:
                assert_never(node)

    def _return(self, is_tail: bool) -> None:
        if is_tail:
            self.add(RETURN)

    def _conditional(self, node: Conditional, scope: Scope, *, is_tail: bool) -> Recursive[None]:
        yield from self._part(node.test, scope)
        to_otherwise = self.add(BRANCH)
        yield from self._part(node.then, scope, is_tail=is_tail)
        to_end = None if is_tail else self.add(JUMP)
        self.patch(to_otherwise)
        yield from self._part(node.otherwise, scope, is_tail=is_tail)
        if to_end is not None:
            self.patch(to_end)

    def _call(self, node: Application, scope: Scope, *, is_tail: bool) -> Recursive[None]:
        function = node.function
        if (
            isinstance(function, Lambda)
            and function.rest is None
            and len(function.parameters) == len(node.arguments)
        ):
            yield from self._inline(function, node.arguments, scope, is_tail=is_tail)
            return
        yield from self._part(function, scope)
        for argument in node.arguments:
            yield from self._part(argument, scope)
        self.add(TAIL_CALL if is_tail else CALL, len(node.arguments), node.place)

    def _inline(
        self, function: Lambda, arguments: tuple[Node, ...], scope: Scope, *, is_tail: bool
    ) -> Recursive[None]:
        """A lambda that is applied immediately, such as `let`: a frame, but no closure and no call."""
        for argument in arguments:
            yield from self._part(argument, scope)
        self.add(ENTER, (len(arguments), len(function.defined)))
        yield from self._part(function.body, (Level.of(function), *scope), is_tail=is_tail)
        if not is_tail:
            self.add(LEAVE)

    def _variable(self, name: str, scope: Scope, place: SourcePlace | None) -> None:
        found = _address(name, scope)
        if found is None:
            self.add(GLOBAL, self.root.cell(name), place)
            return
        depth, index = found
        if depth < 2 and index <= scope[depth].arguments:
            self.add(LOCAL if depth == 0 else OUTER, index)
        else:
            self.add(FAR, (depth, index, name), place)

    def _store(self, node: Definition | Assignment, scope: Scope) -> None:
        found = _address(node.name, scope)
        if found is not None:
            self.add(SET_LOCAL, found)
        elif isinstance(node, Definition):
            self.add(DEFINE, self.root.cell(node.name))
        else:
            self.add(SET_GLOBAL, self.root.cell(node.name), node.place)

    def _bindings(self, names: tuple[str, ...], scope: Scope) -> None:
        for name in names:
            found = _address(name, scope)
            self.add(CONSTANT, name)
            if found is None:
                self.add(PEEK, self.root.cell(name))
            else:
                self.add(FAR, (*found, name))
        self.add(TABLE, len(names))


def _address(name: str, scope: Scope) -> tuple[int, int] | None:
    """The number of frames outward and the index there; None for a top-level variable."""
    for depth, level in enumerate(scope):
        if name in level.names:
            return depth, level.names.index(name) + 1
    return None


def _native(name: str, *code: Instruction) -> Template:
    template = Template(Lambda(name, (), None, (), Constant(None), None), (), Root())
    template.code = list(code)
    return template


HALTED = _native("%halt", (HALT, None))
CATCHER = _native("%catch", (CAUGHT, None), (RETURN, None))
BUDGET_END = _native("%budget-end", (BUDGETED, None), (RETURN, None))
NATIVE = {template.node.name: template for template in (HALTED, CATCHER, BUDGET_END)}
