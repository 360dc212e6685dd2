"""Renders a syntax tree as selector text: words in capitals, single spaces, and only the necessary parentheses.

Some parentheses are necessary because providers differ from the specification: ActiveMQ reads NOT a = 1 as (NOT a) = 1,
and takes two minus signs in a row as the start of a comment.
"""

from __future__ import annotations

from typing import Final

from mtosi_jms.jms.message import INT_MAX, INT_MIN, Long
from mtosi_jms.jms.selector._parser import ADDITION, BINDING, COMPARISON, LOOSEST, NOT, SIGN
from mtosi_jms.jms.selector.nodes import (
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Junction,
    Like,
    Literal,
    Node,
    Not,
    Sign,
)

ATOM: Final = SIGN + 1


def render(node: Node) -> str:
    """Return the text of a tree. Parsing and rendering it again gives the same text."""
    return _text(node, LOOSEST)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _text(node: Node, binding: int) -> str:
    """Return the text of a node, in parentheses if it binds more loosely than its place requires."""
    text = _bare(node)
    return f"({text})" if _binding(node) < binding else text


def _binding(node: Node) -> int:
    if isinstance(node, Junction):
        return BINDING[node.word]
    if isinstance(node, Not):
        return NOT
    if isinstance(node, Arithmetic):
        return BINDING[node.sign]
    if isinstance(node, (Identifier, Literal)):
        return ATOM
    return SIGN if isinstance(node, Sign) else COMPARISON


def _bare(node: Node) -> str:
    match node:
        case Identifier(name):
            return name
        case Literal(value):
            return _literal(value)
        case Junction(word, terms):
            return f" {word} ".join(_text(term, BINDING[word] + 1) for term in terms)
        case Not(operand):
            return f"NOT {_text(operand, NOT if isinstance(operand, Not) else SIGN)}"
        case Sign(sign, operand):
            inner = _text(operand, ATOM)
            return f"{sign}({inner})" if inner[0] in "+-" else f"{sign}{inner}"
        case Arithmetic(sign, left, right):
            return f"{_text(left, BINDING[sign])} {sign} {_text(right, BINDING[sign] + 1)}"
        case Comparison(sign, left, right):
            return f"{_text(left, ADDITION)} {sign} {_text(right, ADDITION)}"
        case _:
            return _predicate(node)


def _predicate(node: Between | Like | In | IsNull) -> str:
    no = "NOT " if node.negated else ""
    match node:
        case Between(operand, low, high):
            return f"{_text(operand, ADDITION)} {no}BETWEEN {_text(low, ADDITION)} AND {_text(high, ADDITION)}"
        case Like(identifier, pattern):
            escape = "" if pattern.escape is None else f" ESCAPE {quoted(pattern.escape)}"
            return f"{identifier.name} {no}LIKE {quoted(pattern.text)}{escape}"
        case In(identifier, values):
            return f"{identifier.name} {no}IN ({', '.join(map(quoted, values))})"
        case IsNull(identifier):
            return f"{identifier.name} IS {no}NULL"


def _literal(value: str | float) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        narrow = INT_MIN <= value <= INT_MAX
        return f"{int(value)}L" if narrow and isinstance(value, Long) else str(int(value))
    return repr(value).upper().replace("E+", "E")
