"""Content models that are more than one sequence of different elements: choices, repeated and nested groups.

A group is `(kind, min, max, items)` with kind `seq`, `choice` or `all` and max None for unbounded. An item is a
nested group, a field name, or `(field name, min, max)` with the occurrence inside one round of its group. A bare name
takes one occurrence a round in a repeated group, and all there are otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Group = tuple[str, int, int | None, tuple[Any, ...]]


def is_group(item: Any) -> bool:
    """Whether an item of a model is a nested group."""
    return isinstance(item, tuple) and len(item) == 4


def item_name(item: Any) -> str:
    """The field that an item names."""
    return item if isinstance(item, str) else str(item[0])


def names_of(item: Any) -> Iterator[str]:
    """The fields below an item, in the order of the model; a field may come more than once."""
    if is_group(item):
        for inner in item[3]:
            yield from names_of(inner)
    else:
        yield item_name(item)


def emission_order(model: Group, counts: Mapping[str, int]) -> list[str]:
    """The order in which values are written: one name for each value.

    Args:
        model: the content model.
        counts: how many values each field has.
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


def model_problem(model: Group, counts: Mapping[str, int]) -> str | None:
    """What the content model objects to in a set of values, None if nothing.

    Args:
        model: the content model.
        counts: how many values each field has.
    """
    placed = emission_order(model, counts)
    for name, count in counts.items():
        if name in set(names_of(model)) and placed.count(name) < count:
            rivals = sorted({other for other in names_of(model) if counts.get(other) and other != name})
            return f"{name} may not stand together with {', '.join(rivals) or 'more of itself'}"
    return _missing(model, counts)


def _present(item: Any, counts: Mapping[str, int]) -> bool:
    return any(counts.get(name) for name in names_of(item))


def _missing(group: Group, counts: Mapping[str, int]) -> str | None:
    kind, least, _, items = group
    if not _present(group, counts) and least == 0:
        return None
    if kind == "choice":
        chosen = [item for item in items if _present(item, counts)]
        if not chosen:
            return None if any(_may_be_empty(item) for item in items) else _needed(items)
        return _missing(chosen[0], counts) if is_group(chosen[0]) else None
    for item in items:
        problem = _missing(item, counts) if is_group(item) else _item_missing(item, counts)
        if problem:
            return problem
    return None


def _item_missing(item: Any, counts: Mapping[str, int]) -> str | None:
    if not isinstance(item, str) and counts.get(item[0], 0) < item[1]:
        return f"{item[0]} is required"
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
