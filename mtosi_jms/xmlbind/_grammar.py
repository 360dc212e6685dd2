"""Content models that are more than one sequence of different elements: choices, repeated and nested groups.

A group is `(kind, min, max, items)`. Its kind is `seq`, `choice` or `all`; its max is None for unbounded. An item is a
nested group, a field name, or `(field name, min, max)` with the number of occurrences in one round of its group. A bare
field name takes one occurrence in a choice, one in each round of a repeated sequence, and otherwise all occurrences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

Group = tuple[str, int, int | None, tuple[Any, ...]]

_FIRST_LETTER: Final = 0xE000
_SEARCH_STEPS: Final = 2_000
_MOST_SEARCHED: Final = 60


class Grammar:
    """A content model as a formal language: its words are the orders of fields that it allows.

    Attributes:
        model: the content model.
        names: its fields, in the order of the model, each once.
    """

    def __init__(self, model: Group) -> None:
        self.model = model
        self.names = tuple(dict.fromkeys(names_of(model)))
        self._letters = {name: chr(_FIRST_LETTER + number) for number, name in enumerate(self.names)}
        self._pattern = re.compile(self._expression(model, repeated=False))

    def _expression(self, item: Any, *, repeated: bool) -> str:
        # The quantifiers are possessive: content models are deterministic, and no document must make a check slow.
        if not is_group(item):
            letter = self._letters[item_name(item)]
            if isinstance(item, str):
                return f"{letter}?+" if repeated else f"{letter}*+"
            return f"{letter}{_times(item[1], item[2])}"
        kind, least, most, items = item
        repeated = repeated or most is None or most > 1
        if kind == "seq":
            parts = [self._expression(inner, repeated=repeated) for inner in items]
            return f"(?:{''.join(parts)}){_times(least, most)}"
        if kind == "all":
            return f"[{''.join(self._letters[item_name(inner)] for inner in items)}]*+" if items else ""
        alternatives = [_alternative(inner) for inner in items]
        parts = [self._entered(inner, repeated=repeated) for inner in alternatives]
        parts += [""] if any(_may_be_empty(inner) for inner in alternatives) else []
        return f"(?:{'|'.join(parts)}){_times(least, most)}"

    def _entered(self, item: Any, *, repeated: bool) -> str:
        """Return the expression of an alternative that only matches if one of its first fields comes next."""
        letters = "".join(sorted(self._letters[name] for name in _firsts(item)))
        return f"(?=[{letters}]){self._expression(item, repeated=repeated)}" if letters else "(?!)"

    def allows(self, order: Sequence[str]) -> bool:
        """Whether the model allows an order of fields. The number of occurrences in an `all` group is not checked."""
        if self._pattern.fullmatch("".join(self._letters[name] for name in order)) is not None:
            return True
        # For nested repetitions, only a search finds out which of them a field belongs to.
        return len(order) <= _MOST_SEARCHED and len(order) in _ends(self.model, order, 0, repeated=False)

    def order(self, counts: Mapping[str, int]) -> list[str]:
        """Return the order in which values are written: one name for each value, even if the model does not allow all.

        Args:
            counts: number of values of each field.
        """
        own = self._own(counts)
        order = emission_order(self.model, own)
        if not self._fits(order, own):
            order = _search(self.model, own) or order
        return order + [name for name, count in counts.items() for _ in range(count - order.count(name))]

    def problem(self, counts: Mapping[str, int]) -> str | None:
        """Return why the model does not allow these values; None if it does.

        Args:
            counts: number of values of each field.
        """
        for name, count in counts.items():
            if count and name not in self._letters:
                needed = missing(self.model, self._own(counts))
                return f"{name} is not part of the content{f'; {needed}' if needed else ''}"
        counts = self._own(counts)
        order = emission_order(self.model, counts)
        if self._fits(order, counts) or _search(self.model, counts) is not None:
            return None
        for name, count in counts.items():
            if order.count(name) < count:
                rivals = [other for other in counts if other != name]
                return f"{name} may not stand together with {', '.join(rivals) or 'more of itself'}"
        held = ", ".join(f"{count} {name}" for name, count in counts.items())
        return missing(self.model, counts) or f"{held or 'nothing'}: not what the schema asks for"

    def _own(self, counts: Mapping[str, int]) -> dict[str, int]:
        return {name: counts[name] for name in self.names if counts.get(name)}

    def _fits(self, order: list[str], counts: Mapping[str, int]) -> bool:
        return (
            len(order) == sum(counts.values())
            and self.allows(order)
            and missing(self.model, counts, only="all") is None
        )


def _times(least: int, most: int | None) -> str:
    return f"{{{least},{'' if most is None else most}}}+"


def is_group(item: Any) -> bool:
    """Whether an item of a model is a nested group."""
    return isinstance(item, tuple) and len(item) == 4


def item_name(item: Any) -> str:
    """Return the field of an item that is not a group."""
    return item if isinstance(item, str) else str(item[0])


def _alternative(item: Any) -> Any:
    """Return an item of a choice with its occurrence."""
    return (item, 1, 1) if isinstance(item, str) else item


def _firsts(item: Any) -> set[str]:
    """Return the fields with which an item may begin."""
    if not is_group(item):
        return {item_name(item)}
    kind, _, _, items = item
    firsts: set[str] = set()
    for inner in items:
        firsts |= _firsts(inner)
        if kind == "seq" and not _may_be_empty(inner):
            break
    return firsts


def names_of(item: Any) -> Iterator[str]:
    """Yield the fields of an item, in the order of the model; a field may occur more than once."""
    if is_group(item):
        for inner in item[3]:
            yield from names_of(inner)
    else:
        yield item_name(item)


def emission_order(model: Group, counts: Mapping[str, int]) -> list[str]:
    """Return the order in which values are written: one name for each value.

    Args:
        model: the content model.
        counts: number of values of each field.
    """
    left = {name: count for name, count in counts.items() if count}
    order: list[str] = []
    _rounds(model, left, order, repeated=False)
    return order


def _rounds(group: Group, left: dict[str, int], order: list[str], *, repeated: bool) -> None:
    _, _, most, _ = group
    done = 0
    repeated = repeated or most is None or most > 1
    while most is None or done < most:
        before = len(order)
        _round(group, left, order, repeated=repeated)
        done += 1
        if len(order) == before:
            return


def _round(group: Group, left: dict[str, int], order: list[str], *, repeated: bool) -> None:
    kind, _, _, items = group
    for index, item in enumerate(items):
        if not any(left.get(name) for name in names_of(item)):
            continue
        if kind == "choice":
            item = _alternative(item)
        if is_group(item):
            _rounds(item, left, order, repeated=repeated)
        else:
            later = sum(1 for other in items[index + 1 :] for name in names_of(other) if name == item_name(item))
            _take(item, left, order, repeated=repeated, spare=later)
        if kind == "choice":
            return


def _take(item: Any, left: dict[str, int], order: list[str], *, repeated: bool, spare: int) -> None:
    name = item_name(item)
    most: int | None = (1 if repeated else None) if isinstance(item, str) else item[2]
    there = left.get(name, 0)
    take = there - spare if spare and there > spare else (1 if spare and there else there)
    if most is not None:
        take = min(take, most)
    order.extend([name] * take)
    left[name] = there - take


def _present(item: Any, counts: Mapping[str, int]) -> bool:
    return any(counts.get(name) for name in names_of(item))


def missing(group: Group, counts: Mapping[str, int], only: str = "") -> str | None:
    """Return a text about a required field that has no value; None if all have one.

    Args:
        group: the content model.
        counts: number of values of each field.
        only: check only groups of this kind; empty for all.
    """
    kind, least, _, items = group
    if not _present(group, counts) and least == 0:
        return None
    if kind == "choice":
        chosen = [item for item in items if _present(item, counts)]
        if not chosen:
            return None if only or any(_may_be_empty(item) for item in items) else _needed(items)
        return missing(chosen[0], counts, only) if is_group(chosen[0]) else None
    for item in items:
        problem = missing(item, counts, only) if is_group(item) else None
        if not is_group(item) and only in ("", kind) and not isinstance(item, str) and counts.get(item[0], 0) < item[1]:
            problem = f"{item[0]} is required"
        if problem:
            return problem
    return None


def _may_be_empty(item: Any) -> bool:
    if not is_group(item):
        return not isinstance(item, str) and item[1] == 0
    kind, least, _, items = item
    if least == 0 or not items:
        return True
    test = any if kind == "choice" else all
    return test(_may_be_empty(inner) for inner in items)


def _needed(items: tuple[Any, ...]) -> str:
    return "one of " + ", ".join(dict.fromkeys(name for item in items for name in names_of(item))) + " is required"


def _ends(item: Any, order: Sequence[str], start: int, *, repeated: bool) -> set[int]:
    """Return all positions at which a part of an order that matches an item may end, if it begins at `start`."""
    if is_group(item):
        least, most = item[1], item[2]
        repeated = repeated or most is None or most > 1
    else:
        least, most = (0, 1 if repeated else None) if isinstance(item, str) else (item[1], item[2])
    reached = {start}
    found = {start} if least == 0 else set()
    for done in range(1, len(order) + least + 1 if most is None else most + 1):
        reached = {end for begin in reached for end in _once(item, order, begin, repeated=repeated)}
        found |= reached if done >= least else set()
        if not reached:
            break
    return found


def _once(item: Any, order: Sequence[str], start: int, *, repeated: bool) -> set[int]:
    if not is_group(item):
        return {start + 1} if start < len(order) and order[start] == item_name(item) else set()
    kind, _, _, items = item
    if kind == "choice":
        return {end for part in items for end in _ends(_alternative(part), order, start, repeated=repeated)}
    reached = {start}
    for part in items if kind == "seq" else ():
        reached = {end for begin in reached for end in _ends(part, order, begin, repeated=repeated)}
    return reached


def _search(model: Group, counts: Mapping[str, int]) -> list[str] | None:
    """Search for an order that the model allows; None if there is none, or if the search would take too long."""
    search = _Search(counts)
    if search.total > _MOST_SEARCHED:
        return None
    for order in search.words(model, [], repeated=False):
        if len(order) == search.total:
            return order
    return None


class _Search:
    """Enumerates the orders that a content model allows for a set of values."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts
        self._steps = 0
        self.total = sum(counts.values())

    def words(self, item: Any, before: list[str], *, repeated: bool) -> Iterator[list[str]]:
        """Yield the orders that begin with `before` and continue with an item, the longest first."""
        self._steps += 1
        if self._steps > _SEARCH_STEPS:
            return
        if is_group(item):
            yield from self._rounds(item, before, 0, repeated=repeated or item[2] is None or item[2] > 1)
            return
        name = item_name(item)
        least, most = (0, 1 if repeated else None) if isinstance(item, str) else (item[1], item[2])
        left = self._counts.get(name, 0) - before.count(name)
        for count in range(left if most is None else min(left, most), least - 1, -1):
            yield before + [name] * count

    def _rounds(self, group: Group, before: list[str], done: int, *, repeated: bool) -> Iterator[list[str]]:
        _, least, most, _ = group
        if most is None or done < most:
            for order in self._round(group, before, repeated=repeated):
                if len(order) > len(before):
                    yield from self._rounds(group, order, done + 1, repeated=repeated)
                elif done < least:
                    done = least  # empty rounds count as often as needed
        if done >= least:
            yield before

    def _round(self, group: Group, before: list[str], *, repeated: bool) -> Iterator[list[str]]:
        kind, _, _, items = group
        if kind == "choice":
            for item in items:
                yield from self.words(_alternative(item), before, repeated=repeated)
            return
        yield from self._sequence(items, before, repeated=repeated)

    def _sequence(self, items: tuple[Any, ...], before: list[str], *, repeated: bool) -> Iterator[list[str]]:
        if not items:
            yield before
            return
        for order in self.words(items[0], before, repeated=repeated):
            yield from self._sequence(items[1:], order, repeated=repeated)
