"""Selector text to syntax tree, by precedence: one table says how tightly each operator binds.

From loose to tight: OR, AND, NOT, the comparisons (with LIKE, IN, BETWEEN, IS), addition, multiplication, signs. An
operator of two sides goes from left to right; comparisons do not chain, as in SQL.
"""

from __future__ import annotations

from typing import Final

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.selector._tokens import Token, tokens_of
from mtosi_jms.jms.selector.like import Pattern
from mtosi_jms.jms.selector.nodes import (
    MAX_DEPTH,
    Arithmetic,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    SignWord,
    condition,
    join,
    signed,
)

LOOSEST: Final = 1
NOT: Final = 3
COMPARISON: Final = 4
ADDITION: Final = 5
SIGN: Final = 7
BINDING: Final = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "NOT", "LIKE", "IN", "BETWEEN", "IS"), COMPARISON),
    "+": ADDITION,
    "-": ADDITION,
    "*": 6,
    "/": 6,
}
"""How tightly what follows an operand binds to it; NOT is the one of NOT LIKE."""

_NESTED: Final = 2 * MAX_DEPTH + 1
"""Each level of a tree that is allowed takes at most an operand and a pair of parentheses."""
_OPERATORS: Final = frozenset({"word", "operator"})


def parse_tree(text: str) -> Node:
    """The tree of a selector that is not blank.

    Raises:
        SelectorError: it is no selector of JMS 1.1, section 3.8.1.
    """
    return _Parser(tokens_of(text)).whole()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _binding(self) -> int:
        """How tightly the next token binds to the operand before it; 0 if it does not."""
        token = self._next
        return BINDING.get(str(token.value), 0) if token.kind in _OPERATORS else 0

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _is(self, value: str) -> bool:
        token = self._next
        return token.value == value and token.kind in _OPERATORS

    def _accept(self, value: str) -> bool:
        if not self._is(value):
            return False
        self._at += 1
        return True

    def _expect(self, value: str) -> None:
        if not self._accept(value):
            raise self._refused(f"{value} is missing before")

    def _refused(self, what: str) -> SelectorError:
        return SelectorError(f"{what} {self._next}", self._next.position)

    def whole(self) -> Node:
        tree = self._expression(LOOSEST)
        if self._next.kind != "end":
            raise self._refused("an operator is missing before")
        return condition(tree)

    def _expression(self, binding: int) -> Node:
        """An operand and what binds to it at least so tightly."""
        self._depth += 1
        if self._depth > _NESTED:
            raise SelectorError("expressions nested too deep", self._next.position)
        left = self._operand(binding)
        while True:
            token = self._next
            found = self._binding()
            if found < binding:
                break
            self._at += 1
            left = self._joined(left, token, found)
            if found == COMPARISON == self._binding():
                raise self._refused("comparisons do not chain, use parentheses: unexpected")
        self._depth -= 1
        return left

    def _operand(self, binding: int) -> Node:
        token = self._next
        if self._accept("("):
            inner = self._expression(LOOSEST)
            self._expect(")")
            return inner
        if token.kind == "word" and token.value in ("TRUE", "FALSE"):
            self._at += 1
            return Literal(token.value == "TRUE", token.position)
        if binding <= NOT and self._accept("NOT"):
            return Not(self._expression(NOT), token.position)
        if self._is("+") or self._is("-"):
            return self._signed()
        if token.kind == "name":
            self._at += 1
            return Identifier(str(token.value), token.position)
        if token.kind in ("string", "number"):
            if token.signed:
                raise SelectorError(f"{int(token.value)} is out of the range of a Java long", token.position)
            self._at += 1
            return Literal(token.value, token.position)
        raise self._refused("an operand is missing before")

    def _signed(self) -> Node:
        token = self._take()
        sign: SignWord = "-" if token.value == "-" else "+"
        number = self._next
        if number.kind == "number" and (sign == "-" or not number.signed):
            self._at += 1
            return signed(sign, Literal(number.value), token.position)
        return signed(sign, self._expression(SIGN), token.position)

    def _joined(self, left: Node, token: Token, binding: int) -> Node:
        """What an operand and the operator behind it begin."""
        value = str(token.value)
        if value in ("AND", "OR"):
            terms = [left, self._expression(binding + 1)]
            while self._accept(value):
                terms.append(self._expression(binding + 1))
            return join("AND" if value == "AND" else "OR", terms, token.position)
        if binding > COMPARISON:
            return Arithmetic(value, left, self._expression(binding + 1), token.position)  # type: ignore[arg-type]
        if value == "IS":
            negated = self._accept("NOT")
            self._expect("NULL")
            return IsNull(self._identifier(left, "IS NULL"), negated, token.position)
        if value in ("NOT", "LIKE", "IN", "BETWEEN"):
            return self._predicate(left, token)
        return Comparison(value, left, self._expression(binding + 1), token.position)  # type: ignore[arg-type]

    def _predicate(self, left: Node, token: Token) -> Node:
        negated = token.value == "NOT"
        word = self._take() if negated else token
        match word.value:
            case "LIKE":
                return self._like(left, negated, token.position)
            case "IN":
                return self._in(left, negated, token.position)
            case "BETWEEN":
                return self._between(left, negated, token.position)
        raise SelectorError("behind NOT stands LIKE, IN or BETWEEN here", word.position)

    def _identifier(self, node: Node, operator: str) -> Identifier:
        if not isinstance(node, Identifier):
            raise SelectorError(f"{operator} asks for a property, not for {node.kind.value}", node.position)
        return node

    def _text(self, what: str) -> Token:
        if self._next.kind != "string":
            raise self._refused(f"{what} is a text in single quotes, not")
        return self._take()

    def _like(self, left: Node, negated: bool, position: int) -> Node:
        identifier = self._identifier(left, "LIKE")
        pattern = self._text("the pattern of LIKE")
        if not self._accept("ESCAPE"):
            return Like(identifier, Pattern(str(pattern.value), None, pattern.position), negated, position)
        escape = self._text("the character of ESCAPE")
        parts = str(pattern.value), str(escape.value), pattern.position, escape.position
        return Like(identifier, Pattern(*parts), negated, position)

    def _in(self, left: Node, negated: bool, position: int) -> Node:
        identifier = self._identifier(left, "IN")
        self._expect("(")
        values = [str(self._text("each value of IN").value)]
        while self._accept(","):
            values.append(str(self._text("each value of IN").value))
        self._expect(")")
        return In(identifier, tuple(values), negated, position)

    def _between(self, left: Node, negated: bool, position: int) -> Node:
        low = self._expression(ADDITION)
        self._expect("AND")
        return Between(left, low, self._expression(ADDITION), negated, position)
