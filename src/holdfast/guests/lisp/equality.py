"""When two data are equal: by content, numbers by value, procedures by identity. Depth and sharing do not matter."""

from holdfast.guests.lisp.data import Datum, LispOutcome, Pair
from holdfast.guests.lisp.faults import Fault

MAX_COMPARISONS = 1_500_000
"""At once: comparing is not interruptible."""
_CHARACTERS_PER_COMPARISON = 1024


def are_same(one: Datum, other: Datum) -> bool:
    """Whether two data are the same atom or the very same thing; text is compared, and no list or table looked into."""
    if one is other:
        return True
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    if isinstance(one, (Pair, dict, LispOutcome)):
        return False
    return type(one) is type(other) and one == other


def are_equal(one: Datum, other: Datum, *, most: int = MAX_COMPARISONS) -> tuple[bool, int]:
    """Whether two data have the same content, and how many comparisons it took. A fault where it takes more than `most`."""
    waiting: list[tuple[Datum, Datum]] = [(one, other)]
    compared: set[tuple[int, int]] = set()
    work = 0
    while waiting:
        left, right = waiting.pop()
        work += 1
        if type(left) is str and type(right) is str:
            work += min(len(left), len(right)) // _CHARACTERS_PER_COMPARISON
        if work > most:
            raise Fault("too-large", f"this takes more than {MAX_COMPARISONS} comparisons at once")
        if are_same(left, right):
            continue
        if type(left) is not type(right) or not isinstance(left, (Pair, dict, LispOutcome)):
            return False, work
        pair = (id(left), id(right))
        if pair in compared:
            continue
        compared.add(pair)
        if isinstance(left, Pair) and isinstance(right, Pair):
            waiting.append((left.rest, right.rest))
            waiting.append((left.first, right.first))
        elif isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False, work
            work += len(left)
            waiting.extend((left[key], right[key]) for key in left)
        elif isinstance(left, LispOutcome) and isinstance(right, LispOutcome):
            if left.tag != right.tag:
                return False, work
            waiting.append((left.fields, right.fields))
    return True, work
