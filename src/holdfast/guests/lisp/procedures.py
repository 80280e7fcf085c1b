"""Calling procedures: whether the number of arguments fits, and what happens to those beyond the parameters."""

from holdfast.guests.lisp.data import Control, Frame, Primitive, make_list
from holdfast.guests.lisp.environment import Template
from holdfast.guests.lisp.faults import Fault


def take_rest(template: Template, frame: Frame) -> None:
    """Gather the arguments beyond the parameters in a list. Raises a fault where their number does not fit."""
    count, arity = len(frame) - 1, template.arity
    if count < arity or (count > arity and not template.takes_rest):
        name = template.node.name or "this procedure"
        least = "at least " if template.takes_rest else ""
        raise Fault("arity-error", f"{name} takes {least}{arity} arguments, it was given {count}")
    frame[arity + 1 :] = [make_list(frame[arity + 1 :])]


def fits(callee: Primitive | Control, count: int) -> bool:
    return callee.least <= count and (callee.most is None or count <= callee.most)


def wrong_count(callee: Primitive | Control, count: int) -> Fault:
    if callee.most is None:
        expected = f"at least {callee.least}"
    elif callee.most == callee.least:
        expected = str(callee.least)
    else:
        expected = f"{callee.least} to {callee.most}"
    return Fault("arity-error", f"{callee.name.lstrip('%')} takes {expected} arguments, it was given {count}")
