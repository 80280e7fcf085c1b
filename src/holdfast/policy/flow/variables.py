"""The variables of a program under analysis, and what decides whether the current statement runs.

There is one value for each variable, whatever the order of the program. Only a name that is assigned again at the top of the
program, and that no function uses, gets a new value there.
"""

import ast
from collections.abc import Callable, Mapping
from typing import TypeVar

from holdfast.policy.flow.atoms import NOTHING, PAST_FUNCTION, Heap, Val
from holdfast.policy.flow.scopes import ProgramNames, Scope

T = TypeVar("T")
_Cell = tuple[int, str, int]
"""Scope, name and version."""
_EXITS = "<exits>"
EVERY_OTHER = "*"
"""In the variables of earlier runs: the value of every name that is not listed."""


class Variables:
    """Names and their values. They only grow, until a pass changes nothing."""

    def __init__(self, tree: ast.Module, *, heap: Heap, past: Mapping[str, Val]) -> None:
        self.module = Scope(0, None, set())
        self.scope = self.module
        self.depth = 0
        """How many branches, loops and functions the current statement is in."""
        self.condition: Val = NOTHING
        """What decides whether the current statement runs."""
        self._progress = heap.progress
        self._cells: dict[_Cell, Val] = {}
        self._versions: dict[str, int] = {}
        self.names = ProgramNames(tree)
        self._unversioned = self.names.in_functions
        self._stored = self.names.stored
        self.follows_unknown = EVERY_OTHER in past
        """Whether an earlier program could not be followed."""
        others = past.get(EVERY_OTHER, NOTHING)
        self._shadow = others if PAST_FUNCTION in others else None
        """What a name may be that means something before the program, if an earlier one may have replaced it."""
        for name, value in past.items():
            self._cells[0, name, 0] = value
        for name in self._stored - past.keys() if EVERY_OTHER in past else ():
            self._cells[0, name, 0] = past[EVERY_OTHER]

    def start_pass(self) -> None:
        """Begin at the top of the program again."""
        self._versions.clear()
        self.scope, self.depth, self.condition = self.module, 0, NOTHING

    def get(self, name: str) -> tuple[Val | None, bool]:
        """The value of a name, and whether it may still be the built-in of that name. None if nothing ever assigns it."""
        scope = self.scope.find(name)
        if scope is not self.module:
            return self.cell(scope.number, name), False
        version = self._versions.get(name, 0)
        cell = (0, name, version)
        self._progress.use(cell)
        value = self._cells.get(cell)
        if value is None:
            value = NOTHING if name in self._stored else self._shadow
        return value, version == 0

    def assign(self, name: str, value: Val, *, skips_comprehensions: bool = False) -> None:
        """Assign to a name, as the current statement does."""
        current = self.function_scope() if skips_comprehensions else self.scope
        scope = current.find(name)
        value = value | self.decided_by()
        if scope is not self.module:
            self.grow(scope.number, name, value)
            return
        if self.depth == 0 and current is self.module and name not in self._unversioned:
            self._versions[name] = self._versions.get(name, 0) + 1
        self._grow((0, name, self._versions.get(name, 0)), value)

    def assign_same(self, name: str, value: Val) -> None:
        """Add to what a name already has."""
        scope = self.scope.find(name)
        version = self._versions.get(name, 0) if scope is self.module else 0
        self._grow((scope.number, name, version), value | self.decided_by())

    def has_versions(self, name: str) -> bool:
        """Whether an assignment here gives the name a new value, and the old one is forgotten."""
        return self.depth == 0 and self.scope is self.module and name not in self._unversioned

    def cell(self, scope: int, name: str) -> Val:
        """The value of a variable of a function, or of something else that a function has."""
        cell = (scope, name, 0)
        self._progress.use(cell)
        return self._cells.get(cell, NOTHING)

    def grow(self, scope: int, name: str, value: Val) -> None:
        """Add to the value of a variable of a function."""
        self._grow((scope, name, 0), value)

    def under(self, decided: Val, run: Callable[[], T]) -> T:
        """Run what is only reached if a value decides so."""
        before = self.condition
        self.condition = before | decided
        self.depth += 1  # what is assigned there does not replace the old value
        result = run()
        self.depth -= 1
        self.condition = before
        return result

    def leave(self) -> None:
        """A statement leaves its block: what follows depends on why it is reached."""
        self.grow(self.function_scope().number, _EXITS, self.condition)

    def decided_by(self) -> Val:
        """Everything that decides whether the current statement runs."""
        self._progress.count(1 + len(self.condition) // 4)
        return self.condition | self.cell(self.function_scope().number, _EXITS)

    def function_scope(self) -> Scope:
        """The scope of the function, or of the module, that the current expression is in."""
        scope = self.scope
        while scope.is_comprehension and scope.parent is not None:
            scope = scope.parent
        return scope

    def of_module(self) -> dict[str, Val]:
        """Every value that a variable of the module can have, also if the program ends early."""
        found: dict[str, Val] = {}
        for (scope, name, _), value in self._cells.items():
            if scope == 0 and not name.startswith("<"):
                found[name] = found.get(name, NOTHING) | value
        return found

    def _grow(self, cell: _Cell, value: Val) -> None:
        old = self._cells.get(cell)
        if old is None or not value <= old:
            self._cells[cell] = value if old is None else old | value
            self._progress.grew(cell)
