"""The syntax tree of a selector. A node that exists is valid: each checks the types of its operands when it is made.

What is checked is what JMS lets be known without a message: literals and results of operators have a type, identifiers
have none. Texts and booleans are compared by `=` and `<>` alone; arithmetic takes numbers; conditions are booleans.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Final, TypeAlias
from typing import Literal as OneOf

from mtosi_jms.errors import SelectorError
from mtosi_jms.jms.selector.like import Pattern

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
