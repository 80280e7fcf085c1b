"""Numbers: integers of bounded length and finite decimals. A result that is neither is a fault, never infinity.

Where Python itself finds a number too large (OverflowError), the machine makes the same fault of it.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from operator import ge, gt, le, lt

from holdfast.guests.lisp.data import Datum, Primitive, kind_of
from holdfast.guests.lisp.errors import LispError

MAX_BITS = 4096
"""Of an integer, about 1,200 digits: no product of two takes a noticeable time."""
_BOUND = 1 << MAX_BITS

Number = int | float


def number(datum: Datum) -> Number:
    """A datum that has to be a number."""
    if type(datum) is int or type(datum) is float:
        return datum
    raise LispError("type-error", f"expected a number, this is {kind_of(datum)}")


def integer(datum: Datum) -> int:
    """A datum that has to be an integer."""
    if type(datum) is int:
        return datum
    raise LispError("type-error", f"expected an integer, this is {kind_of(datum)}")


def bounded(result: Number) -> Number:
    """A result, if it is a number we can hold."""
    if type(result) is int:
        if -_BOUND < result < _BOUND:
            return result
    elif math.isfinite(result):
        return result
    raise LispError("number-overflow", "the result is too large a number")


def _add(*numbers: Datum) -> Number:
    total: Number = 0
    for datum in numbers:
        if type(datum) is not int and type(datum) is not float:
            number(datum)
        total += datum  # type: ignore[operator]  # just checked, without a call
    if type(total) is int and -_BOUND < total < _BOUND:
        return total
    return bounded(total)


def _subtract(first: Datum, *others: Datum) -> Number:
    result = number(first)
    if not others:
        return -result
    for other in others:
        result = result - number(other)
    return bounded(result)


def _multiply(*numbers: Datum) -> Number:
    product: Number = 1
    for datum in numbers:
        product = bounded(product * number(datum))
    return product


def _divide(first: Datum, *others: Datum) -> Number:
    numbers = [number(first), *map(number, others)] if others else [1, number(first)]
    result = numbers[0]
    for divisor in numbers[1:]:
        if divisor == 0:
            raise LispError("division-by-zero", "a number was divided by zero")
        if type(result) is int and type(divisor) is int and result % divisor == 0:
            result //= divisor
        else:
            result = result / divisor
    return bounded(result)


def _quotient(one: Datum, other: Datum) -> Number:
    """Rounds towards zero."""
    dividend, divisor = _integers(one, other)
    result = abs(dividend) // abs(divisor)
    return result if (dividend < 0) == (divisor < 0) else -result


def _remainder(one: Datum, other: Datum) -> Number:
    """Has the sign of the dividend."""
    dividend, divisor = _integers(one, other)
    return abs(dividend) % abs(divisor) * (-1 if dividend < 0 else 1)


def _modulo(one: Datum, other: Datum) -> Number:
    """Has the sign of the divisor."""
    dividend, divisor = _integers(one, other)
    return dividend % divisor


def _integers(one: Datum, other: Datum) -> tuple[int, int]:
    dividend, divisor = integer(one), integer(other)
    if divisor == 0:
        raise LispError("division-by-zero", "a number was divided by zero")
    return dividend, divisor


def _power(base: Datum, exponent: Datum) -> Number:
    bottom, top = number(base), number(exponent)
    if type(bottom) is int and type(top) is int and top >= 0:
        # Known before it is reckoned: a power would otherwise be the shortest way to fill the memory.
        if bottom.bit_length() * top > 2 * MAX_BITS and abs(bottom) > 1:
            raise LispError("number-overflow", "the result is too large a number")
        return bounded(bottom**top)
    if bottom == 0 and top < 0:
        raise LispError("division-by-zero", "a number was divided by zero")
    if bottom < 0 and type(top) is float and not top.is_integer():
        raise LispError("type-error", "a negative number has no such power")
    result: Number = float(bottom) ** top
    return bounded(result)


def _root(datum: Datum) -> Number:
    value = number(datum)
    if value < 0:
        raise LispError("type-error", "a negative number has no square root")
    if type(value) is int and math.isqrt(value) ** 2 == value:
        return math.isqrt(value)
    return math.sqrt(value)


def _compare(name: str, holds: Callable[[Number, Number], bool]) -> Primitive:
    def compare(first: Datum, second: Datum, *others: Datum) -> bool:
        if type(first) is int and type(second) is int and not others:
            return holds(first, second)
        numbers = [number(first), number(second), *map(number, others)]
        return all(holds(a, b) for a, b in pairwise(numbers))

    return Primitive(name, compare, 2, None)


def _equals(one: Number, other: Number) -> bool:
    return one == other


def _absolute(datum: Datum) -> Number:
    return abs(number(datum))


def _least(first: Datum, *others: Datum) -> Number:
    return min(map(number, (first, *others)))


def _greatest(first: Datum, *others: Datum) -> Number:
    return max(map(number, (first, *others)))


def _floor(datum: Datum) -> Number:
    return math.floor(number(datum))


def _ceiling(datum: Datum) -> Number:
    return math.ceil(number(datum))


def _round(datum: Datum) -> Number:
    return round(number(datum))


def _truncate(datum: Datum) -> Number:
    return math.trunc(number(datum))


def _is_even(datum: Datum) -> bool:
    return integer(datum) % 2 == 0


def _is_odd(datum: Datum) -> bool:
    return integer(datum) % 2 == 1


def _is_zero(datum: Datum) -> bool:
    return number(datum) == 0


NUMBERS = (
    Primitive("+", _add, 0, None),
    Primitive("-", _subtract, 1, None),
    Primitive("*", _multiply, 0, None),
    Primitive("/", _divide, 1, None),
    Primitive("quotient", _quotient, 2, 2),
    Primitive("remainder", _remainder, 2, 2),
    Primitive("modulo", _modulo, 2, 2),
    Primitive("expt", _power, 2, 2),
    Primitive("sqrt", _root, 1, 1),
    Primitive("abs", _absolute, 1, 1),
    Primitive("min", _least, 1, None),
    Primitive("max", _greatest, 1, None),
    Primitive("floor", _floor, 1, 1),
    Primitive("ceiling", _ceiling, 1, 1),
    Primitive("round", _round, 1, 1),
    Primitive("truncate", _truncate, 1, 1),
    Primitive("even?", _is_even, 1, 1),
    Primitive("odd?", _is_odd, 1, 1),
    Primitive("zero?", _is_zero, 1, 1),
    _compare("=", _equals),
    _compare("<", lt),
    _compare(">", gt),
    _compare("<=", le),
    _compare(">=", ge),
)
