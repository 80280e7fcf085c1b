"""Lisp: a guest whose programs can do nothing but compute and ask the gate."""

from holdfast.guests.lisp.engine import LispEngine, lisp_engine
from holdfast.guests.lisp.errors import outcome_of
from holdfast.guests.lisp.host_calls import LANGUAGE, LanguageToolset

__all__ = ["LANGUAGE", "LanguageToolset", "LispEngine", "lisp_engine", "outcome_of"]
