"""What the scripts for bash and zsh have in common: find the place, then a `case` for each option and each place."""

from collections.abc import Callable, Sequence

from holdfast.cli.completion.words import ArgumentSpec, CommandSpec, flags_with_values

_MIDDLE = """\
  esac
  case "$place" in
"""


def case_script(
    places: Sequence[CommandSpec],
    *,
    head: str,
    tail: str,
    offer: Callable[[ArgumentSpec], str],
    at_place: Callable[[CommandSpec], str],
) -> str:
    """The script. `head` walks the words typed so far, `offer` completes a value, `at_place` whatever a place takes."""
    valued = [
        f"{place.path}|{flag}" for place in places for o in flags_with_values(place) for flag in o.flags
    ]
    paths = [
        f"{place.path.rpartition(' ')[0]}|{place.path.rpartition(' ')[2]}" for place in places if place.path
    ]
    parts = [head % {"valued": _alternatives(valued), "paths": _alternatives(paths)}]
    for place in places:
        for option in flags_with_values(place):
            pattern = _alternatives([f"{place.path}|{flag}" for flag in option.flags])
            parts.append(f"    {pattern}) {offer(option.value)}; return ;;\n")
    parts.append(_MIDDLE)
    parts += [f"    '{place.path}') {at_place(place)} ;;\n" for place in places]
    return "".join([*parts, tail])


def _alternatives(texts: Sequence[str]) -> str:
    return "|".join(f"'{text}'" for text in texts)
