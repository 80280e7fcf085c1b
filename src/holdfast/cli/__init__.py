"""The command line. It has no rights of its own: everything it does goes through the same gate as the library."""

from holdfast.cli.main import main

__all__ = ["main"]
