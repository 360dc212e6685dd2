"""Parses selector text to a syntax tree (P15): first into tokens, then by one table of operator precedence. Renders it.

From loose to tight: OR, AND, NOT, the comparisons (with LIKE, IN, BETWEEN, IS), addition, multiplication, signs. Binary
operators associate from left to right. Comparisons do not chain, as in SQL.

Numbers are those of Java: decimal, hexadecimal and octal integers in the range of a long, floating point numbers in the
range of a double. A letter must not follow a number directly, so that `7up` is not read as a number and a name.
"""

from __future__ import annotations

import math
import re
import struct
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from mtosi_jms.bounds import BOUNDS
from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.message import INT_MAX, INT_MIN, LONG_MAX, RESERVED_WORDS, Long
from mtosi_jms.jms.selector.nodes import (
    MAX_DEPTH,
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
    Pattern,
    Sign,
    SignWord,
    condition,
    join,
    signed,
)

HEADERS: Final = frozenset(
    {"JMSDeliveryMode", "JMSPriority", "JMSMessageID", "JMSTimestamp", "JMSCorrelationID", "JMSType"}
)
"""The six header fields that a selector may name."""

MAX_LENGTH: Final = BOUNDS.selector_length
"""Maximum length of a selector in characters. It is enough for what a person writes, and for a list of names."""

