"""What `request` asks for, by stubs or by a WSDL, its replies as they are printed, and what assignments fill:
`meRef=MD=EMS1/ME=NE-7`, `filter.location=Delft` or `filter.baseInstance[1]=MD=EMS1`.

A step of a path is the name of a field, with the place in a list in brackets. Without a place, a value is added to a
list of values, and the fields are those of the first object in a list of objects. What has fields is a shape: a class
of the stubs (`_objects`), or a type of a WSDL (`_wsdl_request`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

from mtosi_jms.errors import ConfigError
from mtosi_jms.service import CallOptions

__all__ = ["PreparedCall", "Reply", "Shape", "Slot", "fill_shape"]


class Reply(NamedTuple):
    """One reply for printing."""

    element: Any
    body: Callable[[], Any]


class PreparedCall(Protocol):
    """An operation with its request. `depth` elements lead from a response to an item of its list; 0: not known."""

    service: str
    operation: str
    depth: int

    def replies(self, options: CallOptions, batch_size: int | None) -> Iterator[Reply | None]:
        """Make the call; None for an operation without reply."""
        ...


_STEP: Final = re.compile(r"([^.\[\]=]+)(?:\[(\d{1,4})\])?")
_HIGHEST: Final = 999


class Slot(Protocol):
    """One field of a shape, which knows it by its `key`."""

    @property
    def key(self) -> str: ...

    @property
    def local(self) -> str: ...

    @property
    def many(self) -> bool: ...

    def shape(self) -> Shape | None:
        """What the field holds, where that has fields itself."""
        ...

    def value(self, text: str, path: str) -> Any:
        """The value of a text. Raises ConfigError: the text does not fit, or no value can be given here."""
        ...


class Shape(Protocol):
    """Something with fields."""

    def slot(self, name: str, path: str) -> Slot:
        """The field of a name. Raises ConfigError: there is none; with a name that resembles it."""
        ...

    def make(self, values: Mapping[str, list[Any]], path: str) -> Any:
        """The object with these values, by key; of a field that is not a list the first one counts. Raises ConfigError:
        something that is required is missing."""
        ...


@dataclass(slots=True)
class _Draft:
    """An object that is being filled. Its `values` are drafts and values by place in the list; a single one has place
    0."""

    shape: Shape
    values: dict[str, dict[int, Any]] = field(default_factory=dict)


def fill_shape(shape: Shape, assignments: Iterable[str]) -> Any:
    """An object with the fields that are assigned.

    Args:
        assignments: `path=value` each. A value is the text that XML would have; a name's is `MD=EMS1/ME=NE-7`.

    Raises:
        ConfigError: an unknown field, a value that does not fit its type, a field assigned twice, or a missing
            required one.
    """
    draft = _Draft(shape)
    for text in assignments:
        path, equals, value = text.partition("=")
        if not equals:
            raise ConfigError(f"{text!r}: must be path=value")
        _assign(draft, path, value)
    return _made(draft, "")


def _assign(draft: _Draft, path: str, value: str) -> None:
    steps = path.split(".")
    for number, step in enumerate(steps):
        found = _STEP.fullmatch(step.strip())
        if found is None:
            raise ConfigError(f"{path!r}: {step!r} is not a step of a path")
        wanted = draft.shape.slot(found[1], path)
        entries = draft.values.setdefault(wanted.key, {})
        place = int(found[2]) if found[2] is not None else None
        if place is not None and not wanted.many and place > 0:
            raise ConfigError(f"{path!r}: {wanted.local} is not a list")
        if number == len(steps) - 1:
            _set(entries, wanted, place, value, path)
            return
        shape = wanted.shape()
        if shape is None:
            raise ConfigError(f"{path!r}: {wanted.local} has no fields")
        draft = entries.setdefault(place or 0, _Draft(shape))
        if not isinstance(draft, _Draft):
            raise ConfigError(f"{path!r}: {wanted.local} already has its value")


def _set(entries: dict[int, Any], wanted: Slot, place: int | None, value: str, path: str) -> None:
    if place is None:
        place = len(entries) if wanted.many else 0
    if place in entries:
        raise ConfigError(f"{path!r}: assigned twice")
    if place > _HIGHEST:
        raise ConfigError(f"{path!r}: a place in a list must be at most {_HIGHEST}")
    entries[place] = wanted.value(value, path)


def _made(draft: Any, path: str) -> Any:
    if not isinstance(draft, _Draft):
        return draft
    values = {
        key: [_made(entries[place], f"{path}.{key}" if path else key) for place in sorted(entries)]
        for key, entries in draft.values.items()
    }
    return draft.shape.make(values, path)
