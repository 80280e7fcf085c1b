"""Completion for bash: a script of `case`s. Nothing of Holdfast runs while a person types, except to list sessions."""

from collections.abc import Sequence

from holdfast.cli.completion.cases import case_script
from holdfast.cli.completion.words import ArgumentSpec, CommandSpec

_HEAD = """\
# Completion of holdfast for bash. Load it with: source <(holdfast completion bash)
_holdfast_offer() { COMPREPLY=($(compgen "$@" -- "${COMP_WORDS[COMP_CWORD]}")); }
_holdfast() {
  local current=${COMP_WORDS[COMP_CWORD]} before="" place="" word i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    case "$place|$before" in
      %(valued)s) before=""; continue ;;
    esac
    before=$word
    case "$place|$word" in
      %(paths)s) place="${place:+$place }$word" ;;
    esac
  done
  case "$place|$before" in
"""
_TAIL = """\
  esac
}
complete -o filenames -o bashdefault -F _holdfast holdfast
"""


def bash_script(places: Sequence[CommandSpec]) -> str:
    """The script."""
    return case_script(places, head=_HEAD, tail=_TAIL, offer=_offer, at_place=_after_command)


def _after_command(place: CommandSpec) -> str:
    flags = " ".join(flag for option in place.options for flag in option.flags)
    words = f'-W "{" ".join(place.words)}"' if place.words else ""
    rest = f"_holdfast_offer {words}" if words else _offer(place.argument)
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
