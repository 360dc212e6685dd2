"""Content models as formal languages: two are equal if they accept the same sequences of elements.

Expressions are tuples: `()` the empty sequence, `("sym", key)`, `("seq", a, b)`, `("alt", {...})`, `("all", {...})`,
`("rep", a, low, high)` with a high of None for unbounded. None is the empty language. The derivative of an expression
by a key is what may follow that key; two expressions differ where one may end and the other may not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable
from typing import Any, Final, TypeAlias

Expression: TypeAlias = tuple[Any, ...] | None

EMPTY: Final[Expression] = ()
_MOST: Final = 20_000


def symbol(key: Hashable) -> Expression:
    """One element."""
    return "sym", key


def sequence(items: Iterable[Expression]) -> Expression:
    """Items in order."""
    found: Expression = EMPTY
    for item in reversed(list(items)):
        found = _then(item, found)
    return found


def choice(items: Iterable[Expression]) -> Expression:
    """One of several items."""
    flat: set[Expression] = set()
    for item in items:
        if item is not None:
            flat |= item[1] if item[:1] == ("alt",) else {item}
    if len(flat) < 2:
        return next(iter(flat), None)
    return "alt", frozenset(flat)


def interleaved(items: Iterable[Expression]) -> Expression:
    """Items in any order (xsd:all)."""
    left = [item for item in items if item != EMPTY]
    if None in left:
        return None
    return ("all", frozenset(left)) if len(left) > 1 else next(iter(left), EMPTY)


def repeated(item: Expression, low: int, high: int | None) -> Expression:
    """An item several times."""
    if item is None:
        return EMPTY if low == 0 else None
    if high == 0 or item == EMPTY:
        return EMPTY
    if (low, high) == (1, 1):
        return item
    return "rep", item, 0 if _may_end(item) else low, high


def _then(first: Expression, second: Expression) -> Expression:
    if first is None or second is None:
        return None
    if first == EMPTY:
        return second
    if second == EMPTY:
        return first
    if first[0] == "seq":
        return _then(first[1], _then(first[2], second))
    return "seq", first, second


def _may_end(item: Expression) -> bool:
    if not item:
        return item == EMPTY
    kind, inner = item[0], item[1]
    if kind == "seq":
        return _may_end(inner) and _may_end(item[2])
    if kind == "rep":
        return item[2] == 0 or _may_end(inner)
    if kind in ("alt", "all"):
        return (any if kind == "alt" else all)(_may_end(one) for one in inner)
    return False


def firsts(item: Expression) -> set[Hashable]:
    """The keys with which an expression may begin."""
    if not item:
        return set()
    kind, inner = item[0], item[1]
    if kind == "sym":
        return {inner}
    if kind in ("alt", "all"):
        return set().union(*(firsts(one) for one in inner))
    found = firsts(inner)
    return found | firsts(item[2]) if kind == "seq" and _may_end(inner) else found


def after(item: Expression, key: Hashable) -> Expression:
    """What may follow a key at the beginning; None if the expression cannot begin with the key."""
    if not item:
        return None
    kind, inner = item[0], item[1]
    if kind == "sym":
        return EMPTY if inner == key else None
    if kind == "alt":
        return choice(after(one, key) for one in inner)
    if kind == "all":
        left = [(after(one, key), inner - {one}) for one in inner]
        return choice(_then(rest, interleaved(others)) for rest, others in left if rest is not None)
    if kind == "rep":
        low, high = item[2], item[3]
        fewer = repeated(inner, max(low - 1, 0), None if high is None else high - 1)
        return _then(after(inner, key), fewer)
    found = _then(after(inner, key), item[2])
    return choice([found, after(item[2], key)]) if _may_end(inner) else found


def occurrences(item: Expression, key: Hashable) -> tuple[int, int | None]:
    """The least and greatest number of times that a key may occur; None for unbounded."""
    if not item:
        return 0, 0
    kind, inner = item[0], item[1]
    if kind == "sym":
        return (1, 1) if inner == key else (0, 0)
    if kind == "rep":
        low, high = occurrences(inner, key)
        most = 0 if high == 0 else None if high is None or item[3] is None else high * item[3]
        return low * item[2], most
    parts = [occurrences(one, key) for one in (item[1:] if kind == "seq" else inner)]
    lows, highs = [low for low, _ in parts], [high for _, high in parts]
    fold = (min, max) if kind == "alt" else (sum, sum)
    return fold[0](lows), None if None in highs else fold[1](high for high in highs if high is not None)


def difference(one: Expression, other: Expression) -> tuple[list[Hashable], bool] | None:
    """The shortest sequence that only one of two expressions accepts, and whether the first does; None if not found.

    The search ends without a result after 20,000 states.
    """
    start = (one, other)
    met = {start}
    queue: deque[tuple[tuple[Expression, Expression], tuple[Hashable, ...]]] = deque([(start, ())])
    while queue and len(met) < _MOST:
        (left, right), word = queue.popleft()
        if _may_end(left) != _may_end(right):
            return list(word), _may_end(left)
        for key in sorted(firsts(left) | firsts(right), key=str):
            pair = after(left, key), after(right, key)
            if pair[0] != pair[1] and pair not in met:  # what is equal differs nowhere later
                met.add(pair)
                queue.append((pair, (*word, key)))
    return None
