"""The common part of the scripts for bash and zsh: find the command, then a `case` for each option and each command."""

from collections.abc import Callable, Sequence

from holdfast.cli.completion.words import ArgumentSpec, CommandSpec, flags_with_values

_MIDDLE = """\
  esac
  case "$parsed" in
"""


def case_script(
    commands: Sequence[CommandSpec],
    *,
    head: str,
    tail: str,
    offer: Callable[[ArgumentSpec], str],
    after_command: Callable[[CommandSpec], str],
) -> str:
    """Build the script. `head` walks the typed words, `offer` completes a value, and `after_command` what follows a command."""
    valued = [
        f"{command.path}|{flag}"
        for command in commands
        for o in flags_with_values(command)
        for flag in o.flags
    ]
    paths = [
        f"{command.path.rpartition(' ')[0]}|{command.path.rpartition(' ')[2]}"
        for command in commands
        if command.path
    ]
    parts = [head % {"valued": _alternatives(valued), "paths": _alternatives(paths)}]
    for command in commands:
        for option in flags_with_values(command):
            pattern = _alternatives([f"{command.path}|{flag}" for flag in option.flags])
            parts.append(f"    {pattern}) {offer(option.value)}; return ;;\n")
    parts.append(_MIDDLE)
    parts += [f"    '{command.path}') {after_command(command)} ;;\n" for command in commands]
    return "".join([*parts, tail])


def _alternatives(texts: Sequence[str]) -> str:
    return "|".join(f"'{text}'" for text in texts)
