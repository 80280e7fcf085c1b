"""Commands of a conversation, typed with a slash: the table of them, and doing what a line says."""

from holdfast.cli.chat.slash.registry import COMMANDS, perform

__all__ = ["COMMANDS", "perform"]
