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
        names: its fields, in the order of the model, each once.
        joins: whether values of different fields may stand together in a round of a repeated sequence, or a field has
            several places, so that it matters which value goes where.
        interleaved: whether a repeated group has several fields, or a field several places.
    """

    def __init__(self, model: Group) -> None:
        self.model = model
        every = list(names_of(model))
        self.names = tuple(dict.fromkeys(every))
        several = len(every) > len(self.names)
        self.joins = several or _mixes(model, ("seq",), repeated=False)
        self.interleaved = several or _mixes(model, ("seq", "choice", "all"), repeated=False)
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
        """Return the order in which values are written, one name for each, even if the model does not allow all."""
        own = self._own(counts)
        order = self._found(own) or emission_order(self.model, own)
        return order + [name for name, count in counts.items() for _ in range(count - order.count(name))]

    def decides(self, counts: Mapping[str, int]) -> bool:
        """Whether values stand together in one way only, in as few rounds as can be; the model allows them."""
        if not self.joins:
            return True
        counts = self._own(counts)
        model = _without(self.model, counts)
        held = [name for name in names_of(model) if name in counts]
        if len(held) == len(set(held)):
            least = max(_needed_rounds(model, counts, repeated=False), model[1])
            return _is_settled(model, counts, least, repeated=False)
        search = _Search(counts)
        if search.total > _MOST_SEARCHED:
            return False
        ways: dict[int, set[tuple[str, ...]]] = {}
        for order in search.words(model, [], repeated=False):
            if len(order) == search.total and (rounds := Rounds.of(model, order)) is not None:
                ways.setdefault(len(rounds), set()).add(tuple(order))
        return search.is_complete and bool(ways) and len(ways[min(ways)]) == 1

    def problem(self, counts: Mapping[str, int]) -> str | None:
        """Return why the model does not allow these values; None if it does."""
        for name, count in counts.items():
            if count and name not in self._letters:
                needed = missing(self.model, self._own(counts))
                return f"{name} is not part of the content{f'; {needed}' if needed else ''}"
        counts = self._own(counts)
        if self._found(counts) is not None:
            return None
        order = emission_order(self.model, counts)
        for name, count in counts.items():
            if order.count(name) < count:
                rivals = [other for other in counts if other != name]
                return f"{name} may not stand together with {', '.join(rivals) or 'more of itself'}"
        held = ", ".join(f"{count} {name}" for name, count in counts.items())
        return missing(self.model, counts) or f"{held or 'nothing'}: not what the schema asks for"

    def _found(self, counts: Mapping[str, int]) -> list[str] | None:
        """Return an order of so many values that the model allows; None if none was found."""
        for model in (self.model, _without(self.model, counts)):
            order = emission_order(model, counts)
            if self._fits(order, counts):
                return order
        return _search(self.model, counts)

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
    return isinstance(item, tuple) and len(item) == 4


def item_name(item: Any) -> str:
    return item if isinstance(item, str) else str(item[0])


def _alternative(item: Any) -> Any:
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
    if is_group(item):
        for inner in item[3]:
            yield from names_of(inner)
    else:
        yield item_name(item)


def _bounds(item: Any, *, repeated: bool) -> tuple[int, int | None]:
    """Return how often an item of a sequence may stand in one round."""
    if is_group(item):
        return item[1], item[2]
    return (0, 1 if repeated else None) if isinstance(item, str) else (item[1], item[2])


def _mixes(group: Group, kinds: tuple[str, ...], *, repeated: bool) -> bool:
    """Whether a repeated group of some kinds has several fields."""
    kind, _, most, items = group
    repeated = repeated or kind == "all" or most is None or most > 1
    if repeated and kind in kinds and len(set(names_of(group))) > 1:
        return True
    return any(_mixes(item, kinds, repeated=repeated) for item in items if is_group(item))


def _without(group: Group, counts: Mapping[str, int]) -> Group:
    """Return a model without the parts that need a field without values."""
    kind, least, most, items = group
    kept = (_without(item, counts) if is_group(item) else item for item in items if _is_possible(item, counts))
    return kind, least, most, tuple(kept)


def _is_possible(item: Any, counts: Mapping[str, int]) -> bool:
    if not is_group(item):
        return bool(counts.get(item_name(item))) or isinstance(item, str) or not item[1]
    kind, _, _, items = item
    if kind == "choice":
        return any(_is_possible(_alternative(inner), counts) for inner in items)
    return all(_is_possible(inner, counts) or (is_group(inner) and not inner[1]) for inner in items)


def _needed_rounds(item: Any, counts: Mapping[str, int], *, repeated: bool) -> int:
    """Return the smallest number of rounds of a group that hold all values; of a field the number of its values."""
    if not is_group(item):
        return counts.get(item_name(item), 0)
    kind, _, most, items = item
    repeated = repeated or most is None or most > 1
    needed = []
    for inner in items:
        inner = _alternative(inner) if kind == "choice" else inner
        number, limit = _needed_rounds(inner, counts, repeated=repeated), _bounds(inner, repeated=repeated)[1]
        needed.append(min(number, 1) if limit is None else -(-number // max(limit, 1)))
    return sum(needed) if kind == "choice" else max(needed, default=0)


def _is_settled(group: Group, counts: Mapping[str, int], rounds: int, *, repeated: bool) -> bool:
    """Whether the values in so many rounds of a group can only be shared out in one way."""
    kind, _, most, items = group
    repeated = repeated or most is None or most > 1
    if sum(1 for name in set(names_of(group)) if counts.get(name)) < 2:
        return True
    for item in items:
        item = _alternative(item) if kind == "choice" else item
        number = _needed_rounds(item, counts, repeated=repeated)
        if not number:
            continue
        least, limit = _bounds(item, repeated=repeated)
        share = rounds
        if kind == "choice":
            share = min(number, 1) if limit is None else -(-number // max(limit, 1))
        elif is_group(item) and item[0] == "choice" and rounds > 1 and _alternatives(item, counts) > 1:
            return False
        number = max(number, share * least) if is_group(item) else number
        is_even = number == share * least or (limit is not None and number == share * limit)
        if share > 1 and not is_even and not (kind == "choice" and not is_group(item)):
            return False
        if is_group(item) and not _is_settled(item, counts, number, repeated=repeated):
            return False
    return True


def _alternatives(choice: Group, counts: Mapping[str, int]) -> int:
    return sum(1 for item in choice[3] if _present(item, counts))


def emission_order(model: Group, counts: Mapping[str, int]) -> list[str]:
    """Return the order in which values are written: one name for each value."""
    left = {name: count for name, count in counts.items() if count}
    order: list[str] = []
    _rounds(model, left, order, repeated=False)
    return order


def _rounds(group: Group, left: dict[str, int], order: list[str], *, repeated: bool, share: int = 1) -> None:
    kind, _, most, _ = group
    done = 0
    repeated = repeated or most is None or most > 1
    if share > 1:  # the other rounds of the group around get as many
        even = -(-_needed_rounds(group, left, repeated=repeated) // share)
        most = even if most is None else min(most, even)
    while most is None or done < most:
        before = len(order)
        rounds = _needed_rounds(group, left, repeated=repeated) if repeated and kind == "seq" else 1
        _round(group, left, order, repeated=repeated, share=rounds)
        done += 1
        if len(order) == before:
            return


def _round(group: Group, left: dict[str, int], order: list[str], *, repeated: bool, share: int) -> None:
    kind, _, _, items = group
    for index, item in enumerate(items):
        if not any(left.get(name) for name in names_of(item)):
            continue
        if kind == "choice":
            item = _alternative(item)
        if is_group(item):
            _rounds(item, left, order, repeated=repeated, share=share)
        else:
            later = sum(1 for other in items[index + 1 :] for name in names_of(other) if name == item_name(item))
            _take(item, left, order, repeated=repeated, spare=later, share=share)
        if kind == "choice":
            return


def _take(item: Any, left: dict[str, int], order: list[str], *, repeated: bool, spare: int, share: int) -> None:
    name = item_name(item)
    most: int | None = (1 if repeated else None) if isinstance(item, str) else item[2]
    there = left.get(name, 0)
    take = there - spare if spare and there > spare else (1 if spare and there else -(-there // max(share, 1)))
    if most is not None:
        take = min(take, most)
    order.extend([name] * take)
    left[name] = there - take


def _present(item: Any, counts: Mapping[str, int]) -> bool:
    return any(counts.get(name) for name in names_of(item))


def missing(group: Group, counts: Mapping[str, int], only: str = "") -> str | None:
    """Return a text about a required field that has no value, in any group or in those of one kind; None if all have
    one."""
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


class Rounds(list[range]):
    """The rounds of repeated sequences in an order of fields, as places in the order; made by `of`."""

    def __init__(self, order: Sequence[str]) -> None:
        super().__init__()
        self._order = order
        self._at = 0

    @classmethod
    def of(cls, model: Group, order: Sequence[str]) -> Rounds | None:
        """Return the rounds in an order; None if the model, which must be deterministic, does not allow the order."""
        made = cls(order)
        return made if made._group(model, repeated=False) and made._at == len(order) else None

    def _comes(self, names: set[str]) -> bool:
        return self._at < len(self._order) and self._order[self._at] in names

    def _item(self, item: Any, *, repeated: bool) -> bool:
        if is_group(item):
            return self._group(item, repeated=repeated)
        least, most = _bounds(item, repeated=repeated)
        begin, name = self._at, {item_name(item)}
        while (most is None or self._at - begin < most) and self._comes(name):
            self._at += 1
        return self._at - begin >= least

    def _group(self, group: Group, *, repeated: bool) -> bool:
        kind, least, most, items = group
        repeated = repeated or most is None or most > 1
        firsts = set(names_of(group)) if kind == "all" else _firsts(group)
        done = 0
        while (most is None or done < most) and self._comes(firsts):
            begin = self._at
            if not self._round(kind, items, firsts, repeated=repeated):
                return False
            done += 1
            if repeated and kind == "seq":
                self.append(range(begin, self._at))
        return done >= least or _may_be_empty(group)

    def _round(self, kind: str, items: tuple[Any, ...], firsts: set[str], *, repeated: bool) -> bool:
        if kind == "seq":
            return all(self._item(item, repeated=repeated) for item in items)
        if kind == "choice":
            alternative = next(item for item in items if self._comes(_firsts(item)))
            return self._item(_alternative(alternative), repeated=repeated)
        while self._comes(firsts):
            self._at += 1
        return True


class _Search:
    """Enumerates the orders that a content model allows for a set of values."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts
        self._steps = 0
        self.total = sum(counts.values())

    @property
    def is_complete(self) -> bool:
        """Whether no order was left out to save time."""
        return self._steps <= _SEARCH_STEPS

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
