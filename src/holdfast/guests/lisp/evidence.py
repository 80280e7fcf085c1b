"""Evidence: a place in a file, word for word as it was, named by what it says.

Its id is a digest of the file's fingerprint and the lines it is about, so the same look gives the same evidence.
"""

import hashlib

from holdfast.guests.lisp.data import Datum, iterate, make_list
from holdfast.guests.lisp.faults import Fault
from holdfast.guests.lisp.numbers import integer
from holdfast.guests.lisp.registers import Control, Registers
from holdfast.guests.lisp.texts import text

_MAX_SNIPPET = 500
"""Characters of a file that are quoted where no lines are named."""


def _evidence(machine: Registers, arguments: list[Datum]) -> None:
    """Evidence from a path, its text, its fingerprint and a list of first and last line, counted from 1; empty is all."""
    path, content, fingerprint = (text(argument) for argument in arguments[:3])
    span = [integer(item) for item in iterate(arguments[3])]
    machine.charge(steps=len(content) // 100, size=len(content))
    named = hashlib.sha256(f"{fingerprint}:{span}".encode()).hexdigest()[:16]
    machine.give(
        {
            "id": f"ev:sha256:{named}",
            "ref": path,
            "span": make_list(span),
            "fingerprint": fingerprint,
            "snippet": _lines(content, span) if span else content[:_MAX_SNIPPET],
        }
    )


def _lines(content: str, span: list[int]) -> str:
    if len(span) != 2 or not 1 <= span[0] <= span[1]:
        raise Fault("type-error", "evidence is (evidence path) or (evidence path first-line last-line)")
    lines = content.splitlines()
    if span[1] > len(lines):
        raise Fault("type-error", f"the file has {len(lines)} lines, so there is no line {span[1]}")
    return "\n".join(lines[span[0] - 1 : span[1]])


EVIDENCE = (Control("%evidence", _evidence, 4, 4),)
