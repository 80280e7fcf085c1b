"""The shapes of forms: taking a list apart and saying clearly what is wrong with it."""

from holdfast.guests.lisp.data import EMPTY, Datum, Pair
from holdfast.guests.lisp.faults import Malformed
from holdfast.guests.lisp.place import Place


class BuiltinName:
    """Stands in a rewritten form for a procedure of the language, whatever the program calls by that name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def items_of(form: Datum, place: Place | None) -> list[Datum]:
    """The items of a proper list."""
    items: list[Datum] = []
    while type(form) is Pair:
        items.append(form.first)
        form = form.rest
    if form is not EMPTY:
        raise Malformed("a dot has no place in this form", place=place)
    return items


def arguments_of(form: Pair, usage: str, *, least: int, most: int | None = None) -> list[Datum]:
    """What follows the head of a special form, counted."""
    arguments = items_of(form.rest, form.place)
    if len(arguments) < least or (most is not None and len(arguments) > most):
        raise Malformed(f"this form is written {usage}", place=form.place)
    return arguments


def build(place: Place | None, *items: Datum, tail: Datum = EMPTY) -> Pair:
    """A form that stands where another stood."""
    result = tail
    for item in reversed(items):
        result = Pair(item, result, place)
    assert isinstance(result, Pair)
    return result


def bindings_of(datum: Datum, usage: str, place: Place | None) -> list[tuple[Datum, Datum]]:
    """The `((name value) ...)` of a let."""
    pairs = []
    for binding in items_of(datum, place):
        parts = items_of(binding, place) if isinstance(binding, Pair) else []
        if len(parts) != 2:
            raise Malformed(f"this form is written {usage}", place=place)
        pairs.append((parts[0], parts[1]))
    return pairs
