"""The Python guest: a subset of Python on Monty, in worker processes, with every way out leading to the gate."""

from holdfast.guests.python.engine import python_engine

__all__ = ["python_engine"]
