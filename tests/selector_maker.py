"""Random selectors and properties that fit them, for comparing one evaluator with another; the seed decides all."""

from __future__ import annotations

import random
from typing import Any

from mtosi_jms.jms.message import Long
from mtosi_jms.jms.selector.nodes import (
    Arithmetic,
    ArithmeticSign,
    Between,
    Comparison,
    Identifier,
    In,
    IsNull,
    Like,
    Literal,
    Node,
    Not,
    Pattern,
    join,
    signed,
)

TEXTS = ("", "a", "ab", "a%b", "a_b", "it's", "aXb", "AB", "b\\a", "a\nb", "a.b", "(x)", "größe", "[a-b]*")
PATTERNS = (
    "%",
    "_",
    "a%",
    "%b",
    "%a%",
    "a_b",
    "a%b%",
    "_%_",
    "it''%",
    "a.b",
    "[%",
    "größ_",
    "b\\%",
    "",
    "%%X%%",
    "(_)",
)
ESCAPED = (("a!%b", "!"), ("a\\_b", "\\"), ("%!_%", "!"), ("aaX", "a"), ("!!%", "!"))
INTS = (0, 1, -1, 2, 3, 7, 2**31 - 1, -(2**31) + 1, 100_000)
LONGS = (Long(0), Long(5), Long(-7), Long(2**31), Long(2**53 + 1), Long(2**63 - 1))
DOUBLES = (0.0, 0.5, -1.5, 2.0, 7.25, 1e10, -3e-5, 2.0**53)


class SelectorMaker:
    """Makes selectors over the properties s1, s2 (String), b1, b2 (Boolean), i1, i2 (Integer), l1 (Long), d1 (Double).

    Args:
        seed: decides everything.
        portable: only what ActiveMQ reads and reckons as JMS says; see docs/selectors.md for what it does not.
    """

    def __init__(self, seed: int, *, portable: bool) -> None:
        self._random = random.Random(seed)
        self._portable = portable

    def condition(self, depth: int = 3) -> Node:
        """A condition with at most so many levels of AND, OR and NOT."""
        if depth and self._random.random() < 0.6:
            kind = self._random.randrange(3)
            if kind == 0:
                return Not(self.condition(depth - 1))
            terms = [self.condition(depth - 1) for _ in range(self._random.randint(2, 3))]
            return join("AND" if kind == 1 else "OR", terms)
        makers = [self._texts, self._texts, self._numbers, self._numbers, self._between, self._like, self._in]
        return self._random.choice([*makers, self._null, self._flag, *([] if self._portable else [self._unlike])])()

    def properties(self) -> dict[str, Any]:
        """Values for the properties, a third of them absent."""
        values = {
            **dict.fromkeys(("s1", "s2"), TEXTS),
            **dict.fromkeys(("b1", "b2"), (True, False)),
            **dict.fromkeys(("i1", "i2"), INTS),
            "l1": LONGS,
            "d1": [value for value in DOUBLES if value or not self._portable],
        }
        return {name: self._pick(choices) for name, choices in values.items() if self._random.random() < 0.67}

    def _pick(self, choices: Any) -> Any:
        return self._random.choice(choices)

    def _name(self, *names: str) -> Identifier:
        return Identifier(self._pick(names))

    def _texts(self) -> Node:
        other = Literal(self._pick(TEXTS)) if self._portable or self._pick((True, False)) else self._name("s1", "s2")
        return Comparison(self._pick(("=", "<>")), self._name("s1", "s2"), other)

    def _numbers(self) -> Node:
        sign = self._pick(("=", "<>", "<", "<=", ">", ">="))
        # ActiveMQ takes NULL on the right side of = and <> for a value.
        known = self._portable and sign in ("=", "<>")
        return Comparison(sign, self._number(2), self._literal() if known else self._number(2))

    def _literal(self) -> Node:
        value = self._pick((*INTS, *DOUBLES, *(() if self._portable else LONGS), 2**31 - 2))
        return signed("-", Literal(-value)) if value < 0 else Literal(value)

    def _number(self, depth: int) -> Node:
        kind = self._random.randrange(6) if depth else self._random.randrange(4)
        if kind < 3:
            return self._name("i1", "i2", "l1", "d1")
        if kind == 3:
            return self._literal()
        if kind == 4:
            return signed(self._pick("+-"), self._number(0 if self._portable else depth - 1))
        sign: ArithmeticSign = self._pick("+-*/")
        if self._portable and sign in "*/":
            return self._portable_product(sign, depth)
        return Arithmetic(sign, self._number(depth - 1), self._number(depth - 1))

    def _portable_product(self, sign: ArithmeticSign, depth: int) -> Node:
        """ActiveMQ divides whole numbers as if they were doubles, and holds -0.0 to be less than 0.0."""
        if sign == "*" and self._random.random() < 0.5:
            return Arithmetic("*", self._name("i1", "i2", "l1"), self._name("i1", "i2", "l1"))
        return Arithmetic(sign, self._number(depth - 1), Literal(self._pick((0.5, 2.0, 3.0))))

    def _between(self) -> Node:
        return Between(self._number(1), self._number(1), self._number(1), self._pick((True, False)))

    def _like(self) -> Node:
        text, escape = self._pick(ESCAPED) if self._random.random() < 0.4 else (self._pick(PATTERNS), None)
        return Like(self._name("s1", "s2"), Pattern(text, escape), self._pick((True, False)))

    def _in(self) -> Node:
        values = tuple(self._pick(TEXTS) for _ in range(self._random.randint(1, 4)))
        return In(self._name("s1", "s2"), values, self._pick((True, False)))

    def _null(self) -> Node:
        return IsNull(self._name("s1", "b1", "i1", "l1", "d1", "absent"), self._pick((True, False)))

    def _flag(self) -> Node:
        flag = self._name("b1", "b2")
        return self._pick((flag, Comparison(self._pick(("=", "<>")), flag, Literal(self._pick((True, False))))))

    def _unlike(self) -> Node:
        """Values of different types, and orders of what has none."""
        left, right = self._name("s1", "b1", "i1", "d1", "absent"), self._name("s2", "b2", "l1", "d1", "absent")
        text = Literal(self._pick(TEXTS))
        return self._pick(
            (
                Comparison(self._pick(("=", "<>", "<", ">=")), left, right),
                Comparison(self._pick(("=", "<>")), left, text),
                Comparison("=", Comparison("<", left, right), Literal(True)),
                Between(left, right, Literal(3), self._pick((True, False))),
                Comparison(">", Arithmetic("+", left, right), Literal(0)),
                Like(left, Pattern("a%"), self._pick((True, False))),
                In(left, ("a", "ab"), self._pick((True, False))),
                left,
            )
        )
