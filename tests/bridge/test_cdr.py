"""CDR: the octets of other ORBs, and what must not be believed."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any as Anything

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.bridge.cdr import addresses_of, code_set_of, decode_any, decode_typecode, encode_any, encode_typecode
from mtosi_jms.bridge.events import (
    DEPTH,
    NULL,
    OCTET_SEQ,
    Any,
    Member,
    ObjectReference,
    TCKind,
    TypeCode,
    Union,
    any_of,
)
from mtosi_jms.errors import EventError

LONG, STRING = TypeCode.of(TCKind.long), TypeCode.of(TCKind.string)


@pytest.mark.parametrize(
    ("value", "octets"),
    [
        (NULL, "00 000000 00000000"),
        (any_of(1), "00 000000 00000003 00000001"),
        (any_of(True), "00 000000 00000008 01"),
        (any_of("ab"), "00 000000 00000012 00000000 00000003 616200"),
        (any_of(0.5), "00 000000 00000007 3fe0000000000000"),
        (any_of("€"), "00 000000 0000001b 00000000 00000002 20ac"),
        (any_of(b"\x07"), "00 000000 00000013 0000000c 00 000000 0000000a 00000000 00000001 07"),
        (Any(TypeCode(TCKind.fixed, digits=4, scale=2), Decimal("-1.25")), "00 000000 0000001c 0004 0002 00125d"),
        (Any(TypeCode(TCKind.fixed, digits=3, scale=2), Decimal("0.00")), "00 000000 0000001c 0003 0002 000c"),
        (Any(TypeCode(TCKind.string, length=2), "ab"), "00 000000 00000012 00000002 00000003 616200"),
        (Any(TypeCode.of(TCKind.longdouble), 1.0), "00 000000 00000019 3fff" + "00" * 14),
    ],
)
def test_octets(value: Any, octets: str) -> None:
    assert encode_any(value).hex() == octets.replace(" ", "")
    assert decode_any(bytes.fromhex(octets)) == value


def test_the_other_byte_order() -> None:
    assert decode_any(bytes.fromhex("01000000 03000000 01000000")) == any_of(1)
    quad = bytes.fromhex("01000000 19000000") + bytes.fromhex("3fff" + "00" * 14)[::-1]
    assert decode_any(quad) == Any(TypeCode.of(TCKind.longdouble), 1.0)


@given(st.floats(allow_nan=False))
def test_every_double_is_a_long_double(number: float) -> None:
    value = Any(TypeCode.of(TCKind.longdouble), number)
    assert struct.pack("d", decode_any(encode_any(value)).value) == struct.pack("d", number)


@pytest.mark.parametrize("exponent", ["7ffe", "0001", "4fff", "7fff"])
def test_long_doubles_beyond_doubles(exponent: str) -> None:
    found = decode_any(bytes.fromhex(f"00000000 00000019 {exponent}" + "00" * 14)).value
    assert found in (float("inf"), 0.0)


def test_a_reference_is_carried_and_not_followed() -> None:
    ior = "IOR:" + (b"\0\0\0\0" + struct.pack(">I", 8) + b"IDL:x:1\0" + struct.pack(">III", 1, 0, 3) + b"abc").hex()
    value = Any(TypeCode(TCKind.objref, "IDL:x:1", "x"), ObjectReference(ior))
    assert decode_any(encode_any(value)) == value


@pytest.mark.parametrize("tag", [1, 3])  # charsets, another address
@pytest.mark.parametrize("octets", ["", "00", "0000000001"])
def test_a_reference_with_a_component_that_is_cut(tag: int, octets: str) -> None:
    part = bytes.fromhex(octets)
    at = b"\0\1\2\0" + struct.pack(">I2sHIIII", 2, b"h\0", 99, 0, 1, tag, len(part)) + part
    ior = "IOR:" + (b"\0\0\0\0" + struct.pack(">I", 8) + b"IDL:x:1\0" + struct.pack(">III", 1, 0, len(at)) + at).hex()
    with pytest.raises(EventError, match="ends early"):
        (code_set_of if tag == 1 else addresses_of)(ior)


@given(st.binary(max_size=60))
def test_any_octets_are_an_any_or_an_error(octets: bytes) -> None:
    try:
        found = decode_any(octets)
    except EventError:
        return
    assert decode_any(encode_any(found)).type == found.type


def sequence_of(count: int, content: TypeCode = LONG) -> bytes:
    empty = b"" if content.kind is TCKind.octet else ()
    return encode_any(Any(TypeCode.sequence(content), empty))[:-4] + struct.pack(">I", count)


def nested(depth: int) -> TypeCode:
    code = LONG
    for _ in range(depth):
        code = TypeCode.sequence(code)
    return code


def test_nesting_is_bounded() -> None:
    assert nested(DEPTH - 1).depth == DEPTH
    with pytest.raises(EventError, match="nested"):
        nested(DEPTH)
    inner = b""
    for _ in range(200):
        body = b"\0\0\0\0" + struct.pack(">I", 19) + struct.pack(">I", len(inner)) + inner + b"\0\0\0\0"
        inner = body
    with pytest.raises(EventError):
        decode_typecode(b"\0\0\0\0" + struct.pack(">II", 19, len(inner)) + inner)


def test_anys_in_anys_are_bounded() -> None:
    value = any_of(1)
    for _ in range(DEPTH + 5):
        value = Any(TypeCode.of(TCKind.any), value)
    with pytest.raises(EventError, match="nested"):
        encode_any(value)
    octets = b"\0\0\0\0" + struct.pack(">I", 11) * 100_000
    with pytest.raises(EventError, match="nested"):
        decode_any(octets)


def test_the_size_of_a_typecode_is_bounded() -> None:
    """Two of the same in each, many times over, would be more than any memory."""

    def twice(code: TypeCode, times: int) -> TypeCode:
        for _ in range(times):
            code = TypeCode.struct("IDL:x:1.0", "x", (("a", code), ("b", code)))
        return code

    assert twice(LONG, 3).nodes > 8
    with pytest.raises(EventError, match="holds more"):
        twice(LONG, 30)


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\x02",
        b"\0\0\0\0",
        b"\0\0\0\0\0\0\0\x03\0",
        b"\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xfc",
        b"\0\0\0\0\0\0\0\x63",
        b"\0\0\0\0\0\0\0\x0d",
        encode_any(any_of(1)) + b"x",
        b"\0\0\0\0\0\0\0\x08\x02",
        b"\0\0\0\0\0\0\0\x12\0\0\0\0\0\0\0\x02ab",
        b"\0\0\0\0\0\0\0\x12\0\0\0\0\0\0\0\x02\xff\0",
        b"\0\0\0\0\0\0\0\x12\0\0\0\0\xff\xff\xff\xff",
        sequence_of(2**32 - 1),
        sequence_of(2**32 - 1, TypeCode.of(TCKind.octet)),
        encode_any(Any(TypeCode(TCKind.enum, "IDL:x:1", "x", (Member("a"),)), "a"))[:-1] + b"\x01",
        encode_any(any_of("€"))[:-1],
        b"\0\0\0\0\0\0\0\x1a\x03\xd8\x00\x41",
        b"\0\0\0\0" + struct.pack(">IHh", 28, 4, 2) + b"\xaa\xaa\xaa",
        b"\0\0\0\0" + struct.pack(">II", 20, 20) + b"\0\0\0\0" + struct.pack(">II", 3, 2**32 - 1) + b"\0" * 8,
    ],
)
def test_octets_that_are_no_any(octets: bytes) -> None:
    with pytest.raises(EventError):
        decode_any(octets)


UNION = TypeCode(TCKind.union, "IDL:u:1", "u", (Member("a", LONG, 1), Member("b", STRING, 2)), discriminator=LONG)


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (LONG, "x"), (LONG, 2**31), (LONG, True), (TypeCode.of(TCKind.null), 1), (TypeCode.of(TCKind.boolean), 1),
        (TypeCode.of(TCKind.char), "€"), (TypeCode.of(TCKind.char), "ab"), (TypeCode.of(TCKind.wchar), ""),
        (STRING, "a\0b"), (STRING, "\ud800"), (TypeCode(TCKind.string, length=1), "ab"), (OCTET_SEQ, "x"),
        (OCTET_SEQ, (1, 256)), (TypeCode.sequence(LONG), [1]), (TypeCode.sequence(LONG, 1), (1, 2)),
        (TypeCode(TCKind.array, content=LONG, length=2), (1,)),
        (TypeCode.struct("IDL:x:1", "x", (("a", LONG),)), ()), (UNION, 1), (UNION, Union(3, 1)), (UNION, Union(1, "x")),
        (TypeCode.of(TCKind.any), 1), (TypeCode.of(TCKind.typecode), 1), (TypeCode(TCKind.objref), "x"),
        (TypeCode(TCKind.fixed, digits=2, scale=1), Decimal("10.0")), (TypeCode(TCKind.fixed, digits=2), 0.5),
        (TypeCode(TCKind.fixed, digits=2, scale=1), Decimal("1.25")),
        (TypeCode(TCKind.fixed, digits=2), Decimal("NaN")),
        (TypeCode(TCKind.fixed, digits=2), Decimal("1e999999")), (TypeCode.of(TCKind.longdouble), "x"),
        (TypeCode.of(TCKind.principal), b""), (TypeCode(TCKind.native), None), (TypeCode(TCKind.valuebox), None),
        (TypeCode(TCKind.sequence), ()), (TypeCode(TCKind.abstract_interface), None),
    ],
    ids=str,
)  # fmt: skip
def test_values_that_are_none_of_their_type(code: TypeCode, value: Anything) -> None:
    with pytest.raises(EventError):
        encode_any(Any(code, value))


def test_the_path_of_an_error() -> None:
    inner = TypeCode.struct("IDL:x:1", "x", (("b", TypeCode.sequence(LONG)),))
    with pytest.raises(EventError, match=r"^a\.b\.\[1\]: ") as caught:
        encode_any(Any(TypeCode.struct("IDL:y:1", "y", (("a", inner),)), (((1, "2"),),)))
    assert caught.value.path == "a.b.[1]"


def test_a_union_whose_discriminator_chooses_nothing() -> None:
    value = Any(UNION, Union(7))
    assert decode_any(encode_any(value)) == value


def test_typecodes_travel() -> None:
    assert decode_typecode(encode_typecode(UNION)) == UNION
    with pytest.raises(EventError):
        decode_typecode(encode_typecode(UNION) + b"\0")
    with pytest.raises(EventError):
        TypeCode.of(TCKind.struct)
