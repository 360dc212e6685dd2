"""The syntax tree of a selector. Every node is valid: it checks the types of its operands when it is made.

The checks are those that JMS allows without a message: literals and results of operators have a type, identifiers do
not. Texts and booleans can be compared only by `=` and `<>`, arithmetic takes numbers, conditions are booleans.
Patterns of LIKE are matched without backtracking: the time is bounded by the length of the text times that of the
pattern.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final, TypeAlias
from typing import Literal as OneOf

from mtosi_jms.bounds import BOUNDS
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
    "children",
    "condition",
    "escaped",
    "join",
    "signed",
]

Segment: TypeAlias = tuple[str | None, ...]
"""The part of a pattern between two `%`: characters, and None for any one character."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: `%` matches any text, also an empty one; `_` matches one character. After the escape both are literal.
    `position`: offset of the pattern's literal in the selector, for errors. `escape_position`: offset of the literal
    after ESCAPE. Raises SelectorError: the escape is not one character, or precedes something else than `%`, `_` or
    itself, which SQL does not allow."""

    text: str
    escape: str | None = None
    position: int = 0
    escape_position: int = 0

    def __post_init__(self) -> None:
        if self.escape is not None and len(self.escape) != 1:
            raise SelectorError("the text behind ESCAPE is one character", self.escape_position)
        self.segments()

    def segments(self) -> tuple[Segment, ...]:
        """Return the pattern split at each `%`: one segment more than there are `%`."""
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
        """Return a function that tells whether a text matches. What is between two `%` is taken at its first place
        alone, which leaves the most text for the rest, and what is last at the end alone, so nothing backtracks."""
        segments = self.segments()
        first, *rest = ("".join("." if one is None else re.escape(one) for one in some) for some in segments)
        middle = "".join(f"(?>.*?{part})" for part in rest[:-1] if part)
        last = f"(?=.{{{len(segments[-1])}}})(?>.*)(?<={rest[-1]})" if rest else ""
        full = re.compile(f"{first}{middle}{last}", re.DOTALL).fullmatch
        return lambda text: full(text) is not None


def escaped(text: str, escape: str) -> str:
    """Return a pattern that matches only the text."""
    for special in (escape, "%", "_"):
        text = text.replace(special, escape + special)
    return text


MAX_DEPTH: Final = BOUNDS.selector_depth
"""Maximum nesting of conditions, arithmetic and parentheses."""


class Kind(enum.Enum):
    """The type of a node's value, as far as it is known without a message."""

    STRING = "a text"
    NUMBER = "a number"
    BOOLEAN = "a condition"
    ANY = "a property"


ComparisonSign: TypeAlias = OneOf["=", "<>", "<", "<=", ">", ">="]
SignWord: TypeAlias = OneOf["+", "-"]
ArithmeticSign: TypeAlias = OneOf["+", "-", "*", "/"]
JunctionWord: TypeAlias = OneOf["AND", "OR"]
EQUALITY: Final = frozenset({"=", "<>"})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Node:
    """The base of all nodes: their place in the text, and how deep the nodes inside of them are nested. `wanted`: the
    kind of those, and how an error names their place."""

    wanted: ClassVar[tuple[Kind, str]] = Kind.ANY, ""
    position: int = 0
    depth: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        kind, place = self.wanted
        inner = tuple(children(self))
        for node in inner:
            _require(kind, node, place.format(self))
        depth = 1 + max((node.depth for node in inner), default=-1)
        if depth > MAX_DEPTH:
            raise SelectorError(f"expressions nested more than {MAX_DEPTH} deep", self.position)
        object.__setattr__(self, "depth", depth)


class _Value(_Node):
    """The base of the nodes that are numbers."""

    __slots__ = ()
    kind: ClassVar[Kind] = Kind.NUMBER


class _Condition(_Node):
    """The base of the nodes that are true, false or unknown."""

    __slots__ = ()
    kind: ClassVar[Kind] = Kind.BOOLEAN


@dataclass(frozen=True, slots=True)
class Literal(_Node):
    """A text, a number or a boolean."""

    value: str | int | float

    @property
    def kind(self) -> Kind:
        """The kind of the value."""
        if isinstance(self.value, str):
            return Kind.STRING
        return Kind.BOOLEAN if isinstance(self.value, bool) else Kind.NUMBER


