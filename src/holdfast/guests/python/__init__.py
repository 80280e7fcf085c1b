"""The Python guest: a subset of Python on Monty, in worker processes. Its calls and file operations all reach the gate."""

from holdfast.guests.python.engine import python_engine

__all__ = ["python_engine"]
