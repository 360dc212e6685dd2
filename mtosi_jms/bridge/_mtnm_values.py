"""Turns values of MTNM's events into MTOSI's values, with findings."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, TypeAlias, TypeVar

from mtosi_jms.bridge._mtnm_tables import LAYER_NAMES, LAYER_RATES, STEPS, Choices
from mtosi_jms.bridge.event_json import readable
from mtosi_jms.bridge.events import Any, ObjectReference, TCKind, TypeCode
from mtosi_jms.errors import EventError
from mtosi_jms.stubs.fmw.gen import AnyListType, NameAndStringValueType, NvsList
from mtosi_jms.stubs.fmw.nam import NamingAttributeListType, NamingAttributeType, RelativeDistinguishNameType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.nrb.lay import LayerRateEnumType, LayerRateListType, LayerRateType
from mtosi_jms.xmlbind import XmlEnum, is_text

T = TypeVar("T")


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

    def keep(self, name: str, path: str, value: Any, reason: str) -> None:
        """Put a value into the vendor extensions, and add a finding."""
        self.note(FindingKind.KEPT, path, reason)
        self.kept.extend(self.shown(name, value))

    def shown(self, name: str, value: Any) -> list[tuple[str, str]]:
        """A value as names and texts: a list of names and texts unchanged, anything else as one text."""
        pairs = pairs_of(value)
        if pairs is not None and pairs:
            return [(self.clean(f"{name}.{one}"), self.clean(text)) for one, text in pairs]
        return [(self.clean(name), self.clean(text_of(value)))]

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

    def bare(self, name: str, path: str, value: Any) -> Any:
        """A value without enclosing Anys and aliases. An Any in an Any is a finding, and is kept as it was sent."""
        kind = value.type.kind
        if kind is not TCKind.any and kind is not TCKind.alias and kind is not TCKind.wstring:
            return value
        found, nested = value, 0
        while True:
            plain = found.type.plain
            if plain.kind is not TCKind.any or not isinstance(found.value, Any):
                break
            found, nested = found.value, nested + 1
            if nested > _MOST_LAYERS:
                raise EventError("Anys in each other, more than anyone can mean")
        if nested:
            self.keep(name, path, found, "is an Any in an Any; it was read, and is kept as it was sent")
        if plain.kind is TCKind.wstring and isinstance(found.value, str):
            if not nested:
                self.keep(name, path, found, "is a wide string; it was read, and is kept as it was sent")
            return Any(_STRING, found.value)
        return Any(plain, found.value)

    def text(self, path: str, value: Any) -> str:
        """A text."""
        kind, it = value.type.kind, value.value
        if kind is TCKind.string and isinstance(it, str):
            return self.clean(it, path)
        if isinstance(it, bytes):
            self.note(FindingKind.FORM, path, "is octets, not a string")
            return self.clean(it.decode("latin-1"), path)
        if isinstance(it, (str, bool, int, float, Decimal)):
            self.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not a string")
            return self.clean(text_of(value), path)
        raise EventError(f"is a {kind_name(value.type)}, not a string")

    def boolean(self, path: str, value: Any) -> bool:
        """A boolean."""
        it = value.value
        if isinstance(it, bool):
            return it
        word = it.strip().casefold() if isinstance(it, str) else it if isinstance(it, int) else None
        if word in _TRUTHS:
            self.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not a boolean")
            return _TRUTHS[word]
        raise EventError(f"is not a boolean but {clip(value)}")

    def moment(self, path: str, value: Any) -> dt.datetime | None:
        """A time, `20140725140203.0+0800`; None for an empty one."""
        text = self.text(path, value).strip()
        if not text:
            return None
        if _ISO.fullmatch(text):
            self.note(FindingKind.FORM, path, "is a time of ISO 8601, not of MTNM")
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
            self.note(FindingKind.FORM, path, "has no zone")
        return when

    def choice(self, path: str, value: Any, choices: Choices) -> XmlEnum:
        """A member of an enumeration, by its name, its number, or the boolean that stands for it."""
        it, kind = value.value, value.type.kind
        if isinstance(it, str):
            found = choices.members.get(it)
            if found is None:
                word = it.strip().casefold()
                found = choices.folded.get(word) or choices.folded.get(word.removeprefix(choices.prefix.casefold()))
                if found is not None:
                    self.note(FindingKind.SPELLING, path, f"{it[:40]!r} was read as {found.value}")
                elif word.isdecimal() and len(word) < 4:
                    return self.choice(path, Any(_LONG, int(word)), choices)
            if found is not None:
                if kind is not TCKind.enum and choices.numbered:
                    self.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not an enumeration")
                return found
        elif isinstance(it, bool):
            if choices.boolean is not None:
                self.note(FindingKind.FORM, path, "is a boolean, not an enumeration")
                return choices.boolean[it]
        elif isinstance(it, int) and 0 <= it < len(choices.by_number):
            self.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not an enumeration")
            return choices.by_number[it]
        raise EventError(f"is not of type {choices.name}: {clip(value)}")

    def name(self, path: str, value: Any) -> NamingAttributeType | None:
        """A name; None for an empty one."""
        pairs = pairs_of(value)
        if pairs is None:
            pairs = pairs_of(value, in_anys=True)
            if pairs is None:
                raise EventError(f"is not a name but a {kind_name(value.type)}")
            self.note(FindingKind.FORM, path, "has Anys, not strings")
        if not pairs:
            return None
        return NamingAttributeType(
            rdn=[
                RelativeDistinguishNameType(
                    type=STEPS.get(step) or self._step(path, step), value=self.clean(text, f"{path}.{step}")
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

    def names(self, path: str, value: Any) -> NamingAttributeListType | None:
        """A list of names; None for an empty one."""
        found = [self.name(f"{path}[{at}]", one) for at, one in enumerate(elements(value))]
        there = [one for one in found if one is not None]
        return NamingAttributeListType(name=list(there)) if there else None

    def texts(self, path: str, value: Any) -> list[str]:
        """A list of texts; one text is a list of one."""
        if isinstance(value.value, str):
            self.note(FindingKind.FORM, path, "is one string, not a list")
            return [self.text(path, value)]
        return [self.text(f"{path}[{at}]", one) for at, one in enumerate(elements(value))]

    def pairs(self, path: str, value: Any) -> list[NameAndStringValueType]:
        """A list of names and texts."""
        found = pairs_of(value)
        if found is None:
            raise EventError(f"is not a list of names and texts but a {kind_name(value.type)}")
        return [
            NameAndStringValueType(name=self.clean(name, path), value=self.clean(text, f"{path}.{name}"))
            for name, text in found
        ]

    def rate(self, name: str, path: str, value: Any) -> LayerRateType:
        """A layer rate, by its number or its name. An unknown one becomes VENDOR_EXT, and is kept."""
        it = value.value
        if isinstance(it, str):
            text = it.strip()
            found = LAYER_NAMES.get(text.casefold())
            if found is None and re.fullmatch(r"-?\d{1,9}", text, re.ASCII):
                found = LAYER_RATES.get(int(text))
            if found is not None:
                self.note(FindingKind.FORM, path, f"is a {kind_name(value.type)}, not the number of a layer rate")
        elif isinstance(it, int) and not isinstance(it, bool):
            found, text = LAYER_RATES.get(it), str(it)
        else:
            raise EventError(f"is not a layer rate but {clip(value)}")
        if found is not None:
            return LayerRateType(value=found)
        self.keep(name, path, value, f"MTOSI has no layer rate {text[:40]!r}; it is VENDOR_EXT")
        return LayerRateType(value=LayerRateEnumType.VENDOR_EXT, extension=self.clean(text))

    def rates(self, name: str, path: str, value: Any) -> LayerRateListType | None:
        """A list of layer rates; None for an empty one."""
        found = [self.rate(f"{name}[{at}]", f"{path}[{at}]", one) for at, one in enumerate(elements(value))]
        return LayerRateListType(layer_rate=list(found)) if found else None

    def cause(self, path: str, value: Any) -> ProbableCauseType | None:
        """A probable cause; an unknown one becomes VENDOR_EXT. None for an empty one."""
        text = self.text(path, value).strip()
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
                self.note(FindingKind.SPELLING, path, f"{text[:40]!r} was read as {found.value}")
        elif found.value != text:
            self.note(FindingKind.SPELLING, path, f"{text[:40]!r} was read as {found.value}")
        if found is not None:
            return ProbableCauseType(probable_cause=found, ru=remote, contra=contra)
        self.note(FindingKind.KEPT, path, f"MTOSI has no probable cause {text[:40]!r}; it is VENDOR_EXT")
        return ProbableCauseType(probable_cause=ProbableCauseEnumType.VENDOR_EXT, extension=text)

    def number(self, path: str, value: Any) -> float:
        """A number."""
        it = value.value
        if isinstance(it, str):
            try:
                found = float(it)
            except ValueError:
                raise EventError(f"is not a number: {it[:40]!r}") from None
            self.note(FindingKind.FORM, path, "is a string, not a number")
            return found
        if isinstance(it, (int, float, Decimal)) and not isinstance(it, bool):
            try:
                return float(it)
            except OverflowError:
                raise EventError("is a number that no float holds") from None
        raise EventError(f"is not a number but {clip(value)}")

    def count(self, path: str, value: Any) -> int:
        """A whole number that an unsigned int holds."""
        found = self.number(path, value)
        if not (math.isfinite(found) and found.is_integer() and 0 <= found < 2**32):
            raise EventError(f"is not a whole number from 0 on: {clip(value)}")
        return int(found)

    def extensions(self) -> AnyListType | None:
        """The vendor extensions: names and texts of all kept values; None if there are none."""
        return extensions_of(self.kept)


def extensions_of(kept: list[tuple[str, str]]) -> AnyListType | None:
    """Names and texts as vendor extensions; None for none."""
    if not kept:
        return None
    return AnyListType(any_=[NvsList(nvs=[NameAndStringValueType(name=one, value=text) for one, text in kept])])


Reader: TypeAlias = Callable[[Reading, str, str, Any], object]
"""Reads a property from its name, path and value; None if the field is empty."""

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


def clip(value: Any) -> str:
    """The beginning of a value, for a sentence."""
    text = text_of(value)
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


def elements(value: Any) -> list[Any]:
    """The elements of a sequence or array, each with its type. Raises EventError: neither."""
    plain = value.type.plain
    if plain.kind not in (TCKind.sequence, TCKind.array) or not isinstance(value.value, tuple):
        raise EventError(f"is not a sequence but a {kind_name(value.type)}")
    inner = (plain.content or _ANY).plain
    found = [one if inner.kind is TCKind.any and isinstance(one, Any) else Any(inner, one) for one in value.value]
    return [Any(one.type.plain, one.value) for one in found]


def members(value: Any) -> list[tuple[str, Any]] | None:
    """The members of a struct by name; None for anything else."""
    plain = value.type.plain
    if plain.kind not in (TCKind.struct, TCKind.except_) or not isinstance(value.value, tuple):
        return None
    return [(one.name, Any((one.type or _ANY).plain, it)) for one, it in zip(plain.members, value.value, strict=False)]


def pairs_of(value: Any, *, in_anys: bool = False) -> list[tuple[str, str]] | None:
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


def text_of(value: Any) -> str:
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
