"""Lisp, the language of 001: a guest whose programs can do nothing but compute and ask the gate."""

from holdfast.guests.lisp.engine import LispEngine, lisp_engine

__all__ = ["LispEngine", "lisp_engine"]
