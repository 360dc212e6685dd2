"""The syntax tree of a selector. A node that exists is valid: each checks the types of its operands when it is made.

What is checked is what JMS lets be known without a message: literals and results of operators have a type, identifiers
have none. Texts and booleans are compared by `=` and `<>` alone; arithmetic takes numbers; conditions are booleans.
Patterns of LIKE are matched without going back: time is bounded by length of text times length of pattern.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

from mtosi_jms.errors import SelectorError

__all__ = [
    "EQUALITY",
    "MAX_DEPTH",
    "Arithmetic",
    "ArithmeticSign",
    "Between",
    "Comparison",
    "ComparisonSign",
    "Identifier",
    "In",
    "IsNull",
    "Junction",
    "JunctionWord",
    "Kind",
    "Like",
    "Literal",
    "Node",
    "Not",
    "Pattern",
    "Segment",
    "Sign",
    "SignWord",
    "condition",
    "escaped",
    "join",
    "signed",
]

Segment: TypeAlias = tuple[str | None, ...]
"""What stands between two `%`: characters, and None where any one will do."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: `%` stands for any text, also none, `_` for one character, both for themselves behind the escape.

    Attributes:
        text: the pattern as written.
        escape: one character; None if there is none.
        position: of the literal in the selector, for errors.
        escape_position: the same of the literal behind ESCAPE.

    Raises:
        SelectorError: an escape that is not one character, or that stands before something else than `%`, `_` or
            itself, which SQL does not allow.
    """

    text: str
    escape: str | None = None
    position: int = 0
    escape_position: int = 0

    def __post_init__(self) -> None:
        if self.escape is not None and len(self.escape) != 1:
            raise SelectorError("the text behind ESCAPE is one character", self.escape_position)
        self.segments()

    def segments(self) -> tuple[Segment, ...]:
        """The pattern cut at each `%`: one segment more than there are of them."""
        done: list[Segment] = []
        segment: list[str | None] = []
        characters = iter(self.text)
        for character in characters:
            if character == self.escape:
                escaped = next(characters, "")
                if escaped not in {"%", "_", self.escape}:
                    raise SelectorError("the escape character stands before %, _ or itself only", self.position)
                segment.append(escaped)
            elif character == "%":
                done.append(tuple(segment))
                segment = []
            else:
                segment.append(None if character == "_" else character)
        return (*done, tuple(segment))

    def matcher(self) -> Callable[[str], bool]:
        """A function that tells whether a text matches."""
        first, *rest = self.segments()
        if not rest:
            return _whole(first)
        *middle, last = rest
        if not any(middle) and None not in (*first, *last):
            return _ends(_text(first), _text(last))
        return _gaps(first, [part for part in middle if part], last)


def escaped(text: str, escape: str) -> str:
    """The text as a pattern that only it matches."""
    for special in (escape, "%", "_"):
        text = text.replace(special, escape + special)
    return text


def _text(segment: Segment) -> str:
    return "".join(character or "" for character in segment)


def _regex(segment: Segment) -> re.Pattern[str]:
    """All texts that match have the same length, so that there is nothing to try twice."""
    return re.compile("".join("." if one is None else re.escape(one) for one in segment), re.DOTALL)


def _whole(segment: Segment) -> Callable[[str], bool]:
    if None not in segment:
        return _text(segment).__eq__
    full = _regex(segment).fullmatch
    return lambda text: full(text) is not None


def _ends(head: str, tail: str) -> Callable[[str], bool]:
    if not tail:
        return lambda text: text.startswith(head)
    least = len(head) + len(tail)
    return lambda text: len(text) >= least and text.startswith(head) and text.endswith(tail)


def _gaps(first: Segment, middle: list[Segment], last: Segment) -> Callable[[str], bool]:
    """Each segment in the middle is taken where it first fits: no later place would leave more for the others."""
    head, tail, searches = _regex(first).match, _regex(last).fullmatch, [_regex(part).search for part in middle]
    width, least = len(last), len(first) + len(last)

    def matches(text: str) -> bool:
        if len(text) < least or head(text) is None:
            return False
        stop = len(text) - width
        if tail(text, stop) is None:
            return False
        start = len(first)
        for search in searches:
            found = search(text, start, stop)
            if found is None:
                return False
            start = found.end()
        return True

    return matches


MAX_DEPTH: Final = 64
"""How deep conditions, arithmetic and parentheses may stand in each other."""


class Kind(enum.Enum):
    """What a node gives, as far as its text tells."""

    STRING = "a text"
    NUMBER = "a number"
    BOOLEAN = "a condition"
    ANY = "a property"


ComparisonSign: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">="]
SignWord: TypeAlias = OneOf["+", "-"]
ArithmeticSign: TypeAlias = OneOf["+", "-", "*", "/"]
JunctionWord: TypeAlias = OneOf["AND", "OR"]
EQUALITY: Final = frozenset({"=", "<>"})


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a number or a boolean."""

    value: str | int | float
    position: int = 0
    depth: int = field(default=0, init=False)

    @property
    def kind(self) -> Kind:
        """The kind of the value."""
        if isinstance(self.value, str):
            return Kind.STRING
        return Kind.BOOLEAN if isinstance(self.value, bool) else Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Identifier:
    """A property or one of six headers."""

    name: str
    position: int = 0
    depth: int = field(default=0, init=False)

    @property
    def kind(self) -> Kind:
        """Known only when there is a message."""
        return Kind.ANY


