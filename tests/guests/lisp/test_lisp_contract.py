"""The Lisp guest under the suite that every engine passes."""

import pytest
from tests.guests.engines import Candidate, Programs
from tests.guests.lisp.programs import KEY
from tests.guests.test_guest_contract import *  # noqa: F403

from holdfast.guests.lisp import lisp_engine

LISP = Programs(
    two="(+ 1 1)",
    sets="(define x 41)",
    reads="x",
    prints='(print "hello")',
    says='(echo/say :text "first")',
    says_twice='(echo/say "first") (call "echo.say" :text "second")',
    catches='(outcome-field (try (echo/say :text "first")) :message)',
    keeps_then_says='(define x 41) (print "before") (let ((answer (echo/say :text "first"))) (print "after") answer)',
    fails='(error "boom")',
    unreadable="(define x (",
    spins="(let loop () (loop))",
    floods='(print (string-repeat "x" 5000))',
)


@pytest.fixture  # type: ignore[no-redef]  # in place of the one for all engines
def candidate() -> Candidate:
    """This engine, with its own programs."""
    return Candidate(make=lambda _: lisp_engine(key=KEY), programs=LISP)
