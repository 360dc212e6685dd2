"""Builds selectors in Python: with `P = PropertyNames()`, `P["region"] == "north"` is region = 'north'.

    (P["region"].in_("north", "east") & P["site"].startswith("MD=EMS1/")) | (P.JMSPriority > 6)

An expression is a syntax tree, so its text has the right quotes and parentheses for any values. Python's `and`, `or`
and `not` cannot be overloaded: use `&`, `|` and `~`, which bind more tightly than `==`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

from mtosi_jms.errors import ConfigError, SelectorError
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, LONG_MIN, Long
from mtosi_jms.jms.selector._selector import Selector, parse
from mtosi_jms.jms.selector._text import HEADERS, is_name, render
from mtosi_jms.jms.selector.nodes import (
    Arithmetic,
    ArithmeticSign,
    Between,
    Comparison,
    ComparisonSign,
    Identifier,
    In,
    IsNull,
    JunctionWord,
    Like,
    Literal,
    Node,
    Not,
    Pattern,
    condition,
    escaped,
    join,
    signed,
)
from mtosi_jms.masking import shown_half_made

_ESCAPE: Final = "!"
_NEAR: Final = 0.75
_NONE: Final[Mapping[str, str]] = MappingProxyType({})


class Expression:
    """A part of a selector, made by `P` and by operators on its properties. `str` gives its text.

    Operators raise ConfigError if JMS has no such comparison or operation, and for values that a property cannot have.
    """

    __slots__ = ("tree",)
    __hash__ = None  # type: ignore[assignment]  # == gives a condition

    def __init__(self, tree: Node) -> None:
        self.tree = tree

    def __str__(self) -> str:
        return render(self.tree)

    @shown_half_made
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {render(self.tree)}>"

    def __bool__(self) -> NoReturn:
        raise ConfigError(
            f"{self} has no truth before there is a message: join conditions by & and |, negate by ~, "
            "and put each comparison in parentheses"
        )

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return _compared("=", self, other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return _compared("<>", self, other)


class Condition(Expression):
    """An expression that is true, false or unknown: a comparison, or several joined."""

    __slots__ = ()

    def selector(self) -> Selector:
        """The condition as a selector. Raises SelectorError: the expression is not a boolean by itself."""
        return parse(render(condition(self.tree)))

    def __and__(self, other: Condition) -> Condition:
        return _joined("AND", self, other)

    def __or__(self, other: Condition) -> Condition:
        return _joined("OR", self, other)

    def __rand__(self, other: bool) -> Condition:
        return _joined("AND", _operand(other), self)

    def __ror__(self, other: bool) -> Condition:
        return _joined("OR", _operand(other), self)

    def __invert__(self) -> Condition:
        return Condition(_made(Not, self.tree))


def _comparing(sign: ComparisonSign) -> Callable[[Operand, Operand | float], Condition]:
    return lambda left, right: _compared(sign, left, right)


def _calculating(sign: ArithmeticSign, *, reflected: bool = False) -> Callable[[Operand, Operand | float], Operand]:
    def calculated(one: Operand, other: Operand | float) -> Operand:
        left, right = (other, one) if reflected else (one, other)
        return Operand(_made(Arithmetic, sign, _operand(left).tree, _operand(right).tree))

    return calculated


class Operand(Expression):
    """An expression with a value to compare or calculate with: a property, or arithmetic with one."""

    __slots__ = ()

    __lt__ = _comparing("<")
    __le__ = _comparing("<=")
    __gt__ = _comparing(">")
    __ge__ = _comparing(">=")
    __add__ = _calculating("+")
    __radd__ = _calculating("+", reflected=True)
    __sub__ = _calculating("-")
    __rsub__ = _calculating("-", reflected=True)
    __mul__ = _calculating("*")
    __rmul__ = _calculating("*", reflected=True)
    __truediv__ = _calculating("/")
    __rtruediv__ = _calculating("/", reflected=True)

    def between(self, low: Operand | float, high: Operand | float) -> Condition:
        """`BETWEEN low AND high`, both of them included."""
        return Condition(_made(Between, self.tree, _operand(low).tree, _operand(high).tree))

    def __neg__(self) -> Operand:
        return Operand(_made(signed, "-", self.tree))


class Property(Operand, Condition):
    """A property or header; a boolean one is a condition by itself."""

    __slots__ = ("_identifier",)

    def __init__(self, name: str) -> None:
        self._identifier = Identifier(name)
        super().__init__(self._identifier)

    def like(self, pattern: str, escape: str | None = None) -> Condition:
        """`LIKE pattern`: `%` stands for any text, `_` for one character; after the escape both are literal."""
        return Condition(Like(self._identifier, _made(Pattern, pattern, escape)))

    def startswith(self, text: str) -> Condition:
        """Whether the property is a text that starts with `text`, in which `%` and `_` stand for themselves."""
        special = any(one in text for one in "%_")
        pattern = escaped(text, _ESCAPE) if special else text
        return self.like(f"{pattern}%", _ESCAPE if special else None)

    def in_(self, *values: str | float) -> Condition:
        """Whether the property is one of the values, given one by one or as one collection.

        JMS has IN only for texts. For other values this makes comparisons joined by OR.
        """
        only = values[0] if len(values) == 1 else values
        chosen: tuple[Any, ...] = (only,) if isinstance(only, (str, int, float)) else tuple(only)
        if not chosen:
            raise ConfigError(f"{self} in nothing: IN needs a value")
        if all(isinstance(value, str) for value in chosen):
            return Condition(In(self._identifier, tuple(str.__str__(value) for value in chosen)))
        terms = [_compared("=", self, value) for value in chosen]
        return terms[0] if len(terms) == 1 else Condition(_made(join, "OR", [term.tree for term in terms]))

    def is_null(self) -> Condition:
        """Whether the message lacks the property."""
        return Condition(IsNull(self._identifier))

    def is_not_null(self) -> Condition:
        """Whether the message has the property."""
        return Condition(IsNull(self._identifier, negated=True))


class PropertyNames:
    """The properties and headers of messages, by name: `P.JMSPriority` is a header, `P["name"]` the property `name`.
    `known`: the names that attributes may have beside the six headers, each with its property. `source`: where the
    names come from, for the error of an unknown one."""

    __slots__ = ("_known", "_source")

    def __init__(self, known: Mapping[str, str] = _NONE, source: str = "JMS") -> None:
        self._known = {**known, **{name: name for name in (*known.values(), *HEADERS)}}
        self._source = source

    def __getattr__(self, name: str) -> Property:
        known = self._known.get(name)
        if known is None:
            near = difflib.get_close_matches(name, self._known, 1, _NEAR)
            hint = f": did you mean P.{near[0]}?" if near else ""
            raise AttributeError(f"{name} is not a name of {self._source}{hint} (another property: P[{name!r}])")
        return Property(known)

    def __getitem__(self, name: str) -> Property:
        """Return the property of any name, used as it is. Raises ConfigError: a selector cannot use this name."""
        if not is_name(name):
            raise ConfigError(f"{name!r}: not a name that a selector can have")
        return Property(name)

    def __dir__(self) -> list[str]:
        return sorted(self._known)

    def __repr__(self) -> str:
        return "P"


def _made(make: Callable[..., Any], *parts: Any) -> Any:
    """Return what `make` returns. Raise its SelectorError as a ConfigError, because the caller made the mistake."""
    try:
        return make(*parts)
    except SelectorError as error:
        raise ConfigError(error.message) from error


def _operand(value: object) -> Expression:
    """Return a Python value as a literal, and an expression as it is."""
    if isinstance(value, Expression):
        return value
    if isinstance(value, str):
        return Expression(Literal(str.__str__(value)))
    if isinstance(value, bool):
        return Expression(Literal(value))
    if isinstance(value, int) and LONG_MIN <= value <= LONG_MAX:
        wide = isinstance(value, Long) or not INT_MIN <= value <= INT_MAX
        return Expression(Literal(Long(value) if wide else int(value)))
    if isinstance(value, float) and math.isfinite(value):
        return Expression(Literal(float(value)))
    if value is None:
        raise ConfigError("nothing equals NULL: use is_null() or is_not_null()")
    raise ConfigError(f"a selector has no literal for the {type(value).__name__} {value!r}")


def _compared(sign: ComparisonSign, left: object, right: object) -> Condition:
    return Condition(_made(Comparison, sign, _operand(left).tree, _operand(right).tree))


def _joined(word: JunctionWord, left: object, right: object) -> Condition:
    return Condition(_made(join, word, [_operand(left).tree, _operand(right).tree]))


def composite(
    *conditions: str | Selector | Condition,
    timestamp: str = "",
    delivery_mode: str = "",
    priority: str = "",
    message_id: str = "",
    correlation_id: str = "",
) -> Selector:
    """Return one selector from several parts, each in parentheses, joined by AND (001-I13, 001-I14).

        composite("MTOSI_objectType = 'ME'", priority="> 4")    # (MTOSI_objectType = 'ME') AND (JMSPriority > 4)

    Each part is parsed as a condition by itself, so it cannot break out of its parentheses. Blank parts are left out. A
    single part gets no parentheses.

    Args:
        conditions: whole conditions.
        timestamp: operator and value for JMSTimestamp, in milliseconds, such as `> 1000`.
        delivery_mode: the same for JMSDeliveryMode, such as `= 'PERSISTENT'`.
        priority: the same for JMSPriority, such as `BETWEEN 5 AND 9`.
        message_id: the same for JMSMessageID; texts have no order.
        correlation_id: the same for JMSCorrelationID.

    Raises:
        SelectorError: a part is not a condition. JMS has no conditions on JMSRedelivered.
    """
    headers = {
        "JMSTimestamp": timestamp,
        "JMSDeliveryMode": delivery_mode,
        "JMSPriority": priority,
        "JMSMessageID": message_id,
        "JMSCorrelationID": correlation_id,
    }
    texts = [_text(one) for one in conditions]
    texts += [f"{name} {rest.strip()}" for name, rest in headers.items() if rest.strip()]
    parts = [parse(text).text.strip() for text in texts if text.strip()]
    return parse(parts[0] if len(parts) == 1 else " AND ".join(f"({part})" for part in parts))


def _text(condition: str | Selector | Condition) -> str:
    if isinstance(condition, Condition):
        condition = condition.selector()
    return condition.text if isinstance(condition, Selector) else condition
