"""A parsed selector, compiled to functions. Each takes a look-up of values by name and returns True, False or None:
unknown.

Values are those of properties: str, bool, int, Long, float, and None (NULL) for a missing one. A comparison of values
of different types is false; a comparison with NULL is unknown (JMS 1.1, 3.8.1.1 and 3.8.1.2).

Arithmetic follows Java. An int of 32 bits is a Java int, a `Long` or a larger int is a long, a float is a double. Two
ints give an int, an int and a long give a long; both overflow as in Java. With a double the result is a double. An
integer division by zero, an error in Java, gives NULL here, so the comparison is unknown.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, DeliveryMode, JmsMessage, Long
from mtosi_jms.jms.selector._text import HEADERS, parse_tree, render
from mtosi_jms.jms.selector.nodes import (
    EQUALITY,
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Junction,
    Kind,
    Like,
    Literal,
    Node,
    Not,
    Sign,
    children,
)
from mtosi_jms.masking import shown_half_made


class _NoValue:
    __slots__ = ()

    def __repr__(self) -> str:
        return "NO_VALUE"


NO_VALUE: Final = _NoValue()
"""The result of arithmetic with a text or a boolean: not NULL, and equal to no value."""


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def to_double(value: Any) -> float:
    """Return the number as a double; if it is out of range, infinity."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _comparison_of(sign: str, compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], bool]:
    """Return a comparison of values that are not None. It is false for values of types that do not compare."""
    alike = (str, bool) if sign in EQUALITY else ()

    def compared(left: Any, right: Any) -> bool:
        if is_number(left) and is_number(right):
            if isinstance(left, float) is not isinstance(right, float):
                return bool(compare(to_double(left), to_double(right)))
            return bool(compare(left, right))
        same = any(isinstance(left, kind) and isinstance(right, kind) for kind in alike)
        return same and bool(compare(left, right))

    return compared


