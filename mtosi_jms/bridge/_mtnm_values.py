"""Turns values of MTNM's events into MTOSI's values and fields, by tables, with findings."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import re
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NamedTuple, TypeAlias

from mtosi_jms.bridge._mtnm_tables import LAYER_NAMES, LAYER_RATES, OBJECT_TYPE, STEPS, Choices
from mtosi_jms.bridge.event_json import readable
from mtosi_jms.bridge.events import Any, ObjectReference, TCKind, TypeCode, Value
from mtosi_jms.errors import EventError
from mtosi_jms.stubs.fmw.gen import (
    AliasNameListType,
    AliasNameListTypeAlias,
    AnyListType,
    NameAndStringValueType,
    NvsList,
)
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType, RelativeDistinguishNameType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateType
from mtosi_jms.xmlbind import XmlEnum, XmlObject, is_text


class FindingKind(enum.Enum):
    """The kind of a finding about an event."""

    SPELLING = "spelling"
    """A name in another spelling than MTNM's; it was read as MTNM's name."""
    FORM = "form"
    """A value of another type than MTNM's; it was read."""
    TEXT = "text"
    """Text that was read in another charset, or lost characters that XML does not allow."""
    KEPT = "kept"
    """A value that MTOSI cannot hold; it is in the vendor extensions."""
    FILLED = "filled"
    """A field that MTOSI requires and the event lacks; it was filled."""
    DERIVED = "derived"
    """A field that was derived from another one."""
    REFUSED = "refused"
    """The reason why the event became a VendorNotification, not its own type of notification."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding about an event. `path`: path in the event, as `filterable_data.perceivedSeverity`; empty for the whole
    event."""

    kind: FindingKind
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


_INTEGERS: Final = frozenset(
    {TCKind.short, TCKind.long, TCKind.ushort, TCKind.ulong, TCKind.longlong, TCKind.ulonglong, TCKind.octet}
)
_FLOATS: Final = frozenset({TCKind.float, TCKind.double, TCKind.longdouble, TCKind.fixed})
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_TIME: Final = re.compile(r"(\d{14})(?:[.,](\d+))?\s*(Z|[+-]\d{2}(?::?\d{2})?)?", re.ASCII)
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\s*(?:Z|[+-]\d{2}(?::?\d{2})?)?", re.ASCII)
_FOLDED_STEPS: Final = {name.casefold(): kind for name, kind in STEPS.items()}
_CAUSES: Final = {cause.value.casefold(): cause for cause in ProbableCauseEnumType}
_FURTHEST: Final = dt.timedelta(hours=14)
_MOST_LAYERS: Final = 8
_LONGEST: Final = 80
"""Most characters of a property's name in a finding."""
NATIVE_NAME: Final = "nativeEMSName"
"""The name of the alias that holds MTNM's native name of an object."""


@dataclass(slots=True)
class Item:
    """A value of an event, with its type, its name and the path of what it is in."""

    parent: str
    name: str
    type: TypeCode
    value: Value

    @property
    def path(self) -> str:
        """Its place, for findings; a long or unprintable name is cut or escaped."""
        name = self.name if len(self.name) <= _LONGEST and self.name.isprintable() else repr(self.name[:_LONGEST])
        return f"{self.parent}.{name}" if self.parent else name

    def holding(self, type: TypeCode, value: Value) -> Item:
        """What has the same name and path, with another value."""
        return Item(self.parent, self.name, type, value)


