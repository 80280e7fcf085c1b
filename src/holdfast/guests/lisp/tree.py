"""Lisp programs as trees that can be analysed before they run: the nodes, and what an analysis needs to know of data."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from holdfast.core import Tool
from holdfast.guests.lisp.data import Datum, Keyword, Pair, Symbol
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.host_calls import API, tool_operations

if TYPE_CHECKING:
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

__all__ = [
    "Application",
    "Assignment",
    "Bindings",
    "Builtin",
    "Conditional",
    "Constant",
    "Definition",
    "Either",
    "Lambda",
    "LispError",
    "Node",
    "Sequence",
    "Variable",
    "holds_keyword",
    "key_name",
    "keyword_name",
    "library_names",
    "procedures_of_tools",
    "program_tree",
]


def __getattr__(name: str) -> object:
    """The nodes load with the first analysis, because few sessions run Lisp."""
    if name not in __all__:
        raise AttributeError(name)
    import holdfast.guests.lisp.lang.nodes as nodes

    node = globals()[name] = getattr(nodes, name)
    return node


def program_tree(code: str) -> "tuple[Lambda, ...]":
    """The forms of a program, expanded; each is the body of a procedure. Raises LispError, also for a use of a macro."""
    from holdfast.guests.lisp.lang.expander import expand
    from holdfast.guests.lisp.lang.reader import read
    from holdfast.guests.lisp.lib import library
    from holdfast.guests.lisp.vm.environment import Root

    def refuse(macro: object, arguments: list[Datum]) -> Datum:
        raise LispError("macro-error", "macros are not expanded here")

    root = Root(library())
    return tuple(expand(form, root, refuse) for form in read(code))


def library_names() -> frozenset[str]:
    """The procedures of the language."""
    from holdfast.guests.lisp.lib import library

    return frozenset(library().cells)


def procedures_of_tools(tools: Iterable[Tool]) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The operation of each procedure that calls a tool, and the names of its arguments without a label."""
    found = tool_operations(tools) | API
    return {name: (each.operation, each.positions) for name, each in found.items()}


def holds_keyword(datum: Datum) -> bool:
    """Whether a constant is a keyword, or a list with one."""
    while isinstance(datum, Pair):
        if holds_keyword(datum.first):
            return True
        datum = datum.rest
    return isinstance(datum, Keyword)


def keyword_name(datum: Datum) -> str | None:
    """The name of a keyword; None for other data."""
    return datum.name if isinstance(datum, Keyword) else None


def key_name(datum: Datum) -> str | None:
    """The field that a constant names; None if it names none."""
    if isinstance(datum, str):
        return datum
    return datum.name if isinstance(datum, (Keyword, Symbol)) else None
