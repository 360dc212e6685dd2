"""What subscribe requests carry: a selector as a query expression in SQL92, the language of JMS selectors."""

from __future__ import annotations

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.ids import random_id
from mtosi_jms.jms.selector import Condition, Selector, parse
from mtosi_jms.stubs.fmw.gen import QueryDialectEnumType, QueryExpressionType
from mtosi_jms.stubs.fmw.msg import InvalidFilterDefinitionFault


def expression_of(selector: str | Selector | Condition) -> QueryExpressionType:
    """The expression that a subscribe request carries for a selector.

    Raises:
        SelectorError: the text is no selector.
    """
    return QueryExpressionType(dialect=QueryDialectEnumType.ANSI_92.value, content=[parse(str(selector)).text])


def selector_of(expression: QueryExpressionType | None) -> Selector:
    """The selector that a subscribe request carries; without one, a selector that accepts everything.

    Raises:
        InvalidFilterDefinitionFault: another language than SQL92, or no selector.
    """
    if expression is None:
        return parse("")
    if expression.dialect != QueryDialectEnumType.ANSI_92.value:
        raise InvalidFilterDefinitionFault(f"selectors are in {QueryDialectEnumType.ANSI_92.value}")
    if not all(isinstance(part, str) for part in expression.content):
        raise InvalidFilterDefinitionFault("a selector is text, not XML")
    try:
        return parse("".join(map(str, expression.content)))
    except SelectorError as error:
        raise InvalidFilterDefinitionFault(str(error)) from error


def new_identifier() -> str:
    """A subscription id that nobody else has."""
    return random_id()
