"""The standard library: procedures written in Python, and those of prelude.lisp. Built once, shared, never changed."""

from functools import cache
from importlib.resources import files

from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp.data import Operation, Primitive
from holdfast.guests.lisp.host_calls import API
from holdfast.guests.lisp.lang.reader import read
from holdfast.guests.lisp.lib.basics import BASICS
from holdfast.guests.lisp.lib.control import CONTROLS
from holdfast.guests.lisp.lib.evidence import EVIDENCE, MODELS
from holdfast.guests.lisp.lib.facts import FACT_PROCEDURES
from holdfast.guests.lisp.lib.lists import LISTS
from holdfast.guests.lisp.lib.numbers import NUMBERS
from holdfast.guests.lisp.lib.strings import STRINGS
from holdfast.guests.lisp.lib.tables import TABLES
from holdfast.guests.lisp.vm.environment import Cell, Root
from holdfast.guests.lisp.vm.limits import Meter
from holdfast.guests.lisp.vm.machine import Machine
from holdfast.guests.lisp.vm.registers import OPERATE, Control
from holdfast.guests.lisp.vm.state import ArtifactStore, FactStore, LispState

_PROCEDURES: tuple[Primitive | Control | Operation, ...] = (
    *NUMBERS,
    *LISTS,
    *STRINGS,
    *TABLES,
    *BASICS,
    *CONTROLS,
    *FACT_PROCEDURES,
    *EVIDENCE,
    *MODELS,
    *API.values(),
    OPERATE,
)


@cache
def library() -> Root:
    """The top level that every program's own top level is based on."""
    root = Root()
    for procedure in _PROCEDURES:
        root.cells[procedure.name] = Cell(procedure.name, procedure)
    machine = Machine(
        LispState(root, FactStore(), ArtifactStore(0)), Meter(GuestLimits()), operations={}, seed=0, now_ms=0
    )
    machine.load(read(files(__package__).joinpath("prelude.lisp").read_text("utf-8")))
    progress = machine.advance(100_000)
    assert progress == "done", "the prelude contains only definitions"
    return root


def new_state(memo_capacity: int) -> LispState:
    """A session's state before its first run."""
    return LispState(Root(library()), FactStore(), ArtifactStore(memo_capacity))