# Possessive, so that a literal without an end costs one pass. Only ASCII names match here, `_name_end` finds others.
_TOKEN: Final = re.compile(
    r"""
      (?P<blank>[ \t\f\r\n]+)
    | (?P<string>'[^']*+(?:''[^']*+)*+')
    | (?P<hexadecimal>0[xX][0-9a-fA-F]+[lL]?)
    | (?P<approximate>(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?|[0-9]+[eE][+-]?[0-9]+[fFdD]?)
    | (?P<exact>[0-9]+[lL]?)
    | (?P<name>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<operator><>|<=|>=|[-=<>+*/(),])
    """,
    re.VERBOSE,
)
_START: Final = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Sc", "Pc"})
_PART: Final = _START | {"Nd", "Mn", "Mc", "Cf"}
_HINTS: Final = {
    "!": "; unequal is <>",
    '"': "; text stands in single quotes",
    "'": "; the text that begins here has no end",
    ".": "; a name has no dots",
}
_DIGITS_OF_LONG: Final = 22  # of an octal long; a number with more digits is too large in any case


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: `word` (a reserved word), `name`, `string`, `number`, `operator` or `end`.
        value: a word in capitals, a name or operator as written, the value of a literal.
        signed: whether this is the number 2**63, which is valid only after a minus.
    """

    kind: str
    value: str | int | float
    position: int
    signed: bool = False

    def __str__(self) -> str:
        """Return the name of the token for errors: an operator or word itself, any other token by its kind."""
        if self.kind == "end":
            return "the end"
        return str(self.value) if self.kind in ("word", "operator") else f"a {self.kind}"


def tokens_of(text: str) -> list[Token]:
    """Return the tokens of a selector; the last one has the kind `end`. Raises SelectorError: the text is too long,
    contains something that is not a token, or a number out of range."""
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"a selector of {len(text):,} characters; {MAX_LENGTH:,} are allowed", MAX_LENGTH)
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        kind = match.lastgroup if match else "name"
        end = match.end() if match else position
        if kind == "name":
            end = _name_end(text, position, end)
            if end == position:
                shown = text[position]
                raise SelectorError(f"unexpected character {shown!r}{_HINTS.get(shown, '')}", position)
            found.append(_name(text[position:end], position))
        elif kind is not None and kind in _NUMBERS:
            if end < len(text) and _begins(text[end]):
                raise SelectorError("a letter directly behind a number", end)
            found.append(_NUMBERS[kind](text[position:end], position))
        elif kind == "string":
            found.append(Token("string", text[position + 1 : end - 1].replace("''", "'"), position))
        elif kind == "operator":
            found.append(Token("operator", text[position:end], position))
        position = end
    found.append(Token("end", "", len(text)))
    return found


def is_name(text: str) -> bool:
    """Whether a selector can use a name: a Java identifier, not a reserved word, and not reserved by JMS."""
    if not text or _name_end(text, 0, 0) != len(text) or text.upper() in RESERVED_WORDS:
        return False
    return not _is_closed(text)


def _is_closed(name: str) -> bool:
    return name.startswith("JMS") and not name.startswith(("JMSX", "JMS_")) and name not in HEADERS


def _name_end(text: str, start: int, end: int) -> int:
    """Return the end of the Java identifier that begins at `start` and reaches at least to `end`."""
    while end < len(text) and (_continues(text[end]) if end > start else _begins(text[end])):
        end += 1
    return end


def _begins(character: str) -> bool:
    return unicodedata.category(character) in _START


def _continues(character: str) -> bool:
    if unicodedata.category(character) in _PART:
        return True
    # The control characters that Java ignores in identifiers.
    return character <= "\x08" or "\x0e" <= character <= "\x1b" or "\x7f" <= character <= "\x9f"


def _name(name: str, position: int) -> Token:
    word = name.upper()
    if word in RESERVED_WORDS:
        return Token("word", word, position)
    if _is_closed(name):
        raise SelectorError(f"{name}: of the JMS headers a selector can name {', '.join(sorted(HEADERS))}", position)
    return Token("name", name, position)


def _exact(text: str, position: int) -> Token:
    """Return the token of a decimal number, or of an octal one, which has a leading zero."""
    digits = text.rstrip("lL")
    base = 8 if len(digits) > 1 and digits[0] == "0" else 10
    if base == 8 and not set(digits) <= set("01234567"):
        raise SelectorError(
            f"{_shown(text)} begins with 0, so that it is an octal number, and has other digits", position
        )
    return _whole(digits, base, text, position)


def _hexadecimal(text: str, position: int) -> Token:
    return _whole(text[2:].rstrip("lL"), 16, text, position)


def _whole(digits: str, base: int, text: str, position: int) -> Token:
    digits = digits.lstrip("0") or "0"
    value = int(digits, base) if len(digits) <= _DIGITS_OF_LONG else LONG_MAX + 2
    if value > LONG_MAX + 1 or (value == LONG_MAX + 1 and base != 10):
        raise SelectorError(f"{_shown(text)} is out of the range of a Java long", position)
    wide = value > INT_MAX or text[-1] in "lL"
    return Token("number", Long(value) if wide else value, position, signed=value > LONG_MAX)


def _approximate(text: str, position: int) -> Token:
    """Return the token of a floating point number. With the suffix `f` its value is rounded to a Java float."""
    try:
        value = float(text.rstrip("fFdD"))
        if text[-1] in "fF":
            value = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:  # packing a double that no float holds
        value = math.inf
    if math.isinf(value):
        raise SelectorError(f"{_shown(text)} is out of the range of a Java floating point number", position)
    return Token("number", value, position)


def _shown(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}..."


_NUMBERS: Final[dict[str, Callable[[str, int], Token]]] = {
    "hexadecimal": _hexadecimal,
    "approximate": _approximate,
    "exact": _exact,
}


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
"""The precedence of each operator that may follow an operand; NOT is that of NOT LIKE."""

_NESTED: Final = 2 * MAX_DEPTH + 1
"""Maximum recursion: each allowed level of a tree takes at most an operand and a pair of parentheses."""
_OPERATORS: Final = frozenset({"word", "operator"})


def parse_tree(text: str) -> Node:
    """Return the tree of a selector that is not blank. Raises SelectorError: the text is not a selector of JMS 1.1,
    section 3.8.1."""
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
        """Return the precedence of the next token as an operator; 0 if it is not one."""
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
        """Parse an operand and the operators after it that bind at least as tightly as `binding`."""
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
            return Literal(token.value == "TRUE", position=token.position)
        if binding <= NOT and self._accept("NOT"):
            return Not(self._expression(NOT), position=token.position)
        if self._is("+") or self._is("-"):
            return self._signed()
        if token.kind == "name":
            self._at += 1
            return Identifier(str(token.value), position=token.position)
        if token.kind in ("string", "number"):
            if token.signed:
                raise SelectorError(f"{int(token.value)} is out of the range of a Java long", token.position)
            self._at += 1
            return Literal(token.value, position=token.position)
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
        """Return the node of an operand and the operator after it, and parse the rest of that node."""
        value = str(token.value)
        if value in ("AND", "OR"):
            terms = [left, self._expression(binding + 1)]
            while self._accept(value):
                terms.append(self._expression(binding + 1))
            return join("AND" if value == "AND" else "OR", terms, token.position)
        if binding > COMPARISON:
            return Arithmetic(value, left, self._expression(binding + 1), position=token.position)  # type: ignore[arg-type]
        if value == "IS":
            negated = self._accept("NOT")
            self._expect("NULL")
            return IsNull(self._identifier(left, "IS NULL"), negated, position=token.position)
        if value in ("NOT", "LIKE", "IN", "BETWEEN"):
            return self._predicate(left, token)
        return Comparison(value, left, self._expression(binding + 1), position=token.position)  # type: ignore[arg-type]

    def _predicate(self, left: Node, token: Token) -> Node:
        """Return the node of LIKE, IN or BETWEEN, which NOT may precede."""
        negated = token.value == "NOT"
        word = self._take() if negated else token
        match word.value:
            case "LIKE":
                return Like(self._identifier(left, "LIKE"), self._pattern(), negated, position=token.position)
            case "IN":
                identifier = self._identifier(left, "IN")
                self._expect("(")
                values = [str(self._text("each value of IN").value)]
                while self._accept(","):
                    values.append(str(self._text("each value of IN").value))
                self._expect(")")
                return In(identifier, tuple(values), negated, position=token.position)
            case "BETWEEN":
                low = self._expression(ADDITION)
                self._expect("AND")
                return Between(left, low, self._expression(ADDITION), negated, position=token.position)
        raise SelectorError("behind NOT stands LIKE, IN or BETWEEN here", word.position)

    def _identifier(self, node: Node, operator: str) -> Identifier:
        if not isinstance(node, Identifier):
            raise SelectorError(f"{operator} asks for a property, not for {node.kind.value}", node.position)
        return node

    def _text(self, what: str) -> Token:
        if self._next.kind != "string":
            raise self._refused(f"{what} is a text in single quotes, not")
        return self._take()

    def _pattern(self) -> Pattern:
        pattern = self._text("the pattern of LIKE")
        if not self._accept("ESCAPE"):
            return Pattern(str(pattern.value), position=pattern.position)
        escape = self._text("the character of ESCAPE")
        return Pattern(str(pattern.value), str(escape.value), pattern.position, escape.position)


ATOM: Final = SIGN + 1


def render(node: Node) -> str:
    """Return the text of a tree, with only the necessary parentheses. Parsing and rendering it gives the same text.

    Providers differ from the specification: ActiveMQ reads NOT a = 1 as (NOT a) = 1, and takes two minus signs in a row
    as the start of a comment."""
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