@dataclass(slots=True)
class Reading:
    """The reading of one event. A method that cannot read its value raises an EventError. `charset`: charset of texts
    that are not ASCII; None: UTF-8 if a text is valid UTF-8, else as it is. `strict`: whether a time that cannot be
    read refuses the event."""

    charset: str | None = None
    findings: list[Finding] = field(default_factory=list)
    kept: list[tuple[str, str]] = field(default_factory=list)
    strict: bool = False

    def note(self, kind: FindingKind, path: str, text: str) -> None:
        self.findings.append(Finding(kind, path, text))

    def keep(self, item: Item, reason: str) -> None:
        """Put a value into the vendor extensions, and add a finding."""
        self.note(FindingKind.KEPT, item.path, reason)
        self.kept.extend(self.shown(item))

    def shown(self, item: Item) -> list[tuple[str, str]]:
        """A value as names and texts: a list of names and texts unchanged, anything else as one text."""
        if pairs := pairs_of(item):
            return [(self.clean(f"{item.name}.{one}"), self.clean(text)) for one, text in pairs]
        return [(self.clean(item.name), self.clean(text_of(item)))]

    def clean(self, text: str, path: str = "") -> str:
        """Text in the right charset, without characters that XML forbids."""
        if text.isascii():
            return text if is_text(text) else self._allowed(text, path)
        read = self._decoded(text, path)
        return read if is_text(read) else self._allowed(read, path)

    def _allowed(self, text: str, path: str) -> str:
        if path:
            self.note(FindingKind.TEXT, path, "has characters that XML does not allow; U+FFFD stands for them")
        return _FORBIDDEN.sub("\ufffd", text)

    def _decoded(self, text: str, path: str) -> str:
        """Decode a text again from its Latin-1 bytes in the right charset: ORBs read any charset as Latin-1."""
        try:
            read = text.encode("latin-1").decode(self.charset or "utf-8")
        except UnicodeDecodeError:
            if path and self.charset:
                self.note(FindingKind.TEXT, path, f"is not {self.charset}; it was read as Latin-1")
            return text
        except UnicodeEncodeError:
            return text
        if path and read != text:
            self.note(FindingKind.TEXT, path, f"is {self.charset or 'UTF-8'}")
        return read

    def bare(self, item: Item) -> Item:
        """A value without enclosing Anys and aliases. An Any in an Any is a finding, and is kept as it was sent."""
        kind = item.type.kind
        if kind is not TCKind.any and kind is not TCKind.alias and kind is not TCKind.wstring:
            return item
        found, nested = item, 0
        while True:
            plain = found.type.plain
            if plain.kind is not TCKind.any or not isinstance(found.value, Any):
                break
            found, nested = item.holding(found.value.type, found.value.value), nested + 1
            if nested > _MOST_LAYERS:
                raise EventError("Anys in each other, more than anyone can mean")
        if nested:
            self.keep(found, "is an Any in an Any; it was read, and is kept as it was sent")
        if plain.kind is TCKind.wstring and isinstance(found.value, str):
            if not nested:
                self.keep(found, "is a wide string; it was read, and is kept as it was sent")
            plain = _STRING
        return item.holding(plain, found.value)

    def text(self, item: Item) -> str:
        """A text."""
        kind, it = item.type.kind, item.value
        if kind is TCKind.string and isinstance(it, str):
            return it if it.isascii() and is_text(it) else self.clean(it, item.path)
        if isinstance(it, bytes):
            self.note(FindingKind.FORM, item.path, "is octets, not a string")
            return self.clean(it.decode("latin-1"), item.path)
        if isinstance(it, (str, bool, int, float, Decimal)):
            self.note(FindingKind.FORM, item.path, f"is a {kind_name(item.type)}, not a string")
            return self.clean(text_of(item), item.path)
        raise EventError(f"is a {kind_name(item.type)}, not a string")

    def boolean(self, item: Item) -> bool:
        """A boolean."""
        it = item.value
        if isinstance(it, bool):
            return it
        word = it.strip().casefold() if isinstance(it, str) else it if isinstance(it, int) else None
        if word in _TRUTHS:
            self.note(FindingKind.FORM, item.path, f"is a {kind_name(item.type)}, not a boolean")
            return _TRUTHS[word]
        raise EventError(f"is not a boolean but {clip(item)}")

    def moment(self, item: Item) -> dt.datetime | None:
        """A time, `20140725140203.0+0800`; None for an empty one."""
        text = self.text(item).strip()
        if not text:
            return None
        if _ISO.fullmatch(text):
            self.note(FindingKind.FORM, item.path, "is a time of ISO 8601, not of MTNM")
            text = re.sub(r"[-: T]", "", text[:19]) + text[19:]
        found = _TIME.fullmatch(text)
        if found is None:
            raise EventError(f"is not a time: {text[:40]!r}")
        digits, fraction, zone = found.groups()
        try:
            when = dt.datetime(
                int(digits[:4]),
                int(digits[4:6]),
                int(digits[6:8]),
                int(digits[8:10]),
                int(digits[10:12]),
                int(digits[12:]),
                int((fraction or "0")[:6].ljust(6, "0")),
                _zone(zone),
            )
        except ValueError:
            raise EventError(f"is not a time: {text[:40]!r}") from None
        if zone is None:
            self.note(FindingKind.FORM, item.path, "has no zone")
        return when

    def choice(self, item: Item, choices: Choices) -> XmlEnum:
        """A member of an enumeration, by its name, its number, or the boolean that stands for it."""
        it, kind = item.value, item.type.kind
        if isinstance(it, str):
            found = choices.members.get(it)
            if found is None:
                word = it.strip().casefold()
                found = choices.folded.get(word) or choices.folded.get(word.removeprefix(choices.prefix.casefold()))
                if found is not None:
                    self.note(FindingKind.SPELLING, item.path, f"{it[:40]!r} was read as {found.value}")
                elif word.isdecimal() and len(word) < 4:
                    return self.choice(item.holding(_LONG, int(word)), choices)
            if found is not None:
                if kind is not TCKind.enum and choices.numbered:
                    self.note(FindingKind.FORM, item.path, f"is a {kind_name(item.type)}, not an enumeration")
                return found
        elif isinstance(it, bool):
            if choices.boolean is not None:
                self.note(FindingKind.FORM, item.path, "is a boolean, not an enumeration")
                return choices.boolean[it]
        elif isinstance(it, int) and 0 <= it < len(choices.by_number):
            self.note(FindingKind.FORM, item.path, f"is a {kind_name(item.type)}, not an enumeration")
            return choices.by_number[it]
        raise EventError(f"is not of type {choices.name}: {clip(item)}")

    def name(self, item: Item) -> NamingAttributeType | None:
        """A name; None for an empty one."""
        pairs = pairs_of(item)
        if pairs is None:
            pairs = pairs_of(item, in_anys=True)
            if pairs is None:
                raise EventError(f"is not a name but a {kind_name(item.type)}")
            self.note(FindingKind.FORM, item.path, "has Anys, not strings")
        if not pairs:
            return None
        return NamingAttributeType(
            rdn=[
                RelativeDistinguishNameType(
                    type=STEPS.get(step) or self._step(item.path, step), value=self.clean(text, f"{item.path}.{step}")
                )
                for step, text in pairs
            ]
        )

    def _step(self, path: str, step: str) -> str:
        found = _FOLDED_STEPS.get(step.strip().casefold())
        if found is not None:
            self.note(FindingKind.SPELLING, path, f"{step[:40]!r} was read as {found}")
            return found
        self.note(FindingKind.SPELLING, path, f"MTOSI has no {step[:40]!r} in names; it stays")
        return self.clean(step, path)

    def names(self, item: Item) -> list[NamingAttributeType]:
        """A list of names, without empty ones."""
        found = [self.name(one) for one in elements(item)]
        return [one for one in found if one is not None]

    def texts(self, item: Item) -> list[str]:
        """A list of texts; one text is a list of one."""
        if isinstance(item.value, str):
            self.note(FindingKind.FORM, item.path, "is one string, not a list")
            return [self.text(item)]
        return [self.text(one) for one in elements(item)]

    def pairs(self, item: Item) -> list[NameAndStringValueType]:
        """A list of names and texts."""
        found = pairs_of(item)
        if found is None:
            raise EventError(f"is not a list of names and texts but a {kind_name(item.type)}")
        return [
            NameAndStringValueType(name=self.clean(name, item.path), value=self.clean(text, f"{item.path}.{name}"))
            for name, text in found
        ]

    def rate(self, item: Item) -> LayerRateType:
        """A layer rate, by its number or its name. An unknown one becomes VENDOR_EXT, and is kept."""
        it = item.value
        if isinstance(it, str):
            text = it.strip()
            found = LAYER_NAMES.get(text.casefold())
            if found is None and re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
                found = LAYER_RATES.get(int(text))
            if found is not None:
                self.note(FindingKind.FORM, item.path, f"is a {kind_name(item.type)}, not the number of a layer rate")
        elif isinstance(it, int) and not isinstance(it, bool):
            found, text = LAYER_RATES.get(it), str(it)
        else:
            raise EventError(f"is not a layer rate but {clip(item)}")
        if found is not None:
            return LayerRateType(value=found)
        self.keep(item, f"MTOSI has no layer rate {text[:40]!r}; it is VENDOR_EXT")
        return LayerRateType(value=LayerRateEnumType.VENDOR_EXT, extension=self.clean(text))

    def rates(self, item: Item) -> list[LayerRateType]:
        """A list of layer rates."""
        return [self.rate(one) for one in elements(item)]

    def cause(self, item: Item) -> ProbableCauseType | None:
        """A probable cause; an unknown one becomes VENDOR_EXT. None for an empty one."""
        text = self.text(item).strip()
        if not text:
            return None
        found, remote, contra = _CAUSES.get(text.casefold()), None, None
        if found is None:
            rest = text
            for _ in range(2):
                if rest[:3].casefold() == "ru_":
                    rest, remote = rest[3:], True
                elif rest[:7].casefold() == "contra_":
                    rest, contra = rest[7:], True
            found = _CAUSES.get(rest.casefold()) or _CAUSES.get(rest.replace("_", "-").casefold())
            if found is not None:
                self.note(FindingKind.SPELLING, item.path, f"{text[:40]!r} was read as {found.value}")
        elif found.value != text:
            self.note(FindingKind.SPELLING, item.path, f"{text[:40]!r} was read as {found.value}")
        if found is not None:
            return ProbableCauseType(probable_cause=found, ru=remote, contra=contra)
        self.note(FindingKind.KEPT, item.path, f"MTOSI has no probable cause {text[:40]!r}; it is VENDOR_EXT")
        return ProbableCauseType(probable_cause=ProbableCauseEnumType.VENDOR_EXT, extension=text)

    def number(self, item: Item) -> float:
        """A number."""
        it = item.value
        if isinstance(it, str):
            try:
                found = float(it)
            except ValueError:
                raise EventError(f"is not a number: {it[:40]!r}") from None
            self.note(FindingKind.FORM, item.path, "is a string, not a number")
            return found
        if isinstance(it, (int, float, Decimal)) and not isinstance(it, bool):
            try:
                return float(it)
            except OverflowError:
                raise EventError("is a number that no float holds") from None
        raise EventError(f"is not a number but {clip(item)}")

    def count(self, item: Item) -> int:
        """A whole number that an unsigned int holds."""
        found = self.number(item)
        if not (math.isfinite(found) and found.is_integer() and 0 <= found < 2**32):
            raise EventError(f"is not a whole number from 0 on: {clip(item)}")
        return int(found)

    def extensions(self) -> AnyListType | None:
        """The vendor extensions: names and texts of all kept values; None if there are none."""
        if not self.kept:
            return None
        return AnyListType(
            any_=[NvsList(nvs=[NameAndStringValueType(name=one, value=text) for one, text in self.kept])]
        )


