"""CDR, the encoding of CORBA values on the wire (GIOP 1.2): structured events and Anys to bytes and back.

Texts are UTF-8 and UTF-16. A peer's bytes are checked only here. Refused are values that are nested deeper than
`mtosi_jms.bridge.events.DEPTH`, refer to themselves, claim a greater length than they have, or would become an object
of the ORB's language. No memory is allocated for them: an EventError says what was refused, and where.
"""

from __future__ import annotations

import contextlib
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeVar

from mtosi_jms.bridge.events import (
    DEPTH,
    Any,
    Member,
    ObjectReference,
    Property,
    RefusedEvent,
    StructuredEvent,
    TCKind,
    TypeCode,
    Union,
    Value,
)
from mtosi_jms.errors import EventError

__all__ = [
    "addresses_of",
    "code_set_of",
    "decode_any",
    "decode_events",
    "decode_properties",
    "decode_readable",
    "decode_request",
    "decode_typecode",
    "encode_any",
    "encode_events",
    "encode_properties",
    "encode_typecode",
]

K = TCKind
T = TypeVar("T")
_KINDS: Final = {kind.value: kind for kind in TCKind}
_SIMPLE: Final = {
    K.short: "h", K.long: "i", K.ushort: "H", K.ulong: "I", K.longlong: "q", K.ulonglong: "Q", K.float: "f",
    K.double: "d", K.octet: "B",
}  # fmt: skip
_SIZES: Final = {code: struct.calcsize(f">{code}") for code in _SIMPLE.values()}
_BIG: Final = {code: struct.Struct(f">{code}") for code in _SIMPLE.values()}
_LITTLE: Final = {code: struct.Struct(f"<{code}") for code in _SIMPLE.values()}
_REFUSED: Final = frozenset({K.principal, K.value, K.valuebox, K.native, K.abstract_interface})
_INDIRECTION: Final = 0xFFFFFFFF
_REFERS: Final = b"\xff\xff\xff\xff"
_KEPT: Final = 4_096
"""Most bytes of a TypeCode that is cached."""
_EMPTY: Final = 65_536
"""How many more values than bytes may be read: values of some types, such as null, have no bytes."""
UTF_8: Final = "utf-8"
_IIOP: Final = 0
_CODE_SETS: Final = 1
_COMPONENTS: Final = 1
_ALTERNATE: Final = 3
_MOST_DIGITS: Final = 31
_GIOP_HEADER: Final = 12
_FRAGMENTED: Final = 2
_QUAD_BIAS: Final = 16383
_QUAD_FRACTION: Final = 112


def encode_events(events: Sequence[StructuredEvent], charset: str = UTF_8) -> bytes:
    """Encode events as a `CosNotification::EventBatch` in big-endian CDR. `charset`: charset of the texts that are not
    wide. Raises EventError: a value does not match its type, or the type cannot be encoded; with the path."""
    out = _Writer(charset)
    out.ulong(len(events))
    for event in events:
        out.event(event)
    return bytes(out.data)


def decode_events(data: bytes, charset: str = UTF_8) -> list[StructuredEvent]:
    """Decode the events of a `CosNotification::EventBatch` in big-endian CDR. `charset`: charset of the texts that are
    not wide. Raises EventError: the bytes are not events, or are refused (see the module)."""
    return _decoded(_Reader(data, charset), lambda reader: [reader.event() for _ in range(reader.count())])


@contextlib.contextmanager
def _bounded(what: str) -> Iterator[None]:
    try:
        yield
    except struct.error:
        raise EventError(f"{what} early") from None


def _decoded(reader: _Reader, read: Callable[[_Reader], T], *, has_order: bool = False) -> T:
    """Read all that a reader has; `has_order`: it is an encapsulation, which begins with its byte order."""
    with _bounded("the bytes end"):
        if has_order:
            reader.byte_order()
        found = read(reader)
    reader.end()
    return found


def decode_readable(data: bytes, charset: str = UTF_8) -> list[StructuredEvent]:
    """As `decode_events`, but at the first undecodable event it stops, with a `RefusedEvent`."""
    return _readable(_Reader(data, charset), grouped=True)


