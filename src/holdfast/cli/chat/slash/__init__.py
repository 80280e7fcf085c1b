"""Slash commands of the chat: the registry, and running one."""

from holdfast.cli.chat.slash.registry import COMMANDS, run_slash_command

__all__ = ["COMMANDS", "run_slash_command"]