@dataclass(frozen=True, slots=True)
class Sign:
    """`-operand` or `+operand`."""

    sign: SignWord
    operand: Node
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        _want(Kind.NUMBER, self.operand, f"behind {self.sign}")
        _set_depth(self, self.operand)

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """`left sign right`, of numbers."""

    sign: ArithmeticSign
    left: Node
    right: Node
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for operand in (self.left, self.right):
            _want(Kind.NUMBER, operand, f"beside {self.sign}")
        _set_depth(self, self.left, self.right)

    @property
    def kind(self) -> Kind:
        """A number."""
        return Kind.NUMBER


class _Condition:
    """What all nodes have in common that are true, false or unknown."""

    __slots__ = ()

    @property
    def kind(self) -> Kind:
        """A condition."""
        return Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Comparison(_Condition):
    """`left sign right`."""

    sign: ComparisonSign
    left: Node
    right: Node
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if self.sign not in EQUALITY:
            for operand in (self.left, self.right):
                _want(Kind.NUMBER, operand, f"beside {self.sign}, for texts and booleans have no order")
        kinds = {self.left.kind, self.right.kind} - {Kind.ANY}
        if len(kinds) > 1:
            raise SelectorError(
                f"{self.left.kind.value} compared with {self.right.kind.value} is never true", self.right.position
            )
        _set_depth(self, self.left, self.right)


@dataclass(frozen=True, slots=True)
class Between(_Condition):
    """`operand [NOT] BETWEEN low AND high`."""

    operand: Node
    low: Node
    high: Node
    negated: bool = False
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for part in (self.operand, self.low, self.high):
            _want(Kind.NUMBER, part, "of BETWEEN")
        _set_depth(self, self.operand, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Like(_Condition):
    """`identifier [NOT] LIKE pattern [ESCAPE character]`."""

    identifier: Identifier
    pattern: Pattern
    negated: bool = False
    position: int = 0
    depth: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class In(_Condition):
    """`identifier [NOT] IN (texts)`."""

    identifier: Identifier
    values: tuple[str, ...]
    negated: bool = False
    position: int = 0
    depth: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class IsNull(_Condition):
    """`identifier IS [NOT] NULL`."""

    identifier: Identifier
    negated: bool = False
    position: int = 0
    depth: int = field(default=1, init=False)


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """`NOT operand`."""

    operand: Node
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        _want(Kind.BOOLEAN, self.operand, "behind NOT")
        _set_depth(self, self.operand)


@dataclass(frozen=True, slots=True)
class Junction(_Condition):
    """Two or more terms joined by AND or by OR; made by `join`."""

    word: JunctionWord
    terms: tuple[Node, ...]
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        for term in self.terms:
            _want(Kind.BOOLEAN, term, f"beside {self.word}")
        _set_depth(self, *self.terms)


Node: TypeAlias = Literal | Identifier | Sign | Arithmetic | Comparison | Between | Like | In | IsNull | Not | Junction


def join(word: JunctionWord, terms: list[Node], position: int = 0) -> Junction:
    """The terms joined, those that are joined by the same word already being taken apart."""
    flat: list[Node] = []
    for term in terms:
        if isinstance(term, Junction) and term.word == word:
            flat.extend(term.terms)
        else:
            flat.append(term)
    return Junction(word, tuple(flat), position)


def signed(sign: SignWord, operand: Node, position: int = 0) -> Node:
    """The operand with a sign: a literal without one becomes another literal."""
    if isinstance(operand, Literal) and operand.kind is Kind.NUMBER and not str(operand.value).startswith("-"):
        if sign == "+":
            return Literal(operand.value, position)
        return Literal(type(operand.value)(-operand.value), position)  # type: ignore[operator]
    return Sign(sign, operand, position)


def condition(node: Node) -> Node:
    """The node, which is to be a whole selector.

    Raises:
        SelectorError: it is a text or a number.
    """
    _want(Kind.BOOLEAN, node, "as a selector")
    return node


def _want(kind: Kind, node: Node, place: str) -> None:
    if node.kind is not kind and node.kind is not Kind.ANY:
        raise SelectorError(f"{kind.value} is needed {place}, not {node.kind.value}", node.position)


def _set_depth(node: Node, *children: Node) -> None:
    depth = 1 + max(child.depth for child in children)
    if depth > MAX_DEPTH:
        raise SelectorError(f"expressions nested more than {MAX_DEPTH} deep", node.position)
    object.__setattr__(node, "depth", depth)