def decode_request(
    message: bytes, at: int, charset: str = UTF_8, *, grouped: bool, keep_refused: bool = False
) -> list[StructuredEvent]:
    """Decode the events of a GIOP push request.

    Args:
        message: the request from its first byte; bytes after it are ignored.
        at: where its arguments begin.
        grouped: whether the request pushes a sequence.
        keep_refused: whether to stop at the first undecodable event, with a `RefusedEvent`.

    Raises:
        EventError: an event cannot be decoded, and `keep_refused` is not set.
    """
    little = bool(message[6] & 1)
    if not message[6] & _FRAGMENTED:
        message = message[: _GIOP_HEADER + int.from_bytes(message[8:_GIOP_HEADER], "little" if little else "big")]
    found = _readable(_Reader(message, charset, little=little, at=at), grouped=grouped)
    if found and isinstance(found[-1], RefusedEvent) and not keep_refused:
        raise found[-1].error
    return found


def _readable(reader: _Reader, *, grouped: bool) -> list[StructuredEvent]:
    found: list[StructuredEvent] = []
    count = 1
    while len(found) < count:
        names: list[str] = []
        header: list[Property] = []
        data: list[Property] = []
        try:
            if grouped and not found:
                count = reader.count()
            names.extend(reader.string() for _ in range(3))
            for part in (header, data):
                part.extend(reader.property() for _ in range(reader.count(9)))
            found.append(StructuredEvent(*_three(names), tuple(header), tuple(data), reader.body()))
        except (EventError, struct.error) as error:
            refused = error if isinstance(error, EventError) else EventError("the bytes end early")
            if left := count - len(found) - 1:
                refused = EventError(f"{refused}; so {left} events after it cannot be found")
            found.append(RefusedEvent(*_three(names), tuple(header), tuple(data), error=refused))
            return found
    return found


def _three(names: list[str]) -> tuple[str, str, str]:
    first, second, third = [*names, "", "", ""][:3]
    return first, second, third


def encode_properties(properties: Sequence[Property]) -> bytes:
    """Encode properties as a `CosNotification::PropertySeq` in big-endian CDR."""
    out = _Writer()
    out.properties(properties)
    return bytes(out.data)


def decode_properties(data: bytes) -> tuple[Property, ...]:
    """Decode the properties of a `CosNotification::PropertySeq` in big-endian CDR."""
    return _decoded(_Reader(data), _Reader.properties)


def encode_any(any: Any) -> bytes:
    """Encode an Any as an encapsulation: an octet for the byte order, then its TypeCode and its value."""
    out = _Writer(encapsulates=True)
    out.any(any, 0)
    return bytes(out.data)


def decode_any(data: bytes) -> Any:
    """Decode the Any of an encapsulation."""
    return _decoded(_Reader(data), lambda reader: reader.any(0), has_order=True)


def encode_typecode(type: TypeCode) -> bytes:
    """Encode a TypeCode as an encapsulation."""
    out = _Writer(encapsulates=True)
    out.typecode(type)
    return bytes(out.data)


def decode_typecode(data: bytes) -> TypeCode:
    """Decode the TypeCode of an encapsulation."""
    return _decoded(_Reader(data), lambda reader: reader.typecode(0), has_order=True)


def addresses_of(ior: str) -> list[tuple[str, int]]:
    """Hosts and ports to which an ORB may connect for a reference, including alternate addresses. Raises EventError:
    this is not a reference, or it has a profile other than IIOP, whose address cannot be read."""
    found: list[tuple[str, int]] = []
    with _bounded("the reference ends"):
        for address, components in _profiles(ior):
            found.append(address)
            found += [(other.string(), other.number("H")) for tag, other in components if tag == _ALTERNATE]
    return found


def code_set_of(ior: str) -> int | None:
    """The charset of texts that a reference states, as its number in OSF's registry; None if it states none."""
    with _bounded("the reference ends"):
        found = (reader.number("I") for _, parts in _profiles(ior) for tag, reader in parts if tag == _CODE_SETS)
        return next(found, None)


def _profiles(ior: str) -> list[tuple[tuple[str, int], list[tuple[int, _Reader]]]]:
    """The address of each profile, and its components, each with a reader at its first field."""
    found = []
    for tag, data in _reference(ior)[1]:
        if tag not in (_COMPONENTS, _IIOP):
            raise EventError(f"the reference has a profile of kind {tag}, which is not IIOP")
        if tag == _IIOP:
            found.append(_iiop(data))
    return found