@dataclass(frozen=True, slots=True)
class Identifier(_Node):
    """A property or one of six headers."""

    kind: ClassVar[Kind] = Kind.ANY  # the type is known only with a message
    name: str


@dataclass(frozen=True, slots=True)
class Sign(_Value):
    """`-operand` or `+operand`."""

    wanted: ClassVar = Kind.NUMBER, "behind {0.sign}"
    sign: SignWord
    operand: Node


@dataclass(frozen=True, slots=True)
class Arithmetic(_Value):
    """`left sign right`, of numbers."""

    wanted: ClassVar = Kind.NUMBER, "beside {0.sign}"
    sign: ArithmeticSign
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison(_Condition):
    """`left sign right`."""

    sign: ComparisonSign
    left: Node
    right: Node

    def __post_init__(self) -> None:
        super(Comparison, self).__post_init__()
        if self.sign not in EQUALITY:
            for node in (self.left, self.right):
                _require(Kind.NUMBER, node, f"beside {self.sign}, for texts and booleans have no order")
        left, right = self.left.kind, self.right.kind
        if len({left, right} - {Kind.ANY}) > 1:
            raise SelectorError(f"{left.value} compared with {right.value} is never true", self.right.position)


@dataclass(frozen=True, slots=True)
class Between(_Condition):
    """`operand [NOT] BETWEEN low AND high`."""

    wanted: ClassVar = Kind.NUMBER, "of BETWEEN"
    operand: Node
    low: Node
    high: Node
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(_Condition):
    """`identifier [NOT] LIKE pattern [ESCAPE character]`."""

    identifier: Identifier
    pattern: Pattern
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(_Condition):
    """`identifier [NOT] IN (texts)`."""

    identifier: Identifier
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(_Condition):
    """`identifier IS [NOT] NULL`."""

    identifier: Identifier
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Not(_Condition):
    """`NOT operand`."""

    wanted: ClassVar = Kind.BOOLEAN, "behind NOT"
    operand: Node


@dataclass(frozen=True, slots=True)
class Junction(_Condition):
    """Two or more terms joined by AND or by OR; made by `join`."""

    wanted: ClassVar = Kind.BOOLEAN, "beside {0.word}"
    word: JunctionWord
    terms: tuple[Node, ...]


Node: TypeAlias = Literal | Identifier | Sign | Arithmetic | Comparison | Between | Like | In | IsNull | Not | Junction


def join(word: JunctionWord, terms: list[Node], position: int = 0) -> Junction:
    """Join terms. A term that is a junction of the same word is replaced by its own terms."""
    flat: list[Node] = []
    for term in terms:
        if isinstance(term, Junction) and term.word == word:
            flat.extend(term.terms)
        else:
            flat.append(term)
    return Junction(word, tuple(flat), position=position)


def signed(sign: SignWord, operand: Node, position: int = 0) -> Node:
    """Return the operand with a sign. A number literal without a sign becomes another literal."""
    if isinstance(operand, Literal) and operand.kind is Kind.NUMBER and not str(operand.value).startswith("-"):
        if sign == "+":
            return Literal(operand.value, position=position)
        return Literal(type(operand.value)(-operand.value), position=position)  # type: ignore[operator]
    return Sign(sign, operand, position=position)


def condition(node: Node) -> Node:
    """Return a node that can be a whole selector. Raises SelectorError: it is a text or a number."""
    _require(Kind.BOOLEAN, node, "as a selector")
    return node


def children(node: _Node) -> Iterator[Node]:
    """Yield the nodes inside of a node, from left to right."""
    names: tuple[str, ...] = node.__match_args__
    for name in names:
        value = getattr(node, name)
        if isinstance(value, _Node):
            yield value  # type: ignore[misc]
        elif name == "terms":
            yield from value


def _require(kind: Kind, node: Node, place: str) -> None:
    if kind is not Kind.ANY and node.kind not in (kind, Kind.ANY):
        raise SelectorError(f"{kind.value} is needed {place}, not {node.kind.value}", node.position)