_TRUTHS: Final[Mapping[object, bool]] = {"true": True, "false": False, "1": True, "0": False, 1: True, 0: False}
_STRING: Final = TypeCode.of(TCKind.string)
_LONG: Final = TypeCode.of(TCKind.long)
_ANY: Final = TypeCode.of(TCKind.any)
_zones: Final[dict[str, dt.timezone]] = {"Z": dt.UTC}


def _zone(text: str | None) -> dt.timezone | None:
    """The zone of a time; ValueError for one that XML Schema does not have."""
    if text is None:
        return None
    found = _zones.get(text)
    if found is None:
        away = dt.timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(":") or "0"))
        if away > _FURTHEST or int(text[3:].lstrip(":") or "0") > 59:
            raise ValueError("no zone")
        found = dt.timezone(-away if text[0] == "-" else away)
        if len(_zones) < 200:
            _zones[text] = found
    return found


def kind_name(kind: TypeCode) -> str:
    """Return the name of a type, or that of its kind if it has none."""
    plain = kind.plain
    return plain.name or plain.kind.name.rstrip("_")


def clip(value: Any | Item) -> str:
    """The beginning of a value, for a sentence."""
    text = text_of(value)
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def elements(item: Item) -> list[Item]:
    """The elements of a sequence or array, each with its type. Raises EventError: neither."""
    plain = item.type.plain
    if plain.kind not in (TCKind.sequence, TCKind.array) or not isinstance(item.value, tuple):
        raise EventError(f"is not a sequence but a {kind_name(item.type)}")
    inner = (plain.content or _ANY).plain
    found = [one if inner.kind is TCKind.any and isinstance(one, Any) else Any(inner, one) for one in item.value]
    return [Item(item.parent, f"{item.name}[{at}]", one.type.plain, one.value) for at, one in enumerate(found)]