def _iiop(data: bytes) -> tuple[tuple[str, int], list[tuple[int, _Reader]]]:
    reader = _Reader(data)
    reader.byte_order()
    _, minor = reader.number("B"), reader.number("B")
    address = (reader.string(), reader.number("H"))
    reader.octets()  # the object's key
    components = []
    for _ in range(reader.count(8) if minor > 0 else 0):
        tag, inner = reader.number("I"), _Reader(reader.octets())
        if tag in (_ALTERNATE, _CODE_SETS):
            inner.byte_order()
        components.append((tag, inner))
    return address, components


def _reference(ior: str) -> tuple[str, list[tuple[int, bytes]]]:
    """The type of a reference, and its profiles."""
    try:
        if ior[:4].upper() != "IOR:":
            raise ValueError
        reader = _Reader(bytes.fromhex(ior[4:].strip()))
    except ValueError:
        raise EventError("no object reference: it is not IOR: and hexadecimal digits") from None
    with _bounded("the reference ends"):
        reader.byte_order()
        return reader.ior()


class _Writer:
    """Writes big-endian CDR; positions count from the beginning of `data`."""

    __slots__ = ("_charset", "data")

    def __init__(self, charset: str = UTF_8, *, encapsulates: bool = False) -> None:
        self.data = bytearray(1 if encapsulates else 0)
        self._charset = charset

    def align(self, size: int) -> None:
        if rest := len(self.data) % size:
            self.data += b"\0" * (size - rest)

    def ulong(self, number: int) -> None:
        self.align(4)
        self.data += number.to_bytes(4, "big")

    def number(self, code: str, number: object) -> None:
        self.align(_SIZES[code])
        try:
            self.data += _BIG[code].pack(number)
        except (struct.error, OverflowError):
            raise EventError(f"{_shown(number)} does not fit its type") from None

    def string(self, text: object) -> None:
        text = _as(text, str, "text")
        try:
            raw = text.encode(self._charset)
        except UnicodeEncodeError as error:
            raise EventError(f"{_shown(text[error.start])} is not a character of {self._charset}") from None
        if b"\0" in raw:
            raise EventError("a string holds the character NUL, which CORBA ends strings with")
        self.ulong(len(raw) + 1)
        self.data += raw
        self.data.append(0)

    def octets(self, data: bytes | bytearray) -> None:
        self.ulong(len(data))
        self.data += data

    def ior(self, type_id: str, profiles: Sequence[tuple[int, bytes]]) -> None:
        self.string(type_id)
        self.ulong(len(profiles))
        for tag, data in profiles:
            self.ulong(tag)
            self.octets(data)

    def event(self, event: StructuredEvent) -> None:
        for text in (event.domain_name, event.type_name, event.event_name):
            self.string(text)
        self.properties(event.variable_header)
        self.properties(event.filterable_data)
        try:
            self.any(event.remainder_of_body, 0)
        except EventError as error:
            raise error.inside("remainder_of_body") from None

    def properties(self, properties: Sequence[Property]) -> None:
        self.ulong(len(properties))
        for one in properties:
            self.string(one.name)
            try:
                self.any(one.value, 0)
            except EventError as error:
                raise error.inside(one.name) from None

    def any(self, given: object, depth: int) -> None:
        one = _as(given, Any, "an Any")
        self.typecode(one.type)
        self.value(one.type, one.value, depth + 1)

    def typecode(self, one: TypeCode) -> None:
        kind = one.kind
        if kind in _REFUSED:
            raise _refusal(kind)
        self.ulong(kind.value)
        if kind in (K.string, K.wstring):
            self.ulong(one.length)
        elif kind is K.fixed:
            self.number("H", one.digits)
            self.number("h", one.scale)
        elif kind in _WITH_PARTS:
            self.octets(_parts(one, self._charset))

    def value(self, one: TypeCode, value: Value, depth: int) -> None:
        if depth > DEPTH:
            raise EventError(f"a value is nested deeper than {DEPTH}")
        kind = one.kind
        code = _SIMPLE.get(kind)
        if code is not None:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise EventError(f"{_shown(value)} is not of type {kind.name}")
            self.number(code, value)
        elif kind in _WRITERS:
            _WRITERS[kind](self, one, value, depth)
        else:
            raise _refusal(kind)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _as(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise EventError(f"{_shown(value)} is not {what}")
    return value


def _refusal(kind: TCKind) -> EventError:
    return EventError(f"a value of kind {kind.name} is refused: no code and no object is made out of bytes")


def _need(one: TypeCode | None) -> TypeCode:
    if one is None:
        raise EventError("a TypeCode lacks the type of its content")
    return one


_BOUNDED: Final = frozenset({K.sequence, K.array})
_WITH_MEMBERS: Final = frozenset({K.struct, K.except_, K.union, K.enum})
_WITH_PARTS: Final = _BOUNDED | _WITH_MEMBERS | {K.alias, K.objref}
"""Kinds whose parameters are an encapsulation."""


@lru_cache(1_024)
def _parts(one: TypeCode, charset: str) -> bytes:
    """The encapsulation after the kind of a TypeCode; it does not depend on its position. `_Reader.parameters` is its
    counterpart."""
    out, kind = _Writer(charset, encapsulates=True), one.kind
    if kind not in _BOUNDED:
        out.string(one.repository_id)
        out.string(one.name)
    discriminator = _need(one.discriminator) if kind is K.union else None
    if discriminator is not None:
        out.typecode(discriminator)
        out.number("i", one.default_index)
    if kind in _WITH_MEMBERS:
        out.ulong(len(one.members))
    for index, member in enumerate(one.members):
        if discriminator is not None and index == one.default_index:
            out.data.append(0)
        elif discriminator is not None:
            out.value(discriminator.plain, member.label, 0)
        out.string(member.name)
        if kind is not K.enum:
            out.typecode(_need(member.type))
    if kind is K.alias or kind in _BOUNDED:
        out.typecode(_need(one.content))
    if kind in _BOUNDED:
        out.ulong(one.length)
    return bytes(out.data)


def _write_nothing(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    if value is not None:
        raise EventError(f"{_shown(value)} is not of type {one.kind.name}")


def _write_char(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    if not isinstance(value, str) or len(value) != 1 or value > "\xff":
        raise EventError(f"{_shown(value)} is not a char: one character of Latin-1")
    out.data.append(ord(value))


def _utf16(text: Value) -> bytes:
    return _as(text, str, "text").encode("utf-16-be", "surrogatepass")


def _write_wchar(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    raw = _utf16(value)
    if len(raw) != 2:
        raise EventError(f"{_shown(value)} is not a wchar: one character of Unicode's basic plane")
    out.data.append(2)
    out.data += raw


def _check_bound(one: TypeCode, length: int) -> None:
    if one.length and length > one.length:
        raise EventError(f"{length} elements or characters are more than its bound, {one.length}")


def _write_string(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    out.string(value)
    if isinstance(value, str):
        _check_bound(one, len(value))


def _write_wstring(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    raw = _utf16(value)
    _check_bound(one, len(raw) // 2)
    out.octets(raw)


def _write_reference(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    found = _as(value, ObjectReference, "an object reference")
    out.ior(*_reference(found.ior)) if found.ior else out.ior("", [])


def _write_struct(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    if not isinstance(value, tuple) or len(value) != len(one.members):
        raise EventError(f"{_shown(value)} does not have the {len(one.members)} members of {one.name or one.kind.name}")
    if one.kind is K.except_:
        out.string(one.repository_id)
    for member, part in zip(one.members, value, strict=True):
        try:
            out.value(_need(member.type), part, depth + 1)
        except EventError as error:
            raise error.inside(member.name) from None


def _write_union(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    value = _as(value, Union, f"a value of the union {one.name}")
    out.value(_need(one.discriminator).plain, value.discriminator, depth + 1)
    member = _chosen(one, value.discriminator)
    if member is not None:
        out.value(_need(member.type), value.value, depth + 1)
    elif value.value is not None:
        raise EventError(f"{_shown(value.discriminator)} chooses no member of the union {one.name}")


def _write_enum(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    index = next((index for index, member in enumerate(one.members) if member.name == value), None)
    if index is None:
        raise EventError(f"{_shown(value)} is not a member of the enumeration {one.name}")
    out.ulong(index)


def _content(one: TypeCode) -> TypeCode:
    """The element type of a sequence or array. Types without bytes are refused: bytes would not limit their number."""
    content = _need(one.content)
    plain = content.plain
    if plain.kind in (K.null, K.void) or (plain.kind is K.struct and not plain.members):
        raise EventError(f"elements of kind {plain.kind.name} that hold nothing are refused")
    return content


def _write_elements(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    content = _content(one)
    octets = content.plain.kind is K.octet
    if octets and isinstance(value, tuple):
        value = _octets(value)
    if not isinstance(value, bytes if octets else tuple):
        raise EventError(f"{_shown(value)} is not the {'bytes' if octets else 'tuple'} of {one.kind.name}")
    length = len(value)
    if one.kind is K.sequence:
        _check_bound(one, length)
        out.ulong(length)
    elif length != one.length:
        raise EventError(f"{length} elements are not the {one.length} of the array")
    if isinstance(value, bytes):
        out.data += value
        return
    for index, part in enumerate(value):
        try:
            out.value(content, part, depth + 1)
        except EventError as error:
            raise error.inside(f"[{index}]") from None


def _octets(values: tuple[Value, ...]) -> bytes:
    try:
        return bytes(values)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise EventError("octets are 0 to 255") from None


def _write_fixed(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise EventError(f"{_shown(value)} is not of type fixed")
    if not 0 < one.digits <= _MOST_DIGITS:
        raise EventError(f"a fixed of {one.digits} digits: there are 1 to {_MOST_DIGITS}")
    sign, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + one.scale
    if abs(shift) > 2 * _MOST_DIGITS or (shift < 0 and whole % 10**-shift):
        raise EventError(f"{_shown(value)} has more places than a fixed<{one.digits},{one.scale}>")
    scaled = whole * 10**shift if shift >= 0 else whole // 10**-shift
    text = str(scaled).zfill(one.digits)
    if len(text) > one.digits:
        raise EventError(f"{_shown(value)} has more digits than a fixed<{one.digits},{one.scale}>")
    packed = f"{text}{'d' if sign else 'c'}"
    out.data += bytes.fromhex(packed if len(packed) % 2 == 0 else f"0{packed}")


def _write_longdouble(out: _Writer, one: TypeCode, value: Value, depth: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EventError(f"{_shown(value)} is not of type long double")
    out.align(8)
    try:
        out.data += _to_quad(float(value))
    except OverflowError:
        raise EventError(f"{_shown(value)} does not fit its type") from None


def _to_quad(number: float) -> bytes:
    """A double as IEEE 754 of 128 bits, which can hold every double."""
    fraction, exponent = math.frexp(abs(number))
    bits = 0
    if not math.isfinite(number):
        bits = 0x7FFF << _QUAD_FRACTION | math.isnan(number) << _QUAD_FRACTION - 1
    elif fraction:
        bits = (exponent + _QUAD_BIAS - 2 << _QUAD_FRACTION) + int(math.ldexp(fraction, _QUAD_FRACTION + 1))
    return ((math.copysign(1, number) < 0) << 127 | bits).to_bytes(16)


def _from_quad(octets: bytes) -> float:
    """The double nearest to a number of 128 bits; infinite beyond the range."""
    bits = int.from_bytes(octets)
    exponent, fraction = bits >> _QUAD_FRACTION & 0x7FFF, bits & (1 << _QUAD_FRACTION) - 1
    if exponent == 0x7FFF:
        size = math.nan if fraction else math.inf
    else:
        whole = fraction | (exponent > 0) << _QUAD_FRACTION
        try:
            size = float(whole * Fraction(2) ** (max(exponent, 1) - _QUAD_BIAS - _QUAD_FRACTION))
        except OverflowError:
            size = math.inf
    return -size if bits >> 127 else size


_WRITERS: Final[dict[TCKind, Callable[[_Writer, TypeCode, Value, int], None]]] = {
    K.null: _write_nothing,
    K.void: _write_nothing,
    K.boolean: lambda out, one, value, depth: out.data.append(_as(value, bool, "a boolean")),
    K.char: _write_char,
    K.wchar: _write_wchar,
    K.string: _write_string,
    K.wstring: _write_wstring,
    K.any: lambda out, one, value, depth: out.any(value, depth),
    K.typecode: lambda out, one, value, depth: out.typecode(_as(value, TypeCode, "a TypeCode")),
    K.objref: _write_reference,
    K.struct: _write_struct,
    K.except_: _write_struct,
    K.union: _write_union,
    K.enum: _write_enum,
    K.sequence: _write_elements,
    K.array: _write_elements,
    K.alias: lambda out, one, value, depth: out.value(_need(one.content), value, depth + 1),
    K.fixed: _write_fixed,
    K.longdouble: _write_longdouble,
}


def _chosen(union: TypeCode, discriminator: object) -> Member | None:
    for index, member in enumerate(union.members):
        if index != union.default_index and member.label == discriminator:
            return member
    return union.members[union.default_index] if 0 <= union.default_index < len(union.members) else None


class _Reader:
    """Reads CDR in either byte order. Truncated data raises struct.error, which the module's functions translate."""

    __slots__ = ("_base", "_charset", "_data", "_left", "_little", "_pos", "_seen")

    def __init__(self, data: bytes, charset: str = UTF_8, *, little: bool = False, at: int = 0) -> None:
        self._data = data
        self._charset = charset
        self._pos = at
        self._base = 0
        self._little = little
        self._left = len(data) + _EMPTY
        self._seen: dict[int, TypeCode | None] = {}
        """TypeCodes by their start position; None while they are being read."""

    def end(self) -> None:
        if self._pos != len(self._data):
            raise EventError(f"{len(self._data) - self._pos} bytes follow where nothing should")

    def byte_order(self) -> None:
        order = self.number("B")
        if order > 1:
            raise EventError("an encapsulation begins with the order of its bytes, 0 or 1")
        self._little = order == 1

    def number(self, code: str) -> int:
        """A number; annotated as an integer, although the codes f and d give floats, which only `value` reads."""
        size = _SIZES[code]
        at = self._pos + -(self._pos - self._base) % size
        self._pos = at + size
        found: int = (_LITTLE if self._little else _BIG)[code].unpack_from(self._data, at)[0]
        return found

    def count(self, least: int = 1) -> int:
        """The number of following items, each of at least `least` octets. Raises EventError: the remaining data cannot
        hold that many."""
        found = self.number("I")
        if found * least > len(self._data) - self._pos:
            raise EventError(f"a length of {found}, and {len(self._data) - self._pos} bytes are left")
        return found

    def take(self, length: int) -> bytes:
        at = self._pos
        if length > len(self._data) - at:
            raise EventError(f"a length of {length}, and {len(self._data) - at} bytes are left")
        self._pos = at + length
        return self._data[at : self._pos]

    def octets(self) -> bytes:
        return self.take(self.number("I"))

    def string(self) -> str:
        """A text. Events consist mostly of texts, so this reads length and octets itself, without `octets`."""
        data = self._data
        begin = self._pos + (self._base - self._pos) % 4 + 4
        length = (_LITTLE if self._little else _BIG)["I"].unpack_from(data, begin - 4)[0]
        end = begin + length
        if end > len(data):
            raise EventError(f"a length of {length}, and {len(data) - begin} bytes are left")
        self._pos = end
        if length and data[end - 1]:  # some ORBs send a length of 0 for the empty string
            raise EventError("a string does not end with NUL")
        raw = data[begin : end - 1] if length else b""
        try:
            return raw.decode(self._charset)
        except UnicodeDecodeError as error:
            raise EventError(f"a text is not {self._charset}: byte {raw[error.start]:#04x}") from None

    def wide(self, raw: bytes) -> str:
        order = "be"
        if raw[:2] in (b"\xfe\xff", b"\xff\xfe"):
            order, raw = ("be" if raw[0] == 0xFE else "le"), raw[2:]
        try:
            return raw.decode(f"utf-16-{order}", "surrogatepass")
        except UnicodeDecodeError:
            raise EventError("a wide text is not UTF-16") from None

    def align(self, size: int) -> None:
        self._pos += -(self._pos - self._base) % size

    def quad(self) -> float:
        self.align(8)
        data = self.take(16)
        return _from_quad(data[::-1] if self._little else data)

    def ior(self) -> tuple[str, list[tuple[int, bytes]]]:
        type_id = self.string()
        return type_id, [(self.number("I"), self.octets()) for _ in range(self.count(8))]

    def event(self) -> StructuredEvent:
        domain, kind, name = self.string(), self.string(), self.string()
        header, data = self.properties(), self.properties()
        return StructuredEvent(domain, kind, name, header, data, self.body())

    def body(self) -> Any:
        try:
            return self.any(0)
        except EventError as error:
            raise error.inside("remainder_of_body") from None

    def properties(self) -> tuple[Property, ...]:
        return tuple([self.property() for _ in range(self.count(9))])

    def property(self) -> Property:
        name = self.string()
        try:
            return Property(name, self.any(0))
        except EventError as error:
            raise error.inside(name) from None

    def any(self, depth: int) -> Any:
        one = self.typecode(0)
        return Any(one, self.value(one, depth + 1))

    def typecode(self, depth: int) -> TypeCode:
        if depth > DEPTH:
            raise EventError(f"a TypeCode is nested deeper than {DEPTH}")
        number = self.number("I")
        at = self._pos - 4
        if number == _INDIRECTION:
            return self._indirection()
        kind = _KINDS.get(number)
        if kind is None:
            raise EventError(f"{number} is not a kind of TypeCode")
        if kind in _REFUSED:
            raise _refusal(kind)
        if kind in (K.string, K.wstring):
            length = self.number("I")
            return TypeCode(kind, length=length) if length else TypeCode.of(kind)
        if kind is K.fixed:
            return TypeCode(kind, digits=self.number("H"), scale=self.number("h"))
        if kind not in _WITH_PARTS:
            return TypeCode.of(kind)
        self._seen[at] = None
        length = self.number("I")
        start = self._pos
        octets = self.take(length)
        if depth == 0 and length <= _KEPT and _REFERS not in octets:
            made, inner = _known(kind, octets, self._charset)
            self._seen.update((start + offset, one) for offset, one in inner)
        else:
            base, little = self._base, self._little
            self._pos = self._base = start
            self.byte_order()
            made = self.parameters(kind, depth)
            if self._pos > start + length:
                raise EventError("a TypeCode is longer than it says")
            self._pos, self._base, self._little = start + length, base, little
        self._seen[at] = made
        return made

    def places(self) -> tuple[tuple[int, TypeCode], ...]:
        """The TypeCodes that were read, with their start positions."""
        return tuple((place, one) for place, one in self._seen.items() if one is not None)

    def _indirection(self) -> TypeCode:
        here = self._pos
        offset = self.number("i")
        place = here + offset
        if place not in self._seen:
            raise EventError("a TypeCode refers to a place where there is none")
        found = self._seen[place]
        if found is None:
            raise EventError("a TypeCode refers to itself")
        return found

    def parameters(self, kind: TCKind, depth: int) -> TypeCode:
        names = ("", "") if kind in _BOUNDED else (self.string(), self.string())
        discriminator, default = (self.typecode(depth + 1), self.number("i")) if kind is K.union else (None, -1)
        members = []
        for index in range(self.count(5 if kind is K.enum else 9) if kind in _WITH_MEMBERS else 0):
            label = None if discriminator is None else self._label(discriminator, index == default)
            members.append(Member(self.string(), None if kind is K.enum else self.typecode(depth + 1), label))
        if default >= len(members):
            raise EventError(f"a union of {len(members)} members has no default member {default}")
        content = self.typecode(depth + 1) if kind is K.alias or kind in _BOUNDED else None
        length = self.number("I") if kind in _BOUNDED else 0
        return TypeCode(kind, *names, tuple(members), content, length, discriminator, max(default, -1))

    def _label(self, discriminator: TypeCode, is_default: bool) -> str | int | None:
        if is_default:
            self.number("B")
            return None
        label = self.value(discriminator.plain, 0)
        if label is not None and not isinstance(label, str | int):
            raise EventError(f"{discriminator.kind.name} cannot choose members of a union")
        return label

    def value(self, one: TypeCode, depth: int) -> Value:
        if depth > DEPTH:
            raise EventError(f"a value is nested deeper than {DEPTH}")
        kind = one.kind
        code = _SIMPLE.get(kind)
        if code is not None:
            return self.number(code)
        return _READERS[kind](self, one, depth)

    def spend(self, elements: int) -> None:
        """Counts values before they are read, to limit values without bytes. Raises EventError: there are too many
        values."""
        self._left -= elements
        if self._left < 0:
            raise EventError("more values than the bytes can hold")


@lru_cache(1_024)
def _known(kind: TCKind, octets: bytes, charset: str) -> tuple[TypeCode, tuple[tuple[int, TypeCode], ...]]:
    """A TypeCode from its parameters, and the positions of those inside it. Cached: peers repeat the same few."""
    reader = _Reader(octets, charset)
    reader.byte_order()
    return reader.parameters(kind, 0), reader.places()


def _read_boolean(reader: _Reader, one: TypeCode, depth: int) -> Value:
    octet = reader.number("B")
    if octet > 1:
        raise EventError(f"a boolean is 0 or 1, not {octet}")
    return octet == 1


def _read_members(reader: _Reader, one: TypeCode, depth: int) -> Value:
    if one.kind is K.except_ and reader.string() != one.repository_id:
        raise EventError("the value is another exception than its TypeCode")
    reader.spend(len(one.members))
    found = []
    for member in one.members:
        try:
            found.append(reader.value(_need(member.type), depth + 1))
        except EventError as error:
            raise error.inside(member.name) from None
    return tuple(found)


def _read_union(reader: _Reader, one: TypeCode, depth: int) -> Value:
    label = reader.value(_need(one.discriminator).plain, depth + 1)
    if not isinstance(label, str | int):
        raise EventError(f"{_shown(label)} cannot choose a member of a union")
    member = _chosen(one, label)
    return Union(label, reader.value(_need(member.type), depth + 1) if member is not None else None)


def _read_enum(reader: _Reader, one: TypeCode, depth: int) -> Value:
    index = reader.number("I")
    if index >= len(one.members):
        raise EventError(f"the enumeration {one.name} has no member {index}")
    return one.members[index].name


def _read_elements(reader: _Reader, one: TypeCode, depth: int) -> Value:
    content = _content(one)
    length = reader.number("I") if one.kind is K.sequence else one.length
    if content.plain.kind is K.octet:
        return reader.take(length)
    reader.spend(length)
    return tuple([reader.value(content, depth + 1) for _ in range(length)])


def _read_fixed(reader: _Reader, one: TypeCode, depth: int) -> Value:
    # JacORB omits leading zeros; the sign marks the end.
    digits = ""
    while not digits.endswith(("c", "d")):
        if len(digits) > one.digits:
            raise EventError("a fixed does not end with its sign")
        digits += reader.take(1).hex()
    try:
        whole = Decimal(digits[:-1])
    except InvalidOperation:
        raise EventError("a fixed has something else than digits") from None
    # Built from the digits, so no decimal context rounds it.
    return Decimal((int(digits[-1] == "d"), whole.as_tuple().digits, -one.scale))


def _read_reference(reader: _Reader, one: TypeCode, depth: int) -> Value:
    type_id, profiles = reader.ior()
    if not profiles:
        return ObjectReference()
    out = _Writer(encapsulates=True)
    out.ior(type_id, profiles)
    return ObjectReference(f"IOR:{out.data.hex()}")


_READERS: Final[dict[TCKind, Callable[[_Reader, TypeCode, int], Value]]] = {
    K.null: lambda reader, one, depth: None,
    K.void: lambda reader, one, depth: None,
    K.boolean: _read_boolean,
    K.char: lambda reader, one, depth: chr(reader.number("B")),
    K.wchar: lambda reader, one, depth: reader.wide(reader.take(reader.number("B"))),
    K.string: lambda reader, one, depth: reader.string(),
    K.wstring: lambda reader, one, depth: reader.wide(reader.octets()),
    K.any: lambda reader, one, depth: reader.any(depth),
    K.typecode: lambda reader, one, depth: reader.typecode(0),
    K.objref: _read_reference,
    K.struct: _read_members,
    K.except_: _read_members,
    K.union: _read_union,
    K.enum: _read_enum,
    K.sequence: _read_elements,
    K.array: _read_elements,
    K.alias: lambda reader, one, depth: reader.value(_need(one.content), depth + 1),
    K.fixed: _read_fixed,
    K.longdouble: lambda reader, one, depth: reader.quad(),
}
