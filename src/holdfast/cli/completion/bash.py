"""Completion for bash: a script of `case`s. Nothing of Holdfast runs while a person types, except to list sessions."""

from collections.abc import Sequence

from holdfast.cli.completion.words import Place, Value, flags_with_values

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
_MIDDLE = """\
  esac
  case "$place" in
"""
_TAIL = """\
  esac
}
complete -o filenames -o bashdefault -F _holdfast holdfast
"""


def bash_script(places: Sequence[Place]) -> str:
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
        flags = " ".join(flag for option in place.options for flag in option.flags)
        words = f'-W "{" ".join(place.words)}"' if place.words else ""
        rest = f"_holdfast_offer {words}" if words else _offer(place.argument)
        parts.append(
            f"    '{place.path}') if [[ $current == -* ]]; then _holdfast_offer -W '{flags}'; else {rest}; fi ;;\n"
        )
    return "".join([*parts, _TAIL])


def _offer(value: Value) -> str:
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


def _alternatives(texts: Sequence[str]) -> str:
    return "|".join(f"'{text}'" for text in texts)