COMPARISONS: Final = {
    sign: _comparison_of(sign, compare)
    for sign, compare in {
        "=": operator.eq,
        "<>": operator.ne,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }.items()
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
    """Return the operation `+`, `-`, `*` or `/`. It gives None if a value is None, NO_VALUE if one is not a number."""
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
    if value is None or not is_number(value):
        return None if value is None else NO_VALUE
    return -value if isinstance(value, float) else _whole(-value, _is_long(value))


def positive(value: Any) -> Any:
    return value if value is None or is_number(value) else NO_VALUE


Lookup: TypeAlias = Callable[[str], Any]
Truth: TypeAlias = bool | None
Condition: TypeAlias = Callable[[Lookup], Truth]
Value: TypeAlias = Callable[[Lookup], Any]

_WHOLE: Final = frozenset({int, Long})


def compile_condition(node: Node) -> Condition:
    """Return the function for a node that is a condition, or for an identifier in the place of one."""
    match node:
        case Junction(word, terms):
            return _junction(word, terms)
        case Not(operand):
            return _not(compile_condition(operand))
        case Comparison():
            return _comparison(node)
        case Between():
            return _between(node)
        case Like():
            return _like(node)
        case In(identifier, values):
            return _negated(_among(identifier.name, frozenset(values)), node.negated)
        case IsNull(identifier):
            return _is_null(identifier.name, node.negated)
        case Identifier(name):
            return _flag(name)
        case _:
            return compile_value(node)


def compile_value(node: Node) -> Value:
    match node:
        case Literal(value):
            return lambda _: value
        case Identifier(name):
            return lambda get: get(name)
        case Sign(sign, operand):
            apply, inner = (negative if sign == "-" else positive), compile_value(operand)
            return lambda get: apply(inner(get))
        case Arithmetic(sign, left, right):
            calculate, first, second = calculation(sign), compile_value(left), compile_value(right)
            return lambda get: calculate(first(get), second(get))
        case _:
            return compile_condition(node)


def _flag(name: str) -> Condition:
    """Return the condition of a property alone. It is false if the value is not a boolean, like `name = TRUE`."""

    def flag(get: Lookup) -> Truth:
        value = get(name)
        return value if value is True or value is None else False

    return flag


def _not(operand: Condition) -> Condition:
    def negation(get: Lookup) -> Truth:
        truth = operand(get)
        return None if truth is None else not truth

    return negation


def _negated(operand: Condition, negated: bool) -> Condition:
    return _not(operand) if negated else operand


def _junction(word: str, terms: tuple[Node, ...]) -> Condition:
    if word == "OR" and (one := _one_of(terms)) is not None:
        return one
    conditions = tuple(map(compile_condition, terms))
    decisive = word == "OR"

    def junction(get: Lookup) -> Truth:
        result: Truth = not decisive
        for one in conditions:
            truth = one(get)
            if truth is decisive:
                return decisive
            if truth is None:
                result = None
        return result

    return junction


def _one_of(terms: tuple[Node, ...]) -> Condition | None:
    """Return one look-up in a set, if all terms compare the same property with texts; else None."""
    names: set[str] = set()
    texts: list[str] = []
    for term in terms:
        match term:
            case Comparison("=", Identifier(name), Literal(str() as text)):
                names.add(name)
                texts.append(text)
            case In(identifier, values, negated=False):
                names.add(identifier.name)
                texts.extend(values)
            case _:
                return None
    return _among(names.pop(), frozenset(texts)) if len(names) == 1 else None


def _among(name: str, texts: frozenset[str]) -> Condition:
    def among(get: Lookup) -> Truth:
        value = get(name)
        if isinstance(value, str):
            return value in texts
        return None if value is None else False

    return among


def _comparison(node: Comparison) -> Condition:
    if isinstance(node.left, Identifier) and isinstance(node.right, Literal):
        return _with_literal(node.sign, node.left.name, node.right)
    compare, left, right = COMPARISONS[node.sign], compile_value(node.left), compile_value(node.right)

    def comparison(get: Lookup) -> Truth:
        first, second = left(get), right(get)
        if first is None or second is None:
            return None
        return compare(first, second)

    return comparison


def _with_literal(sign: str, name: str, literal: Literal) -> Condition:
    """Return the comparison of a property with a literal: the common case, with fewer type checks."""
    compare, wanted = COMPARISONS[sign], literal.value
    if literal.kind is Kind.STRING and sign == "=":
        compare = operator.eq

    def comparison(get: Lookup) -> Truth:
        value = get(name)
        return None if value is None else compare(value, wanted)

    return comparison


def _between(node: Between) -> Condition:
    """Return `>= low AND <= high`; negated, `< low OR > high`, which is also false if the value is not a number."""
    low = Comparison("<" if node.negated else ">=", node.operand, node.low)
    high = Comparison(">" if node.negated else "<=", node.operand, node.high)
    return _junction("OR" if node.negated else "AND", (low, high))


def _like(node: Like) -> Condition:
    name, matches = node.identifier.name, node.pattern.matcher()

    def like(get: Lookup) -> Truth:
        value = get(name)
        if isinstance(value, str):
            return matches(value)
        return None if value is None else False

    return _negated(like, node.negated)


def _is_null(name: str, negated: bool) -> Condition:
    if negated:
        return lambda get: get(name) is not None
    return lambda get: get(name) is None


_BLANKS: Final = " \t\f\r\n"


class Selector:
    """A condition on the headers and properties of a message, never on its body (P15).

    Two selectors are equal if they have the same canonical text, which `str` gives. It is empty for a selector that
    accepts everything. `identifiers`: the names of properties and headers in the selector."""

    __slots__ = ("_canonical", "_condition", "_headers", "identifiers", "text", "tree")

    def __init__(self, text: str, tree: Node | None) -> None:
        self.text = text
        self.tree = tree
        self.identifiers: frozenset[str] = frozenset(_identifiers(tree) if tree is not None else ())
        self._headers = {name: _HEADER[name] for name in self.identifiers & HEADERS}
        self._condition: Condition = (lambda _: True) if tree is None else compile_condition(tree)
        self._canonical = "" if tree is None else render(tree)

    def matches(self, properties: Mapping[str, object]) -> bool | None:
        """Evaluate the selector for properties. Headers are looked up among them by their names. `properties`: values
        are str, bool, int, float, or None for a missing property.

        Returns:
            True, False, or None for unknown. The selector matches only if the result is True.
        """
        return self._condition(properties.get)

    def accepts(self, message: JmsMessage) -> bool:
        """Whether the selector is True for the headers and properties of a message.

        JMSDeliveryMode is 'PERSISTENT' or 'NON_PERSISTENT'. A header that the message does not have yet is NULL.
        """
        lookup = message.properties.get
        if not self._headers:
            return self._condition(lookup) is True
        headers = self._headers

        def value(name: str) -> Any:
            header = headers.get(name)
            return lookup(name) if header is None else header(message)

        return self._condition(value) is True

    def __str__(self) -> str:
        return self._canonical

    @shown_half_made
    def __repr__(self) -> str:
        return f"Selector({self._canonical!r})"

    def __eq__(self, other: object) -> bool:
        return self._canonical == other._canonical if isinstance(other, Selector) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._canonical)

    def __reduce__(self) -> tuple[Any, ...]:
        return parse, (self.text,)


def parse(text: str) -> Selector:
    """Parse a selector of JMS 1.1, section 3.8.1. `text`: the condition. If it is empty or blank, the selector accepts
    everything. Raises SelectorError: the text is not a selector; `position` says where."""
    if not isinstance(text, str):
        raise SelectorError(f"a selector is text, not {type(text).__name__}")
    return Selector(text, parse_tree(text) if text.strip(_BLANKS) else None)


def _identifiers(node: Node) -> Iterator[str]:
    if isinstance(node, Identifier):
        yield node.name
    for child in children(node):
        yield from _identifiers(child)


_HEADER: Final[dict[str, Callable[[JmsMessage], Any]]] = {
    "JMSDeliveryMode": lambda message: DeliveryMode(message.delivery_mode).name,
    "JMSPriority": lambda message: message.priority,
    "JMSMessageID": lambda message: message.message_id,
    "JMSTimestamp": lambda message: None if message.timestamp_ms is None else Long(message.timestamp_ms),
    "JMSCorrelationID": lambda message: message.correlation_id,
    "JMSType": lambda message: message.jms_type,
}
