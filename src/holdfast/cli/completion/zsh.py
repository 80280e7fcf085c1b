"""Completion for zsh, with a description beside each word."""

from collections.abc import Mapping, Sequence

from holdfast.cli.completion.cases import case_script
from holdfast.cli.completion.words import ArgumentSpec, CommandSpec

_HEAD = """\
#compdef holdfast
# Zsh completion for holdfast. Load it with: source <(holdfast completion zsh)
# or save it as _holdfast in a folder of $fpath.
_holdfast() {
  local before="" parsed="" word
  local -a found
  for word in ${words[2,CURRENT-1]}; do
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
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; elif (( $+functions[compdef] )); then compdef _holdfast holdfast; fi
"""


def zsh_script(commands: Sequence[CommandSpec]) -> str:
    """The completion script for zsh."""
    return case_script(commands, head=_HEAD, tail=_TAIL, offer=_offer, after_command=_after_command)


def _after_command(command: CommandSpec) -> str:
    options = {flag: option.description for option in command.options for flag in option.flags}
    rest = _described("command", command.words) if command.words else _offer(command.argument)
    return f"if [[ $PREFIX == -* ]]; then {_described('option', options)}; else {rest}; fi"


def _described(what: str, words: Mapping[str, str]) -> str:
    listed = " ".join(_quoted(f"{word}:{about}" if about else word) for word, about in words.items())
    return f"found=({listed}); _describe '{what}' found"


def _offer(value: ArgumentSpec) -> str:
    match value.kind:
        case "words":
            return f"compadd -- {' '.join(value.words)}"
        case "sessions":
            return 'compadd -- ${(f)"$(holdfast completion sessions 2>/dev/null)"}'
        case "files":
            return "_files"
        case "folders":
            return "_files -/"
        case "none" | "any":
            return ":"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
