"""The Lisp guest: its programs can compute and make calls through the gate, and nothing else."""

from holdfast.guests.lisp.engine import LispEngine, lisp_engine
from holdfast.guests.lisp.errors import outcome_of
from holdfast.guests.lisp.host_calls import LANGUAGE, LanguageToolset

__all__ = ["LANGUAGE", "LanguageToolset", "LispEngine", "lisp_engine", "outcome_of"]
