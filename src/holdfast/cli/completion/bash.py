"""Completion for bash: a script of `case` statements. Holdfast runs during completion only to list sessions."""

from collections.abc import Sequence

from holdfast.cli.completion.cases import case_script
from holdfast.cli.completion.words import ArgumentSpec, CommandSpec

_HEAD = """\
# Bash completion for holdfast. Load it with: source <(holdfast completion bash)
_holdfast_offer() { COMPREPLY=($(compgen "$@" -- "${COMP_WORDS[COMP_CWORD]}")); }
_holdfast() {
  local current=${COMP_WORDS[COMP_CWORD]} before="" parsed="" word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$parsed|$before" in
      %(valued)s) before=""; continue ;;
    esac
    before=$word
    case "$parsed|$word" in
      %(paths)s) parsed="${parsed:+$parsed }$word" ;;
    esac
  done
  case "$parsed|$before" in
"""
_TAIL = """\
  esac
}
complete -o filenames -o bashdefault -F _holdfast holdfast
"""


def bash_script(commands: Sequence[CommandSpec]) -> str:
    """The completion script for bash."""
    return case_script(commands, head=_HEAD, tail=_TAIL, offer=_offer, after_command=_after_command)


def _after_command(command: CommandSpec) -> str:
    flags = " ".join(flag for option in command.options for flag in option.flags)
    words = f'-W "{" ".join(command.words)}"' if command.words else ""
    rest = f"_holdfast_offer {words}" if words else _offer(command.argument)
    return f"if [[ $current == -* ]]; then _holdfast_offer -W '{flags}'; else {rest}; fi"


def _offer(value: ArgumentSpec) -> str:
    match value.kind:
        case "words":
            return f"_holdfast_offer -W '{' '.join(value.words)}'"
        case "sessions":
            return '_holdfast_offer -W "$(holdfast completion sessions 2>/dev/null)"'
        case "files":
            return "_holdfast_offer -f"
        case "folders":
            return "_holdfast_offer -d"
        case "none" | "any":
            return ":"
