"""Syntax tree to functions: each gets a look-up of values by name, and gives True, False or None for unknown.

The values are those of properties: str, bool, int, Long, float, and None for one that is not there. A value of another
type is like no other value. Comparisons of unlike values are false, of NULL unknown (JMS 1.1, 3.8.1.1 and 3.8.1.2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from mtosi_jms.jms.message import Long
from mtosi_jms.jms.selector.nodes import (
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
)
from mtosi_jms.jms.selector.numbers import COMPARISONS, calculation, negative, positive

Lookup: TypeAlias = Callable[[str], Any]
Truth: TypeAlias = bool | None
Condition: TypeAlias = Callable[[Lookup], Truth]
Value: TypeAlias = Callable[[Lookup], Any]

_WHOLE: Final = frozenset({int, Long})


def compile_condition(node: Node) -> Condition:
    """The function of a node that is a condition, or of an identifier that stands for one."""
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
    """The function of a node that is an operand."""
    match node:
        case Literal(value):
            return lambda _: value
        case Identifier(name):
            return lambda get: get(name)
        case Sign(sign, operand):
            return _sign(sign, compile_value(operand))
        case Arithmetic(sign, left, right):
            return _calculated(sign, compile_value(left), compile_value(right))
        case _:
            return compile_condition(node)


def _sign(sign: str, operand: Value) -> Value:
    apply = negative if sign == "-" else positive
    return lambda get: apply(operand(get))


def _calculated(sign: str, left: Value, right: Value) -> Value:
    calculate = calculation(sign)
    return lambda get: calculate(left(get), right(get))


def _flag(name: str) -> Condition:
    """A property as a condition: what is no boolean is not true, as in `name = TRUE`."""

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
    """One look-up in place of many, where all terms ask whether the same property is some text."""
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
    """The common case, with one test of type instead of many."""
    compare, wanted = COMPARISONS[sign], literal.value
    if literal.kind is Kind.STRING:
        return _text_equal(name, str(wanted)) if sign == "=" else _text_unequal(name, str(wanted))

    def comparison(get: Lookup) -> Truth:
        value = get(name)
        return None if value is None else compare(value, wanted)

    return comparison


def _text_equal(name: str, text: str) -> Condition:
    def equal(get: Lookup) -> Truth:
        value = get(name)
        return None if value is None else value == text

    return equal


def _text_unequal(name: str, text: str) -> Condition:
    def unequal(get: Lookup) -> Truth:
        value = get(name)
        return None if value is None else isinstance(value, str) and value != text

    return unequal


def _between(node: Between) -> Condition:
    """`>= low AND <= high`; negated `< low OR > high`, which is false too for what is no number."""
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
