"""Shell completion: the possible words, taken from the argument parsers, and a script for each shell."""

from holdfast.cli.completion.bash import bash_script
from holdfast.cli.completion.fish import fish_script
from holdfast.cli.completion.words import CommandSpec, command_specs
from holdfast.cli.completion.zsh import zsh_script

__all__ = ["SCRIPTS", "CommandSpec", "command_specs"]

SCRIPTS = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
