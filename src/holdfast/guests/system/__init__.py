"""The system engine: code in the project's own CPython, in the command sandbox of its session."""

from holdfast.guests.system.contract import (
    Interpreter,
    InterpreterEnd,
    InterpreterGone,
    Interpreters,
)
from holdfast.guests.system.engine import SystemEngine, system_engine
from holdfast.guests.system.program import interpreter_argv

__all__ = [
    "Interpreter",
    "InterpreterEnd",
    "InterpreterGone",
    "Interpreters",
    "SystemEngine",
    "interpreter_argv",
    "system_engine",
]
