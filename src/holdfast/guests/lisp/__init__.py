"""Lisp: a guest whose programs can do nothing but compute and ask the gate."""

from holdfast.guests.lisp.engine import LispEngine, lisp_engine
from holdfast.guests.lisp.language import LANGUAGE, LanguageToolset
from holdfast.guests.lisp.outcomes import outcome_of

__all__ = ["LANGUAGE", "LanguageToolset", "LispEngine", "lisp_engine", "outcome_of"]
