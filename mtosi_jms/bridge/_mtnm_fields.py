"""Maps properties of MTNM's events to fields of MTOSI's notifications, by tables."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from mtosi_jms.bridge._mtnm_tables import OBJECT_TYPES, QUALIFIERS, Choices
from mtosi_jms.bridge._mtnm_values import FindingKind, Reader, Reading, clip, kind_name
from mtosi_jms.bridge.events import Any, TCKind
from mtosi_jms.errors import EventError
from mtosi_jms.stubs.fmw.gen import AliasNameListType, AliasNameListTypeAlias
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType
from mtosi_jms.xmlbind import XmlEnum, XmlObject

NATIVE_NAME: Final = "nativeEMSName"
"""The name of the alias that holds MTNM's native name of an object."""


_LONGEST: Final = 80
"""Most characters of a property's name in a finding."""


class Field(NamedTuple):
    """How a property is read, and the field that it becomes.

    Attributes:
        target: the field of MTOSI's class; a name with `_` in front is for a later step, which makes a field of it.
        needed: whether the event is refused if the value cannot be read.
        strict: whether only a strict reading refuses the event then; else the value is kept, as others are.
    """

    target: str
    read: Reader
    needed: bool = False
    strict: bool = False


_COMMON_SPELLINGS: Final = {"notificatId": "notificationId"}


class Table:
    """The properties of an event or object, by MTNM's names and by other names that are in use."""

    def __init__(self, fields: Mapping[str, Field], spellings: Mapping[str, str] | None = None) -> None:
        self.fields = dict(fields)
        common = {other: name for other, name in _COMMON_SPELLINGS.items() if name in self.fields}
        self.spellings = {**common, **(spellings or {})}
        self._folded = {name.casefold(): name for name in self.fields}
        self._folded.update({other.casefold(): name for other, name in self.spellings.items()})

    def spelled(self, name: str) -> str | None:
        """Return MTNM's name for another spelling of it; None if the table has no such name."""
        return self._folded.get(name.strip().casefold())


def a_text(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.text(path, value) or None


def a_boolean(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.boolean(path, value)


def a_time(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.moment(path, value)


def a_name(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.name(path, value)


def name_list(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.names(path, value)


def one_name(reading: Reading, name: str, path: str, value: Any) -> object:
    found = reading.name(path, value)
    return None if found is None else NamingAttributeListType(name=[found])


def a_rate(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.rate(name, path, value)


def rate_list(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.rates(name, path, value)


def a_number(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.number(path, value)


def a_count(reading: Reading, name: str, path: str, value: Any) -> object:
    return reading.count(path, value)


def native_name(reading: Reading, name: str, path: str, value: Any) -> object:
    found = reading.text(path, value)
    return (
        AliasNameListType(alias=[AliasNameListTypeAlias(alias_name=NATIVE_NAME, alias_value=found)]) if found else None
    )


def object_type(reading: Reading, name: str, path: str, value: Any) -> object:
    it = value.value
    if isinstance(it, str):
        found = OBJECT_TYPES.get(it)
        if found is not None:
            if value.type.kind is not TCKind.enum:
                reading.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not an enumeration")
            return found
        word = it.strip().upper()
        found = _TYPES.get(word)
        if found is not None:
            reading.note(FindingKind.SPELLING, path, f"{it[:40]!r} was read as {found}")
            return found
    elif isinstance(it, int) and not isinstance(it, bool) and 0 <= it < len(_NUMBERED_TYPES):
        reading.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not an enumeration")
        return _NUMBERED_TYPES[it]
    raise EventError(f"is not of type ObjectType_T: {clip(value)}")


_NUMBERED_TYPES: Final = tuple(OBJECT_TYPES.values())
_TYPES: Final = {
    form: kind
    for name, kind in [*QUALIFIERS.items(), *OBJECT_TYPES.items()]
    for form in (name, name.removeprefix("OT_"), kind)
}


def chosen(choices: Choices) -> Reader:
    """Return a reader for a member of an enumeration."""

    def read(reading: Reading, name: str, path: str, value: Any) -> object:
        return None if value.value == "" else reading.choice(path, value, choices)

    return read


def extended(choices: Choices, cls: Callable[..., XmlObject], other: XmlEnum) -> Reader:
    """Return a reader for a member of an enumeration that can be extended."""

    def read(reading: Reading, name: str, path: str, value: Any) -> object:
        if value.value == "":
            return None
        try:
            return cls(value=reading.choice(path, value, choices))
        except EventError:
            if not isinstance(value.value, str):
                raise
        reading.note(FindingKind.KEPT, path, f"MTOSI has no {choices.name} {value.value[:40]!r}; it is {other.value}")
        return cls(value=other, extension=reading.clean(value.value))

    return read


def place_of(path: str, name: str) -> str:
    """The place of a property, for a finding; a long or unprintable name is cut or escaped."""
    return f"{path}.{name}" if len(name) <= _LONGEST and name.isprintable() else f"{path}.{name[:_LONGEST]!r}"


def fields(reading: Reading, path: str, parts: Iterable[tuple[str, Any]], table: Table) -> dict[str, typing.Any]:
    """Return the fields that properties become. Keep the values of properties without a field, except empty lists, and
    values that their field cannot take. Raises EventError: a value that the notification needs cannot be read, or with
    a strict reading a time."""
    found: dict[str, typing.Any] = {}
    known = table.fields
    for name, value in parts:
        here = f"{path}.{name}"
        entry = known.get(name)
        if entry is None:
            here = place_of(path, name)
            real = table.spelled(name)
            if real is None and value.value == ():
                continue
            if real is None:
                reading.keep(name, here, value, "MTOSI has no field for it")
                continue
            entry = known[real]
            reading.note(FindingKind.SPELLING, here, f"was read as {real}")
        if entry.target in found:
            reading.keep(name, here, value, "is there already")
            continue
        try:
            read = entry.read(reading, name, here, reading.bare(name, here, value))
        except EventError as exc:
            if entry.needed or (entry.strict and reading.strict):
                raise EventError(exc.message, here) from None
            reading.keep(name, here, value, exc.message)
            continue
        if read is not None:
            found[entry.target] = read
    return found
