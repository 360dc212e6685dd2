"""An immutable mapping: hashable, picklable, in the order given."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from typing import Any, TypeVar, overload

from mtosi_jms.masking import shown_half_made

K = TypeVar("K")
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class FrozenMap(Mapping[K, V_co]):
    """A mapping that cannot change, for the fields of frozen dataclasses.

    A `MappingProxyType` still changes with its dict, and can be neither hashed nor sent to another process.
    """

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[K, V_co] | Iterable[tuple[K, V_co]] = ()) -> None:
        self._items: dict[K, V_co] = dict(items)

    def __getitem__(self, key: K) -> V_co:
        return self._items[key]

    @overload
    def get(self, key: K, /) -> V_co | None: ...
    @overload
    def get(self, key: K, /, default: V_co | T) -> V_co | T: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        """Return the value of a key, or the default. Faster than `Mapping.get`, which catches a KeyError."""
        return self._items.get(key, default)

    # The methods that Mapping has are slower: they go through the items one by one.

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def keys(self) -> KeysView[K]:
        return self._items.keys()

    def values(self) -> ValuesView[V_co]:
        return self._items.values()

    def items(self) -> ItemsView[K, V_co]:
        return self._items.items()

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._items,)

    @shown_half_made
    def __repr__(self) -> str:
        return repr(self._items)
