"""Message selectors: the conditions of JMS 1.1, section 3.8.1, on headers and properties (P15, R10)."""

from __future__ import annotations

from mtosi_jms.jms.selector._selector import Selector, parse
from mtosi_jms.jms.selector.builder import P
from mtosi_jms.jms.selector.lint import Finding, lint

__all__ = ["Finding", "P", "Selector", "lint", "parse"]
