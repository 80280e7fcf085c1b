"""The command line: text in, events out. It holds no rights of its own."""

from holdfast.cli.main import main

__all__ = ["main"]
