"""Numbers: integers of bounded length and finite floats. Any other result is an error, never infinity.

The machine turns Python's OverflowError into the same error.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from operator import ge, gt, le, lt

from holdfast.guests.lisp.data import Datum, Primitive, kind_of
from holdfast.guests.lisp.errors import LispError

MAX_BITS = 4096
"""Bits of an integer, about 1,200 digits; multiplying two takes no noticeable time."""
_BOUND = 1 << MAX_BITS

Number = int | float


def number(datum: Datum) -> Number:
    """The datum, if it is a number. Raises a LispError otherwise."""
    if type(datum) is int or type(datum) is float:
        return datum
    raise LispError("type-error", f"expected a number, not {kind_of(datum)}")


def integer(datum: Datum) -> int:
    """The datum, if it is an integer. Raises a LispError otherwise."""
    if type(datum) is int:
        return datum
    raise LispError("type-error", f"expected an integer, not {kind_of(datum)}")


def bounded(result: Number) -> Number:
    """The result, if it is within the bounds. Raises a LispError otherwise."""
    if type(result) is int:
        if -_BOUND < result < _BOUND:
            return result
    elif math.isfinite(result):
        return result
    raise LispError("number-overflow", "the result is too large")


def _add(*numbers: Datum) -> Number:
    total: Number = 0
    for datum in numbers:
        if type(datum) is not int and type(datum) is not float:
            number(datum)
        total += datum  # type: ignore[operator]  # checked above; a function call would cost more
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
            raise LispError("division-by-zero", "division by zero")
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
        raise LispError("division-by-zero", "division by zero")
    return dividend, divisor


def _power(base: Datum, exponent: Datum) -> Number:
    base_number, power = number(base), number(exponent)
    if type(base_number) is int and type(power) is int and power >= 0:
        # Checked in advance, because a power is the fastest way to fill the memory.
        if base_number.bit_length() * power > 2 * MAX_BITS and abs(base_number) > 1:
            raise LispError("number-overflow", "the result is too large")
        return bounded(base_number**power)
    if base_number == 0 and power < 0:
        raise LispError("division-by-zero", "division by zero")
    if base_number < 0 and type(power) is float and not power.is_integer():
        raise LispError("type-error", "a negative number has no fractional power")
    result: Number = float(base_number) ** power
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


def _minimum(first: Datum, *others: Datum) -> Number:
    return min(map(number, (first, *others)))


def _maximum(first: Datum, *others: Datum) -> Number:
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
    Primitive("min", _minimum, 1, None),
    Primitive("max", _maximum, 1, None),
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
