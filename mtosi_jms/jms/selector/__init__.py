"""Message selectors: the conditions of JMS 1.1, section 3.8.1, on headers and properties (P15, R10)."""

from __future__ import annotations

from mtosi_jms.jms.selector._builder import Condition, PropertyNames, composite
from mtosi_jms.jms.selector._selector import Selector, parse
from mtosi_jms.jms.selector._text import HEADERS

__all__ = ["HEADERS", "Condition", "PropertyNames", "Selector", "composite", "parse"]
