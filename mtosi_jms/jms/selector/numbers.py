"""Arithmetic and comparison of values as Java and JMS have them.

An int in 32 bits is a Java int, a `Long` or a larger one a long, a float a double. Two ints give an int, an int and a
long a long, both wrapped around at their width; with a double all is double (Java's numeric promotion). A division of
whole numbers by zero has no value in Java: it is NULL here, and so unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final

from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Long


class _NoValue:
    """The type of NO_VALUE."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()
"""What arithmetic with a text or a boolean gives: not NULL, and like no other value."""


def is_number(value: object) -> bool:
    """Whether the value is one for JMS: a bool is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def to_double(value: Any) -> float:
    """The number as a double; one beyond its range is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def equal(left: Any, right: Any) -> bool:
    """Whether two values, neither of them None, are alike and the same."""
    if is_number(left) and is_number(right):
        if isinstance(left, float) is not isinstance(right, float):
            return to_double(left) == to_double(right)
        return bool(left == right)
    return _like(left, right) and bool(left == right)


def unequal(left: Any, right: Any) -> bool:
    """Whether two values, neither of them None, are alike and not the same."""
    alike = (is_number(left) and is_number(right)) or _like(left, right)
    return alike and not equal(left, right)


def _like(left: Any, right: Any) -> bool:
    for kind in (str, bool):
        if isinstance(left, kind):
            return isinstance(right, kind)
    return False


def ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """An order of values, neither of them None: false unless both are numbers."""

    def ordered(left: Any, right: Any) -> bool:
        if not (is_number(left) and is_number(right)):
            return False
        if isinstance(left, float) is not isinstance(right, float):
            return compare(to_double(left), to_double(right))
        return compare(left, right)

    return ordered


COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": equal,
    "<>": unequal,
    "<": ordering(operator.lt),
    "<=": ordering(operator.le),
    ">": ordering(operator.gt),
    ">=": ordering(operator.ge),
}


def _wrapped(value: int, low: int, high: int) -> int:
    return (value - low) % (high - low + 1) + low


def _whole(value: int, wide: bool) -> int:
    return Long(_wrapped(value, LONG_MIN, LONG_MAX)) if wide else _wrapped(value, INT_MIN, INT_MAX)


def _is_long(value: int) -> bool:
    return isinstance(value, Long) or not INT_MIN <= value <= INT_MAX


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _divide_whole(left: int, right: int) -> int:
    """Towards zero, as Java does."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_DOUBLES: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide_doubles,
}
_WHOLES: Final[dict[str, Callable[[int, int], int]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide_whole,
}


def calculation(sign: str) -> Callable[[Any, Any], Any]:
    """The operation `+`, `-`, `*` or `/` on values; None in, None out, and NO_VALUE for what is no number."""
    doubles, wholes = _DOUBLES[sign], _WHOLES[sign]

    def calculate(left: Any, right: Any) -> Any:
        if left is None or right is None:
            return None
        if not (is_number(left) and is_number(right)):
            return NO_VALUE
        if isinstance(left, float) or isinstance(right, float):
            return doubles(to_double(left), to_double(right))
        if sign == "/" and right == 0:
            return None
        return _whole(wholes(left, right), _is_long(left) or _is_long(right))

    return calculate


def negative(value: Any) -> Any:
    """The value with the other sign."""
    if value is None or not is_number(value):
        return None if value is None else NO_VALUE
    return -value if isinstance(value, float) else _whole(-value, _is_long(value))


def positive(value: Any) -> Any:
    """The value, if it is a number."""
    return value if value is None or is_number(value) else NO_VALUE
