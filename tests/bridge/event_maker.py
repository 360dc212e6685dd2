"""Random TypeCodes, Anys, structured events and JMS messages, for Hypothesis."""

from __future__ import annotations

import zlib
from decimal import Decimal
from typing import Any as Anything

from hypothesis import strategies as st

from mtosi_jms.bridge.events import (
    ANY_SEQ,
    NULL,
    OCTET_SEQ,
    PROPERTY_SEQ,
    Any,
    Member,
    ObjectReference,
    Property,
    StructuredEvent,
    TCKind,
    TypeCode,
    Union,
    any_of,
)
from mtosi_jms.bridge.qos import UTC, qos
from mtosi_jms.jms import Byte, Char, DeliveryMode, Float, JmsMessage, Long, MessageType, Queue, Short, Topic
from mtosi_jms.jms.message import is_property_name

NOT_TEXT = ["Cs"]
WORDS = st.text("abcXYZ019_", min_size=1, max_size=6).map(lambda text: f"n{text}")
LATIN = st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=12)
WIDE = st.text(st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=NOT_TEXT), max_size=12)
BEYOND = st.text(st.characters(min_codepoint=1, exclude_categories=NOT_TEXT, exclude_characters="\ufeff"), max_size=12)
SINGLES = st.floats(width=32, allow_nan=False)
DOUBLES = st.floats(allow_nan=False)