def members(item: Item, count: int | None = None) -> list[Item] | None:
    """The members of a struct; None for anything else, or for another number of members than `count`."""
    plain = item.type.plain
    if plain.kind not in (TCKind.struct, TCKind.except_) or not isinstance(item.value, tuple):
        return None
    if count not in (None, len(item.value)):
        return None
    return [
        Item(item.path, one.name, (one.type or _ANY).plain, it)
        for one, it in zip(plain.members, item.value, strict=False)
    ]


def pairs_of(value: Item, *, in_anys: bool = False) -> list[tuple[str, str]] | None:
    """The names and texts of a sequence of structs of two strings; with `in_anys` of properties whose values are
    strings. None for anything else."""
    plain, it = value.type.plain, value.value
    if plain.kind is not TCKind.sequence or not isinstance(it, tuple):
        return None
    inner = (plain.content or _ANY).plain
    if not in_anys and (inner.kind is not TCKind.struct or len(inner.members) != 2):
        return None
    found: list[tuple[str, str]] = []
    for one in it:
        match one:
            case (str(name), str(text)) if not in_anys:
                found.append((name, text))
            case (str(name), Any(value=str(text))) if in_anys:
                found.append((name, text))
            case _:
                return None
    return found


def text_of(value: Any | Item) -> str:
    """A value as text: a plain one as such, anything else as JSON with the names that its type has."""
    it = value.value
    if isinstance(it, str):
        return it
    if isinstance(it, bool):
        return "true" if it else "false"
    if isinstance(it, (int, float, Decimal)):
        return str(it)
    if it is None:
        return ""
    if isinstance(it, bytes):
        return it.hex()
    if isinstance(it, ObjectReference):
        return it.ior
    return json.dumps(readable(value.type, it), ensure_ascii=False, separators=(",", ":"))


