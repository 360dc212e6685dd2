"""Anys and TypeCodes as CDR octets (CORBA 3, chapter 15), and back: an encapsulation, big-endian when written.

Strings are UTF-8, which for ASCII is what every ORB writes; wide ones UTF-16 as of GIOP 1.2. Nothing follows an object
reference, and valuetypes, abstract and native kinds are refused. What is read is bounded by the octets that are there:
a length is believed only as far as they reach.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from decimal import Context, Decimal
from fractions import Fraction
from typing import Final

from mtosi_jms.bridge.events import DEPTH, Any, Member, ObjectReference, TCKind, TypeCode, Union, Value
from mtosi_jms.errors import EventError

__all__ = ["decode_any", "decode_typecode", "encode_any", "encode_typecode"]

_NUMBERS: Final[Mapping[TCKind, tuple[str, int]]] = {
    TCKind.short: ("h", 2),
    TCKind.long: ("i", 4),
    TCKind.ushort: ("H", 2),
    TCKind.ulong: ("I", 4),
    TCKind.float: ("f", 4),
    TCKind.double: ("d", 8),
    TCKind.longlong: ("q", 8),
    TCKind.ulonglong: ("Q", 8),
    TCKind.octet: ("B", 1),
}
_WITH_MEMBERS: Final = (TCKind.struct, TCKind.except_)
_REFUSED: Final = frozenset({TCKind.principal, TCKind.value, TCKind.valuebox, TCKind.native, TCKind.abstract_interface})
_INDIRECTION: Final = 0xFFFFFFFF
_BIAS: Final = 16383
_MANTISSA: Final = 112
_FIXED: Final = Context(prec=80)


def encode_any(value: Any) -> bytes:
    """An Any as an encapsulation: its TypeCode, then the value.

    Raises:
        EventError: a value that its TypeCode does not have, with the path to it; a kind that is refused; values nested
            deeper than `DEPTH`.
    """
    writer = _Writer()
    writer.any(value, 0)
    return bytes(writer.octets)


def decode_any(octets: bytes) -> Any:
    """The Any of an encapsulation.

    Raises:
        EventError: it ends early, goes on after the value, or holds what no encapsulation of an Any does.
    """
    reader = _Reader(octets)
    found = reader.any(0)
    reader.at_end()
    return found


def encode_typecode(code: TypeCode) -> bytes:
    """A TypeCode as an encapsulation.

    Raises:
        EventError: a kind that is refused.
    """
    writer = _Writer()
    writer.typecode(code)
    return bytes(writer.octets)


def decode_typecode(octets: bytes) -> TypeCode:
    """The TypeCode of an encapsulation.

    Raises:
        EventError: see `decode_any`.
    """
    reader = _Reader(octets)
    found = reader.typecode(0)
    reader.at_end()
    return found


class _Writer:
    def __init__(self) -> None:
        self.octets = bytearray(1)  # byte order: big-endian

    def number(self, code: str, size: int, value: object) -> None:
        self.octets += bytes(-len(self.octets) % size)
        self.octets += struct.pack(f">{code}", value)

    def ulong(self, value: int) -> None:
        self.number("I", 4, value)

    def string(self, text: str) -> None:
        if "\0" in text:
            raise EventError("a CORBA string has no U+0000")
        octets = text.encode() + b"\0"
        self.ulong(len(octets))
        self.octets += octets

    def encapsulated(self, inner: _Writer) -> None:
        self.ulong(len(inner.octets))
        self.octets += inner.octets

    def any(self, value: Any, depth: int) -> None:
        if not isinstance(value, Any):
            raise EventError(f"an Any is needed, not {type(value).__name__}")
        self.typecode(value.type)
        self.value(value.type, value.value, depth + 1)

    def typecode(self, code: TypeCode) -> None:
        kind = code.kind
        if kind in _REFUSED:
            raise EventError(f"a TypeCode of {kind.name} is refused")
        self.ulong(kind.value)
        if kind in (TCKind.string, TCKind.wstring):
            self.ulong(code.length)
        elif kind is TCKind.fixed:
            self.number("H", 2, code.digits)
            self.number("h", 2, code.scale)
        elif kind in _PARAMETERS:
            inner = _Writer()
            _PARAMETERS[kind](inner, code)
            self.encapsulated(inner)

    def named(self, code: TypeCode) -> None:
        self.string(code.repository_id)
        self.string(code.name)

    def members(self, code: TypeCode) -> None:
        self.named(code)
        self.ulong(len(code.members))
        for member in code.members:
            self.string(member.name)
            self.typecode(_needed(member.type))

    def enumeration(self, code: TypeCode) -> None:
        self.named(code)
        self.ulong(len(code.members))
        for member in code.members:
            self.string(member.name)

    def union_members(self, code: TypeCode) -> None:
        self.named(code)
        discriminator = _needed(code.discriminator)
        self.typecode(discriminator)
        self.number("i", 4, code.default_index)
        self.ulong(len(code.members))
        for index, member in enumerate(code.members):
            if index == code.default_index:
                self.octets += b"\0"
            else:
                self.value(discriminator, member.label, 0)
            self.string(member.name)
            self.typecode(_needed(member.type))

    def elements(self, code: TypeCode) -> None:
        self.typecode(_needed(code.content))
        self.ulong(code.length)

    def alias(self, code: TypeCode) -> None:
        self.named(code)
        self.typecode(_needed(code.content))

    def value(self, code: TypeCode, value: Value, depth: int) -> None:
        if depth > DEPTH:
            raise EventError(f"values are nested deeper than {DEPTH}")
        code = code.plain
        number = _NUMBERS.get(code.kind)
        try:
            if number is not None:
                if isinstance(value, bool):
                    raise EventError("a number is needed, not a boolean")
                self.number(*number, value)
                return
            writer = _VALUES.get(code.kind)
            if writer is None:
                raise EventError(f"a value of {code.kind.name} is refused")
            writer(self, code, value, depth)
        except (struct.error, OverflowError, TypeError, UnicodeEncodeError) as exc:
            raise EventError(f"{type(value).__name__} does not fit {code.kind.name}: {exc}") from None

    def nothing(self, code: TypeCode, value: Value, depth: int) -> None:
        if value is not None:
            raise EventError(f"{code.kind.name} has no value")

    def boolean(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, bool):
            raise EventError("True or False is needed")
        self.octets.append(value)

    def char(self, code: TypeCode, value: Value, depth: int) -> None:
        text = _one(value)
        if text > "\xff":
            raise EventError("a char has one octet")
        self.octets += text.encode("latin-1")

    def wchar(self, code: TypeCode, value: Value, depth: int) -> None:
        octets = _one(value).encode("utf-16-be", "surrogatepass")
        self.octets.append(len(octets))
        self.octets += octets

    def text(self, code: TypeCode, value: Value, depth: int) -> None:
        text = _text(value)
        if code.length and len(text) > code.length:
            raise EventError(f"{len(text)} characters; the bound is {code.length}")
        if code.kind is TCKind.string:
            self.string(text)
            return
        octets = text.encode("utf-16-be", "surrogatepass")
        self.ulong(len(octets))
        self.octets += octets

    def sequence(self, code: TypeCode, value: Value, depth: int) -> None:
        content = _content(code)
        if not isinstance(value, (bytes, tuple)):
            raise EventError(f"bytes or a tuple is needed, not {type(value).__name__}")
        if code.kind is TCKind.array:
            if len(value) != code.length:
                raise EventError(f"{len(value)} elements; the array has {code.length}")
        else:
            if code.length and len(value) > code.length:
                raise EventError(f"{len(value)} elements; the bound is {code.length}")
            self.ulong(len(value))
        if content.plain.kind is TCKind.octet:
            self.octets += bytes(value) if not isinstance(value, tuple) else _octets(value)
            return
        for index, one in enumerate(_tuple(value)):
            with _inside(f"[{index}]"):
                self.value(content, one, depth + 1)

    def struct(self, code: TypeCode, value: Value, depth: int) -> None:
        if code.kind is TCKind.except_:
            self.string(code.repository_id)
        values = _tuple(value)
        if len(values) != len(code.members):
            raise EventError(f"{len(values)} values; {code.name or 'it'} has {len(code.members)} members")
        for member, one in zip(code.members, values, strict=True):
            with _inside(member.name):
                self.value(_needed(member.type), one, depth + 1)

    def union(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, Union):
            raise EventError(f"a Union is needed, not {type(value).__name__}")
        self.value(_needed(code.discriminator), value.discriminator, depth + 1)
        member = _chosen(code, value.discriminator)
        if member is not None:
            with _inside(member.name):
                self.value(_needed(member.type), value.value, depth + 1)
        elif value.value is not None:
            raise EventError(f"the discriminator {value.discriminator!r} chooses no member")

    def enum(self, code: TypeCode, value: Value, depth: int) -> None:
        names = [member.name for member in code.members]
        if value not in names:
            raise EventError(f"{value!r:.60} is no member of {code.name or 'the enumeration'}")
        self.ulong(names.index(str(value)))

    def nested(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, Any):
            raise EventError(f"an Any is needed, not {type(value).__name__}")
        self.any(value, depth)

    def type(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, TypeCode):
            raise EventError(f"a TypeCode is needed, not {type(value).__name__}")
        self.typecode(value)

    def reference(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, ObjectReference):
            raise EventError(f"an ObjectReference is needed, not {type(value).__name__}")
        type_id, profiles = _ior(value.ior)
        self.string(type_id)
        self.ulong(len(profiles))
        for tag, data in profiles:
            self.ulong(tag)
            self.ulong(len(data))
            self.octets += data

    def fixed(self, code: TypeCode, value: Value, depth: int) -> None:
        if not isinstance(value, (Decimal, int)) or isinstance(value, bool):
            raise EventError(f"a Decimal is needed, not {type(value).__name__}")
        number = Decimal(value)
        if not number.is_finite() or number.adjusted() > _FIXED.prec:
            raise EventError(f"it does not fit fixed<{code.digits},{code.scale}>")
        number = number.scaleb(code.scale, _FIXED)
        digits = str(abs(int(number)))
        if number != int(number) or len(digits) > code.digits:
            raise EventError(f"it does not fit fixed<{code.digits},{code.scale}>")
        padded = digits.rjust(code.digits + (code.digits + 1) % 2, "0")
        self.octets += bytes.fromhex(padded + ("d" if number < 0 else "c"))

    def longdouble(self, code: TypeCode, value: Value, depth: int) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise EventError(f"a float is needed, not {type(value).__name__}")
        self.octets += bytes(-len(self.octets) % 8)
        self.octets += _to_quad(float(value))


_PARAMETERS: Final[Mapping[TCKind, Callable[[_Writer, TypeCode], None]]] = {
    TCKind.objref: _Writer.named,
    TCKind.struct: _Writer.members,
    TCKind.except_: _Writer.members,
    TCKind.union: _Writer.union_members,
    TCKind.enum: _Writer.enumeration,
    TCKind.sequence: _Writer.elements,
    TCKind.array: _Writer.elements,
    TCKind.alias: _Writer.alias,
}
_VALUES: Final[Mapping[TCKind, Callable[[_Writer, TypeCode, Value, int], None]]] = {
    TCKind.null: _Writer.nothing,
    TCKind.void: _Writer.nothing,
    TCKind.boolean: _Writer.boolean,
    TCKind.char: _Writer.char,
    TCKind.wchar: _Writer.wchar,
    TCKind.string: _Writer.text,
    TCKind.wstring: _Writer.text,
    TCKind.sequence: _Writer.sequence,
    TCKind.array: _Writer.sequence,
    TCKind.struct: _Writer.struct,
    TCKind.except_: _Writer.struct,
    TCKind.union: _Writer.union,
    TCKind.enum: _Writer.enum,
    TCKind.any: _Writer.nested,
    TCKind.typecode: _Writer.type,
    TCKind.objref: _Writer.reference,
    TCKind.fixed: _Writer.fixed,
    TCKind.longdouble: _Writer.longdouble,
}


class _Reader:
    def __init__(self, octets: bytes) -> None:
        if not octets or octets[0] > 1:
            raise EventError("these octets are no encapsulation: the first says the byte order, 0 or 1")
        self.octets = octets
        self.order = "<" if octets[0] else ">"
        self.position = 1

    @property
    def left(self) -> int:
        return len(self.octets) - self.position

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise EventError(f"the octets end early: {size} are needed at {self.position}, {self.left} are there")
        self.position += size
        return self.octets[self.position - size : self.position]

    def align(self, size: int) -> None:
        self.take(-self.position % size)

    def number(self, code: str, size: int) -> int | float:
        self.align(size)
        found: int | float = struct.unpack(self.order + code, self.take(size))[0]
        return found

    def ulong(self) -> int:
        return int(self.number("I", 4))

    def count(self) -> int:
        """How many elements follow: each has an octet at least."""
        found = self.ulong()
        if found > self.left:
            raise EventError(f"{found} elements cannot be in the {self.left} octets that are left")
        return found

    def string(self) -> str:
        octets = self.take(self.ulong())
        if not octets or octets[-1]:
            raise EventError("a string does not end with an octet of 0")
        try:
            return octets[:-1].decode()
        except UnicodeDecodeError as exc:
            raise EventError(f"a string is not UTF-8 at its octet {exc.start}") from None

    def at_end(self) -> None:
        if self.left:
            raise EventError(f"{self.left} octets are left over")

    def any(self, depth: int) -> Any:
        code = self.typecode(0)
        return Any(code, self.value(code, depth + 1))

    def typecode(self, depth: int) -> TypeCode:
        if depth > DEPTH:
            raise EventError(f"a TypeCode is nested deeper than {DEPTH}")
        number = self.ulong()
        if number == _INDIRECTION:
            raise EventError("a TypeCode refers back: circular ones are refused")
        try:
            kind = TCKind(number)
        except ValueError:
            raise EventError(f"{number} is no kind of TypeCode") from None
        if kind in _REFUSED:
            raise EventError(f"a TypeCode of {kind.name} is refused")
        if kind in (TCKind.string, TCKind.wstring):
            bound = self.ulong()
            return TypeCode(kind, length=bound) if bound else TypeCode.of(kind)
        if kind is TCKind.fixed:
            return TypeCode(kind, digits=int(self.number("H", 2)), scale=int(self.number("h", 2)))
        read = _READ_PARAMETERS.get(kind)
        if read is None:
            return TypeCode.of(kind)
        inner = _Reader(self.take(self.ulong()))
        found = read(inner, kind, depth + 1)
        inner.at_end()
        return found

    def named(self, kind: TCKind, depth: int) -> TypeCode:
        return TypeCode(kind, self.string(), self.string())

    def members(self, kind: TCKind, depth: int) -> TypeCode:
        repository_id, name = self.string(), self.string()
        members = tuple(Member(self.string(), self.typecode(depth)) for _ in range(self.count()))
        return TypeCode(kind, repository_id, name, members)

    def enumeration(self, kind: TCKind, depth: int) -> TypeCode:
        repository_id, name = self.string(), self.string()
        return TypeCode(kind, repository_id, name, tuple(Member(self.string()) for _ in range(self.count())))

    def union_members(self, kind: TCKind, depth: int) -> TypeCode:
        repository_id, name, discriminator = self.string(), self.string(), self.typecode(depth)
        if discriminator.plain.kind not in _DISCRIMINATORS:
            raise EventError(f"{discriminator.plain.kind.name} discriminates no union")
        default = int(self.number("i", 4))
        members = []
        for index in range(self.count()):
            label = self.take(1) and None if index == default else self.value(discriminator, 0)
            if label is not None and not isinstance(label, (str, int)):
                raise EventError("a label of a union is no constant")
            members.append(Member(self.string(), self.typecode(depth), label))
        return TypeCode(kind, repository_id, name, tuple(members), discriminator=discriminator, default_index=default)

    def elements(self, kind: TCKind, depth: int) -> TypeCode:
        return TypeCode(kind, content=self.typecode(depth), length=self.ulong())

    def alias(self, kind: TCKind, depth: int) -> TypeCode:
        return TypeCode(kind, self.string(), self.string(), content=self.typecode(depth))

    def value(self, code: TypeCode, depth: int) -> Value:
        if depth > DEPTH:
            raise EventError(f"values are nested deeper than {DEPTH}")
        code = code.plain
        number = _NUMBERS.get(code.kind)
        if number is not None:
            return self.number(*number)
        return _READ_VALUES[code.kind](self, code, depth)

    def nothing(self, code: TypeCode, depth: int) -> Value:
        return None

    def boolean(self, code: TypeCode, depth: int) -> Value:
        octet = self.take(1)[0]
        if octet > 1:
            raise EventError(f"a boolean is 0 or 1, not {octet}")
        return octet == 1

    def char(self, code: TypeCode, depth: int) -> Value:
        return self.take(1).decode("latin-1")

    def wchar(self, code: TypeCode, depth: int) -> Value:
        return _one(self.wide(self.take(1)[0]))

    def wide(self, size: int) -> str:
        try:
            text = self.take(size).decode("utf-16-be", "surrogatepass")
        except UnicodeDecodeError:
            raise EventError("a wide text is not UTF-16") from None
        return text[1:] if text.startswith("\ufeff") and size > 2 else text

    def text(self, code: TypeCode, depth: int) -> Value:
        text = self.string() if code.kind is TCKind.string else self.wide(self.ulong())
        if code.length and len(text) > code.length:
            raise EventError(f"{len(text)} characters; the bound is {code.length}")
        return text

    def sequence(self, code: TypeCode, depth: int) -> Value:
        content = _content(code)
        count = code.length if code.kind is TCKind.array else self.count()
        if count > self.left:
            raise EventError(f"{count} elements cannot be in the {self.left} octets that are left")
        if code.kind is TCKind.sequence and code.length and count > code.length:
            raise EventError(f"{count} elements; the bound is {code.length}")
        if content.plain.kind is TCKind.octet:
            return self.take(count)
        return tuple(self.value(content, depth + 1) for _ in range(count))

    def struct(self, code: TypeCode, depth: int) -> Value:
        if code.kind is TCKind.except_ and self.string() != code.repository_id:
            raise EventError("the value is another exception than its TypeCode")
        return tuple(self.value(_needed(member.type), depth + 1) for member in code.members)

    def union(self, code: TypeCode, depth: int) -> Value:
        discriminator = self.value(_needed(code.discriminator), depth + 1)
        if not isinstance(discriminator, (str, int)):
            raise EventError("the discriminator of a union is no constant")
        member = _chosen(code, discriminator)
        return Union(discriminator, None if member is None else self.value(_needed(member.type), depth + 1))

    def enum(self, code: TypeCode, depth: int) -> Value:
        number = self.ulong()
        if number >= len(code.members):
            raise EventError(f"{number} is no member of {code.name or 'the enumeration'}")
        return code.members[number].name

    def nested(self, code: TypeCode, depth: int) -> Value:
        return self.any(depth)

    def type(self, code: TypeCode, depth: int) -> Value:
        return self.typecode(0)

    def reference(self, code: TypeCode, depth: int) -> Value:
        writer = _Writer()
        writer.string(self.string())
        count = self.count()
        writer.ulong(count)
        for _ in range(count):
            writer.ulong(self.ulong())
            data = self.take(self.ulong())
            writer.ulong(len(data))
            writer.octets += data
        return ObjectReference(f"IOR:{writer.octets.hex()}" if count else "")

    def fixed(self, code: TypeCode, depth: int) -> Value:
        text = self.take(code.digits // 2 + 1).hex()
        if not text[:-1].isdigit() or text[-1] not in "cd":
            raise EventError("a fixed is not made of decimal digits")
        return Decimal(f"{'-' if text[-1] == 'd' else ''}{text[:-1]}").scaleb(-code.scale, _FIXED)

    def longdouble(self, code: TypeCode, depth: int) -> Value:
        self.align(8)
        octets = self.take(16)
        return _from_quad(octets if self.order == ">" else octets[::-1])


_DISCRIMINATORS: Final = frozenset(
    {TCKind.short, TCKind.long, TCKind.ushort, TCKind.ulong, TCKind.longlong, TCKind.ulonglong}
    | {TCKind.boolean, TCKind.char, TCKind.wchar, TCKind.enum, TCKind.octet}
)
_READ_PARAMETERS: Final[Mapping[TCKind, Callable[[_Reader, TCKind, int], TypeCode]]] = {
    TCKind.objref: _Reader.named,
    TCKind.struct: _Reader.members,
    TCKind.except_: _Reader.members,
    TCKind.union: _Reader.union_members,
    TCKind.enum: _Reader.enumeration,
    TCKind.sequence: _Reader.elements,
    TCKind.array: _Reader.elements,
    TCKind.alias: _Reader.alias,
}
_READ_VALUES: Final[Mapping[TCKind, Callable[[_Reader, TypeCode, int], Value]]] = {
    TCKind.null: _Reader.nothing,
    TCKind.void: _Reader.nothing,
    TCKind.boolean: _Reader.boolean,
    TCKind.char: _Reader.char,
    TCKind.wchar: _Reader.wchar,
    TCKind.string: _Reader.text,
    TCKind.wstring: _Reader.text,
    TCKind.sequence: _Reader.sequence,
    TCKind.array: _Reader.sequence,
    TCKind.struct: _Reader.struct,
    TCKind.except_: _Reader.struct,
    TCKind.union: _Reader.union,
    TCKind.enum: _Reader.enum,
    TCKind.any: _Reader.nested,
    TCKind.typecode: _Reader.type,
    TCKind.objref: _Reader.reference,
    TCKind.fixed: _Reader.fixed,
    TCKind.longdouble: _Reader.longdouble,
}


class _inside:  # noqa: N801
    """Adds a step to the path of an error."""

    __slots__ = ("step",)

    def __init__(self, step: str) -> None:
        self.step = step

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, EventError):
            raise error.inside(self.step) from None


def _needed(code: TypeCode | None) -> TypeCode:
    if code is None:
        raise EventError("a TypeCode lacks the type of what it holds")
    return code


def _content(code: TypeCode) -> TypeCode:
    """The type of the elements: one that takes an octet at least, so that their number is bounded by their octets."""
    content = _needed(code.content)
    plain = content.plain
    if plain.kind in (TCKind.null, TCKind.void) or (plain.kind is TCKind.struct and not plain.members):
        raise EventError(f"elements of {plain.kind.name} that hold nothing")
    return content


def _chosen(code: TypeCode, discriminator: str | int) -> Member | None:
    for index, member in enumerate(code.members):
        if index != code.default_index and member.label == discriminator:
            return member
    return code.members[code.default_index] if 0 <= code.default_index < len(code.members) else None


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise EventError(f"a text is needed, not {type(value).__name__}")
    return value


def _one(value: Value) -> str:
    text = _text(value)
    if len(text) != 1:
        raise EventError(f"one character is needed, not {len(text)}")
    return text


def _tuple(value: Value) -> tuple[Value, ...]:
    if not isinstance(value, tuple):
        raise EventError(f"a tuple is needed, not {type(value).__name__}")
    return value


def _octets(values: tuple[Value, ...]) -> bytes:
    try:
        return bytes(values)  # type: ignore[arg-type]
    except ValueError as exc:
        raise EventError(f"octets are 0 to 255: {exc}") from None


def _ior(text: str) -> tuple[str, list[tuple[int, bytes]]]:
    """Type id and profiles of a reference."""
    if not text:
        return "", []
    try:
        reader = _Reader(bytes.fromhex(text.removeprefix("IOR:")))
    except ValueError as exc:
        raise EventError(f"this is no IOR: {exc}") from None
    type_id = reader.string()
    return type_id, [(reader.ulong(), reader.take(reader.ulong())) for _ in range(reader.count())]


def _to_quad(number: float) -> bytes:
    """A double as IEEE 754 of 128 bits, which has all of them."""
    bits = int.from_bytes(struct.pack(">d", number))
    sign, exponent, fraction = bits >> 63, bits >> 52 & 0x7FF, bits & (1 << 52) - 1
    if exponent == 0x7FF:
        exponent = 0x7FFF
    elif exponent == 0 and fraction:
        shift = 53 - fraction.bit_length()
        exponent, fraction = _BIAS - 1022 - shift, fraction << shift & (1 << 52) - 1
    elif exponent:
        exponent += _BIAS - 1023
    return (sign << 127 | exponent << _MANTISSA | fraction << _MANTISSA - 52).to_bytes(16)


def _from_quad(octets: bytes) -> float:
    """The double next to a number of 128 bits; infinite beyond the range."""
    bits = int.from_bytes(octets)
    exponent, fraction = bits >> _MANTISSA & 0x7FFF, bits & (1 << _MANTISSA) - 1
    if exponent == 0x7FFF:
        size = float("nan") if fraction else float("inf")
    elif exponent - _BIAS > 1024:
        size = float("inf")
    elif exponent - _BIAS < -1100:
        size = 0.0
    else:
        try:
            size = float(Fraction(fraction | 1 << _MANTISSA) * Fraction(2) ** (exponent - _BIAS - _MANTISSA))
        except OverflowError:
            size = float("inf")
    return -size if bits >> 127 else size