def whole(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else st.integers(0, 2**bits - 1)


BASIC: dict[TCKind, st.SearchStrategy[Anything]] = {
    TCKind.boolean: st.booleans(),
    TCKind.octet: whole(8, signed=False),
    TCKind.short: whole(16, signed=True),
    TCKind.ushort: whole(16, signed=False),
    TCKind.long: whole(32, signed=True),
    TCKind.ulong: whole(32, signed=False),
    TCKind.longlong: whole(64, signed=True),
    TCKind.ulonglong: whole(64, signed=False),
    TCKind.float: SINGLES,
    TCKind.double: DOUBLES,
    TCKind.char: st.characters(min_codepoint=1, max_codepoint=255),
    TCKind.wchar: st.characters(min_codepoint=1, max_codepoint=0xFFFD, exclude_categories=NOT_TEXT),
    TCKind.string: LATIN,
    TCKind.wstring: WIDE,
}
"""The basic types, with values that every ORB takes."""


def _repository(*parts: object) -> str:
    """An id of a type with these parts: an ORB takes types with one id for the same."""
    return f"IDL:test/T{zlib.crc32(repr(parts).encode())}:1.0"


@st.composite
def _structs(draw: st.DrawFn, inner: st.SearchStrategy[TypeCode]) -> TypeCode:
    names = draw(st.lists(WORDS, min_size=1, max_size=4, unique=True))
    members = tuple((name, draw(inner)) for name in names)
    return TypeCode.struct(_repository(members), names[0], members)


@st.composite
def _unions(draw: st.DrawFn, inner: st.SearchStrategy[TypeCode]) -> TypeCode:
    labels = draw(st.lists(st.integers(-5, 5), min_size=1, max_size=3, unique=True))
    members = [Member(f"m{number}", draw(inner), label) for number, label in enumerate(labels)]
    default = draw(st.sampled_from([-1, len(members)]))
    if default >= 0:
        members.append(Member("other", draw(inner)))
    return TypeCode(
        TCKind.union,
        _repository(members, default),
        "U",
        tuple(members),
        discriminator=TypeCode.of(TCKind.long),
        default_index=default,
    )


def _enums() -> st.SearchStrategy[TypeCode]:
    names = st.lists(WORDS, min_size=1, max_size=4, unique=True)
    return names.map(lambda found: TypeCode(TCKind.enum, _repository(found), "E", tuple(map(Member, found))))


SIMPLE_TYPES = st.one_of(
    st.sampled_from([TypeCode.of(kind) for kind in BASIC]),
    st.sampled_from([TypeCode.of(TCKind.any), TypeCode.of(TCKind.typecode), OCTET_SEQ]),
    st.sampled_from([TypeCode(TCKind.string, length=20), TypeCode(TCKind.wstring, length=20)]),
    st.just(TypeCode(TCKind.fixed, digits=9, scale=3)),
    _enums(),
)
TYPES: st.SearchStrategy[TypeCode] = st.recursive(
    SIMPLE_TYPES,
    lambda inner: st.one_of(
        inner.map(TypeCode.sequence),
        st.tuples(inner, st.integers(1, 3)).map(lambda one: TypeCode(TCKind.array, content=one[0], length=one[1])),
        inner.map(lambda one: TypeCode.alias(_repository(one), "A", one)),
        _structs(inner),
        _unions(inner),
    ),
    max_leaves=5,
)


@st.composite
def values(draw: st.DrawFn, code: TypeCode, depth: int = 0) -> Anything:
    """A value of a type."""
    code = code.plain
    kind = code.kind
    if kind in (TCKind.string, TCKind.wstring):
        text: str = draw(BASIC[kind])
        return text[: code.length] if code.length else text
    if kind in BASIC:
        return draw(BASIC[kind])
    if kind is TCKind.any:
        return draw(anys(depth + 1))
    if kind is TCKind.typecode:
        return draw(TYPES)
    if kind is TCKind.fixed:
        return Decimal(draw(st.integers(-999_999_999, 999_999_999).filter(bool))).scaleb(-3)  # JacORB cannot read 0
    if kind is TCKind.enum:
        return draw(st.sampled_from([member.name for member in code.members]))
    if kind is TCKind.struct:
        return tuple(draw(values(member.type, depth)) for member in code.members)  # type: ignore[arg-type]
    if kind is TCKind.union:
        member = draw(st.sampled_from(code.members))
        label = 77 if member.label is None else member.label
        return Union(label, draw(values(member.type, depth)))  # type: ignore[arg-type]
    assert code.content is not None
    count = code.length if kind is TCKind.array else draw(st.integers(0, 3))
    if code.content.plain.kind is TCKind.octet:
        return draw(st.binary(min_size=count, max_size=count))
    return tuple(draw(values(code.content, depth)) for _ in range(count))


@st.composite
def anys(draw: st.DrawFn, depth: int = 0) -> Any:
    """An Any of any type; not more than three in each other."""
    code = draw(TYPES if depth < 3 else st.sampled_from([TypeCode.of(kind) for kind in BASIC]))
    if code.kind in (TCKind.string, TCKind.wstring):  # JacORB forgets the bound of a string that is all of an Any
        code = TypeCode.of(code.kind)
    return Any(code, draw(values(code, depth)))


ELEMENTS: st.SearchStrategy[Anything] = st.one_of(
    BEYOND.filter(lambda text: "\0" not in text),
    st.booleans(),
    whole(8, signed=True).map(Byte),
    whole(16, signed=True).map(Short),
    whole(32, signed=True),
    whole(64, signed=True).map(Long),
    SINGLES.map(Float),
    DOUBLES,
)
"""Values of properties."""
CONTENT_VALUES = st.one_of(
    ELEMENTS,
    st.none(),
    st.binary(max_size=8),
    st.characters(min_codepoint=1, max_codepoint=0xFFFD, exclude_categories=NOT_TEXT).map(Char),
)
"""Values of maps and streams."""

NAMES = st.one_of(WORDS, WIDE.filter(bool), st.sampled_from(["a.b", "a-b", "$x", "$u0041", "x y", "JMSType", "1st"]))
HEADERS = st.one_of(
    st.builds(Property, WORDS, anys()),
    st.integers(-32768, 32767).map(lambda one: Property("Priority", qos(Priority=one)["Priority"])),
    st.sampled_from([0, 1]).map(
        lambda one: Property("EventReliability", qos(EventReliability=one)["EventReliability"])
    ),
    st.integers(1, 2**50).map(lambda one: Property("Timeout", qos(Timeout=one)["Timeout"])),
    st.just(Property("StopTime", Any(UTC, (2**58, 1, 2, 60)))),
)
ANY_SEQS = st.lists(CONTENT_VALUES.map(any_of) | anys(), max_size=4).map(lambda found: Any(ANY_SEQ, tuple(found)))
PROPERTY_SEQS = st.dictionaries(NAMES, CONTENT_VALUES.map(any_of) | anys(), max_size=4).map(
    lambda found: Any(PROPERTY_SEQ, tuple(found.items()))
)
REFERENCES = st.just(Any(TypeCode(TCKind.objref, _repository("O"), "O"), ObjectReference()))
EVENTS: st.SearchStrategy[StructuredEvent] = st.builds(
    StructuredEvent,
    st.sampled_from(["", "telecom", "tmf_mtnm"]),
    st.sampled_from(["NT_ALARM", "NT_HEARTBEAT", ""]),
    LATIN,
    st.lists(HEADERS, max_size=3).map(tuple),
    st.lists(st.builds(Property, NAMES, anys() | ELEMENTS.map(any_of) | REFERENCES), max_size=5).map(tuple),
    st.one_of(st.just(NULL), anys(), ELEMENTS.map(any_of), ANY_SEQS, PROPERTY_SEQS, st.binary(max_size=9).map(any_of)),
)
"""Events of every kind of value."""

DESTINATIONS = st.sampled_from([None, Queue("q"), Topic("a.b:c")])


def _bodies() -> st.SearchStrategy[dict[str, Anything]]:
    return st.one_of(
        BEYOND.map(lambda text: {"body": text.encode(), "message_type": MessageType.TEXT}),
        st.binary(max_size=20).map(lambda body: {"body": body, "message_type": MessageType.BYTES}),
        st.dictionaries(NAMES, CONTENT_VALUES, max_size=4).map(
            lambda content: {"content": content, "message_type": MessageType.MAP}
        ),
        st.lists(CONTENT_VALUES, max_size=4).map(
            lambda content: {"content": content, "message_type": MessageType.STREAM}
        ),
        st.just({"message_type": MessageType.MESSAGE}),
    )


@st.composite
def _messages(draw: st.DrawFn) -> JmsMessage:
    stamp = draw(st.none() | st.integers(1, 2**41))
    life = draw(st.just(0) | st.integers(1, 2**40))
    return JmsMessage(
        **draw(_bodies()),
        properties=draw(st.dictionaries(WORDS | NAMES.filter(is_property_name), ELEMENTS, max_size=5)),
        destination=draw(DESTINATIONS),
        reply_to=draw(DESTINATIONS),
        delivery_mode=draw(st.sampled_from(DeliveryMode)),
        priority=draw(st.integers(0, 9)),
        time_to_live_ms=life,
        message_id=draw(st.none() | WORDS.map(lambda one: f"ID:{one}")),
        timestamp_ms=stamp,
        expiration_ms=stamp + life if stamp and life else 0,
        correlation_id=draw(st.none() | WIDE),
        jms_type=draw(st.none() | WORDS),
        redelivered=draw(st.booleans()),
        delivery_count=draw(st.integers(1, 9)),
    )


MESSAGES = _messages()
"""Messages of every kind but ObjectMessage, which does not come back as one."""