Reader: TypeAlias = Callable[[Reading, Item], object]
"""Reads a property; None if the field is empty."""


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


def a_text(reading: Reading, item: Item) -> str | None:
    return reading.text(item) or None


def listed(read: Callable[[Reading, Item], Sequence[object]], cls: Callable[..., object], field: str) -> Reader:
    """Return a reader for a list that becomes the one field of a class; None for an empty list."""

    def reader(reading: Reading, item: Item) -> object:
        found = read(reading, item)
        return cls(**{field: found}) if found else None

    return reader


name_list: Final = listed(Reading.names, NamingAttributeListType, "name")


def native_name(reading: Reading, item: Item) -> object:
    if found := reading.text(item):
        return AliasNameListType(alias=[AliasNameListTypeAlias(alias_name=NATIVE_NAME, alias_value=found)])
    return None


def object_type(reading: Reading, item: Item) -> str:
    return reading.choice(item, OBJECT_TYPE).value


def chosen(choices: Choices) -> Reader:
    """Return a reader for a member of an enumeration."""

    def read(reading: Reading, item: Item) -> object:
        return None if item.value == "" else reading.choice(item, choices)

    return read


def extended(choices: Choices, cls: Callable[..., XmlObject], other: XmlEnum) -> Reader:
    """Return a reader for a member of an enumeration that can be extended."""

    def read(reading: Reading, item: Item) -> object:
        if item.value == "":
            return None
        try:
            return cls(value=reading.choice(item, choices))
        except EventError:
            if not isinstance(item.value, str):
                raise
        reading.note(
            FindingKind.KEPT, item.path, f"MTOSI has no {choices.name} {item.value[:40]!r}; it is {other.value}"
        )
        return cls(value=other, extension=reading.clean(item.value))

    return read


def fields(reading: Reading, items: Iterable[Item], table: Table) -> dict[str, typing.Any]:
    """Return the fields that properties become. Keep the values of properties without a field, except empty lists, and
    values that their field cannot take. Raises EventError: a value that the notification needs cannot be read, or with
    a strict reading a time."""
    found: dict[str, typing.Any] = {}
    known = table.fields
    for item in items:
        entry = known.get(item.name)
        if entry is None:
            real = table.spelled(item.name)
            if real is None and item.value == ():
                continue
            if real is None:
                reading.keep(item, "MTOSI has no field for it")
                continue
            entry = known[real]
            reading.note(FindingKind.SPELLING, item.path, f"was read as {real}")
        if entry.target in found:
            reading.keep(item, "is there already")
            continue
        try:
            read = entry.read(reading, reading.bare(item))
        except EventError as exc:
            if entry.needed or (entry.strict and reading.strict):
                raise EventError(exc.message, item.path) from None
            reading.keep(item, exc.message)
            continue
        if read is not None:
            found[entry.target] = read
    return found
