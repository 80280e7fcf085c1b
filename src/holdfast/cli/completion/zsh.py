"""Completion for zsh, with what each word is for beside it."""

from collections.abc import Mapping, Sequence

from holdfast.cli.completion.cases import case_script
from holdfast.cli.completion.words import ArgumentSpec, CommandSpec

_HEAD = """\
#compdef holdfast
# Completion of holdfast for zsh. Load it with: source <(holdfast completion zsh)
# or save it as _holdfast in a folder of $fpath.
_holdfast() {
  local before="" place="" word
  local -a found
  for word in ${words[2,CURRENT-1]}; do
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
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; elif (( $+functions[compdef] )); then compdef _holdfast holdfast; fi
"""


def zsh_script(places: Sequence[CommandSpec]) -> str:
    """The script."""
    return case_script(places, head=_HEAD, tail=_TAIL, offer=_offer, at_place=_after_command)


def _after_command(place: CommandSpec) -> str:
    options = {flag: option.what for option in place.options for flag in option.flags}
    rest = _described("command", place.words) if place.words else _offer(place.argument)
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
