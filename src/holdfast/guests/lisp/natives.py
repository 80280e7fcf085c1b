"""Pieces of code that no program contains: what a continuation leads to at the edges of a run."""

from holdfast.guests.lisp.compiler import BUDGETED, CAUGHT, HALT, RETURN
from holdfast.guests.lisp.environment import Instruction, Root, Template
from holdfast.guests.lisp.nodes import Constant, Lambda


def _native(name: str, *code: Instruction) -> Template:
    template = Template(Lambda(name, (), None, (), Constant(None), None), (), Root())
    template.code = list(code)
    return template


HALTED = _native("%halt", (HALT, None))
CATCHER = _native("%catch", (CAUGHT, None), (RETURN, None))
BUDGET_END = _native("%budget-end", (BUDGETED, None), (RETURN, None))
NATIVE = {template.node.name: template for template in (HALTED, CATCHER, BUDGET_END)}
