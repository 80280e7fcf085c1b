"""Completion for zsh, with what each word is for beside it."""

from collections.abc import Mapping, Sequence

from holdfast.cli.completion.words import Place, Value, flags_with_values

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
_MIDDLE = """\
  esac
  case "$place" in
"""
_TAIL = """\
  esac
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; elif (( $+functions[compdef] )); then compdef _holdfast holdfast; fi
"""


def zsh_script(places: Sequence[Place]) -> str:
    """The script."""
    valued = [
        f"{place.path}|{flag}" for place in places for o in flags_with_values(place) for flag in o.flags
    ]
    paths = [
        f"{place.path.rpartition(' ')[0]}|{place.path.rpartition(' ')[2]}" for place in places if place.path
    ]
    parts = [_HEAD % {"valued": _alternatives(valued), "paths": _alternatives(paths)}]
    for place in places:
        for option in flags_with_values(place):
            pattern = _alternatives([f"{place.path}|{flag}" for flag in option.flags])
            parts.append(f"    {pattern}) {_offer(option.value)}; return ;;\n")
    parts.append(_MIDDLE)
    for place in places:
        options = {flag: option.what for option in place.options for flag in option.flags}
        rest = _described("command", place.words) if place.words else _offer(place.argument)
        parts.append(
            f"    '{place.path}') if [[ $PREFIX == -* ]]; then {_described('option', options)}; else {rest}; fi ;;\n"
        )
    return "".join([*parts, _TAIL])


def _described(what: str, words: Mapping[str, str]) -> str:
    listed = " ".join(_quoted(f"{word}:{about}" if about else word) for word, about in words.items())
    return f"found=({listed}); _describe '{what}' found"


def _offer(value: Value) -> str:
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


def _alternatives(texts: Sequence[str]) -> str:
    return "|".join(f"'{text}'" for text in texts)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
