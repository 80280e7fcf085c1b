"""Scopes: the variables of the top level, and the code and frames of procedures."""

from typing import NamedTuple, final

from holdfast.core import pluralize
from holdfast.guests.lisp.data import UNBOUND, Datum, Frame, Procedure, make_list
from holdfast.guests.lisp.errors import LispError, SourcePlace
from holdfast.guests.lisp.lang.nodes import Lambda

Instruction = tuple[int, object]


class Level(NamedTuple):
    """The names of one frame. The first `arguments` are always bound; the others once they are defined."""

    names: tuple[str, ...]
    arguments: int

    @classmethod
    def of(cls, node: Lambda) -> "Level":
        """The frame of a procedure."""
        return cls(node.names, len(node.names) - len(node.defined))


Scope = tuple[Level, ...]
"""The frames around a piece of code, innermost first."""


@final
class Cell:
    """One variable of a top level."""

    __slots__ = ("name", "value")

    def __init__(self, name: str, value: Datum = UNBOUND) -> None:
        self.name, self.value = name, value


@final
class Root:
    """A top level: its variables and macros. A name that it does not define is looked up in `base` on first use."""

    __slots__ = ("base", "cells", "macros")

    def __init__(self, base: "Root | None" = None) -> None:
        self.base = base
        self.cells: dict[str, Cell] = {}
        self.macros: dict[str, Closure] = {}

    def cell(self, name: str) -> Cell:
        """The variable with this name; created if it does not exist."""
        cell = self.cells.get(name)
        if cell is None:
            cell = self.cells[name] = Cell(name, self.inherited(name))
        return cell

    def inherited(self, name: str) -> Datum:
        """The base's value of a name. Names that begin with % are private to the base."""
        if self.base is None or name.startswith("%") or name not in self.base.cells:
            return UNBOUND
        return self.base.cells[name].value

    def defined(self) -> dict[str, Datum]:
        """The names and values that the program itself defined."""
        return {
            name: cell.value
            for name, cell in self.cells.items()
            if cell.value is not UNBOUND and cell.value is not self.inherited(name)
        }


@final
class Template:
    """The code of a procedure without a frame. Compiled on the first call."""

    __slots__ = ("arity", "code", "extra", "node", "places", "root", "scope", "takes_rest")

    def __init__(self, node: Lambda, scope: Scope, root: Root) -> None:
        self.node, self.scope, self.root = node, scope, root
        self.arity = len(node.parameters)
        self.takes_rest = node.rest is not None
        self.extra = [UNBOUND] * len(node.defined)
        self.code: list[Instruction] | None = None
        self.places: dict[int, SourcePlace] = {}

    def take_rest(self, frame: Frame) -> None:
        """Collect the arguments beyond the parameters into a list. Raises a LispError if their number is wrong."""
        count = len(frame) - 1
        if count < self.arity or (count > self.arity and not self.takes_rest):
            name = self.node.name or "this procedure"
            at_least = "at least " if self.takes_rest else ""
            raise LispError(
                "arity-error",
                f"{name} takes {at_least}{pluralize(self.arity, 'argument')}, but got {count}",
            )
        frame[self.arity + 1 :] = [make_list(frame[self.arity + 1 :])]


@final
class Closure(Procedure):
    """A procedure written in Lisp, with the frame in which it was created."""

    __slots__ = ("frame", "template")

    def __init__(self, template: Template, frame: Frame | None) -> None:
        self.template = template
        self.frame = frame
