"""Which values stand together: in `(ref, value*)+` a value belongs to the ref before it, but an object has two lists.

What was read keeps its order, and the values that it had then (`Extras.order`, `Extras.held`). Where the lists were
edited since, each value stays with its neighbours. Without an order, the numbers of values decide where they leave one
way only: in `(ref?, value?)*` two refs and two values are pairs, one ref has all values. Everything else is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice
from typing import Any, Final

from mtosi_jms.errors import EncodeError
from mtosi_jms.xmlbind._grammar import Grammar, Rounds
from mtosi_jms.xmlbind._values import Extras

_MOST_TRIED: Final = 100_000
"""Most fields of all arrangements that are tried."""

OUT_OF_ORDER: Final = "order"
"""The excuse of a document whose elements are not in the schema's order."""

Token = tuple[str, int]
Lists = Mapping[str, Sequence[Any]]


def held(order: Sequence[str], lists: Lists) -> tuple[tuple[str, Any], ...]:
    """Return the values in an order, each with its field; nothing if the order is not that of these lists."""
    left = {name: iter(values) for name, values in lists.items()}
    found = [(name, next(left.get(name, iter(())), _MISSING)) for name in order]
    if any(value is _MISSING for _, value in found) or len(found) != sum(map(len, lists.values())):
        return ()
    return tuple(found)


_MISSING: Final = object()


def kept_order(grammar: Grammar, extras: Extras, lists: Lists) -> list[str]:
    """Return the order of what was read, or the one that a program gave, for the lists as they are now. Raises
    EncodeError: it is not clear where values go that were added or moved, or which others have lost theirs."""
    if not _was_read(extras):
        return list(extras.order)
    kept = followed(grammar, extras, lists)
    if kept is None and grammar.joins:
        counts = {name: len(values) for name, values in lists.items()}
        raise EncodeError(f"values were added, moved or taken out, and {_open(counts)}")
    return grammar.order({name: len(values) for name, values in lists.items()}) if kept is None else kept


def arranged(grammar: Grammar, extras: Extras | None, lists: Lists, *, excused: bool = False) -> list[str]:
    """Return the order in which values are written: the name of a field for each.

    Args:
        excused: whether the document broke the model, so that only its own order can be kept.

    Raises:
        EncodeError: several orders are possible in which values stand with others.
    """
    counts = {name: len(values) for name, values in lists.items()}
    order = extras.order if extras is not None else ()
    if extras is not None and order:
        if _was_read(extras):
            return kept_order(grammar, extras, lists)
        if held(order, lists) and (excused or OUT_OF_ORDER in extras.excused or grammar.allows(order)):
            return list(order)
        if grammar.joins:
            raise EncodeError(f"extras.order is not an order of these values that the schema allows: {_open(counts)}")
    if not excused and not grammar.decides(counts):
        raise EncodeError(_open(counts))
    return grammar.order(counts)


def _open(counts: Mapping[str, int]) -> str:
    numbers = ", ".join(f"{count} {name}" for name, count in counts.items())
    names = "".join(f"{name!r}, " for name in counts)
    return (
        f"nothing says which of {numbers} stand together: give the fields in order, extras=Extras(order=({names}...))"
    )


def followed(grammar: Grammar, extras: Extras, lists: Lists) -> list[str] | None:
    """Return the order of what was read for the lists as they are now; None if it is not clear."""
    order = list(extras.order)
    if not _was_read(extras):
        return None
    if _is_unchanged(extras.held, lists):
        return order
    word: list[Token | None] = [None] * len(order)
    new: list[Token] = []
    for name in dict.fromkeys([*order, *lists]):
        places = [place for place, other in enumerate(order) if other == name]
        values = lists.get(name, ())
        kept = dict(_aligned([extras.held[place][1] for place in places], values))
        for old, now in kept.items():
            word[places[old]] = name, now
        new += [(name, now) for now in range(len(values)) if now not in kept.values()]
    before = Rounds.of(grammar.model, order)
    if before is None:
        return None
    together = _together(before, word)
    left = [token for token in word if token is not None]
    most = _MOST_TRIED // (len(order) + len(new))
    words = list(islice(_placed(left, new), most + 1))
    if len(words) > most:
        return None
    found: dict[int, dict[frozenset[frozenset[Token]], list[Token]]] = {}
    for tried in words:
        rounds = Rounds.of(grammar.model, [name for name, _ in tried])
        if rounds is not None and _together(rounds, [one if one in set(left) else None for one in tried]) == together:
            found.setdefault(len(rounds), {}).setdefault(_together(rounds, tried), tried)
    ways = found[min(found)] if found else {}
    return [name for name, _ in next(iter(ways.values()))] if len(ways) == 1 else None


def _was_read(extras: Extras) -> bool:
    """Whether the order is that of the document, and not one that the program gave."""
    return [name for name, _ in extras.held] == list(extras.order)


def _is_unchanged(before: Iterable[tuple[str, Any]], lists: Lists) -> bool:
    left = {name: iter(values) for name, values in lists.items()}
    same = all(_is_same(next(left.get(name, iter(())), _MISSING), value) for name, value in before)
    return same and all(next(rest, _MISSING) is _MISSING for rest in left.values())


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same: objects that can be edited by identity, texts and numbers by value."""
    return one is other or (not hasattr(one, "__xml__") and type(one) is type(other) and bool(one == other))


def _aligned(before: Sequence[Any], now: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield the places of values that are still there, or that others replaced one by one."""
    known: list[Any] = []

    def number(value: Any) -> int:
        at = next((at for at, other in enumerate(known) if _is_same(other, value)), len(known))
        known.extend([value] if at == len(known) else [])
        return at

    old, new = [number(value) for value in before], [number(value) for value in now]
    for kind, start, end, first, last in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal" or (kind == "replace" and end - start == last - first):
            yield from zip(range(start, end), range(first, last), strict=True)


def _together(rounds: Sequence[range], word: Sequence[Token | None]) -> frozenset[frozenset[Token]]:
    """Return the groups of values that stand in one round."""
    groups = (frozenset(one for one in word[found.start : found.stop] if one is not None) for found in rounds)
    return frozenset(filter(None, groups))


def _placed(word: list[Token], new: Sequence[Token]) -> Iterator[list[Token]]:
    """Yield all ways to put values among others, each field in its own order; those with the new ones last first."""
    if not new:
        yield word
        return
    name, number = new[0]
    same = [place for place, (other, _) in enumerate(word) if other == name]
    first = max((place + 1 for place in same if word[place][1] < number), default=0)
    last = min((place for place in same if word[place][1] > number), default=len(word))
    for place in range(last, first - 1, -1):
        yield from _placed([*word[:place], new[0], *word[place:]], new[1:])
