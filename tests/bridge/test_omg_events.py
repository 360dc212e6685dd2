"""Structured events become JMS messages (formal/04-10-09, sections 2.4.2 and 2.5)."""

from __future__ import annotations

from base64 import b64decode
from decimal import Decimal
from typing import Any as Anything

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.bridge.cdr import decode_any
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
    any_of,
)
from mtosi_jms.bridge.omg import EVENT_HINT, BridgeRules, event_of, field_name, message_of, property_name
from mtosi_jms.bridge.qos import qos
from mtosi_jms.errors import EventError
from mtosi_jms.jms import Byte, Char, DeliveryMode, Float, JmsMessage, Long, MessageType, Queue, Short
from mtosi_jms.jms.message import is_property_name
from mtosi_jms.jms.selector import parse
from mtosi_jms.transport import connect

STRING, LONG = TypeCode.of(TCKind.string), TypeCode.of(TCKind.long)
ALARM = TypeCode.struct("IDL:x/Alarm:1.0", "Alarm", (("Al_name", STRING), ("Severity", LONG)))
NESTED = TypeCode.struct("IDL:x/N:1.0", "N", (("alarm", ALARM), ("on", TypeCode.of(TCKind.boolean))))
WITH_SEQUENCE = TypeCode.struct("IDL:x/S:1.0", "S", (("name", STRING), ("list", TypeCode.sequence(LONG))))
MIXED = TypeCode.struct("IDL:x/M:1.0", "M", (("deep", WITH_SEQUENCE), ("n", LONG)))
ENUM = TypeCode(TCKind.enum, "IDL:x/E:1.0", "E", (Member("PS_MAJOR"), Member("PS_MINOR")))


def made(event: StructuredEvent, rules: BridgeRules | None = None) -> JmsMessage:
    message = message_of(event, rules or BridgeRules(), now_ms=0)
    assert message is not None
    return message


def with_header(**values: Anything) -> StructuredEvent:
    header = tuple(Property(name, value) for name, value in qos(**values).items())
    return StructuredEvent("telecom", "T", variable_header=header)


def with_field(value: Any, name: str = "x") -> StructuredEvent:
    return StructuredEvent("telecom", "T", filterable_data=(Property(name, value),))


def fields(message: JmsMessage) -> dict[str, Anything]:
    return {name: value for name, value in message.properties.items() if name.startswith(("$fd_", "$ohf_"))}


@pytest.mark.parametrize(
    ("values", "profile", "mode"),
    [
        ({}, "omg", DeliveryMode.PERSISTENT),
        ({}, "mtosi", DeliveryMode.NON_PERSISTENT),
        ({"EventReliability": 0}, "omg", DeliveryMode.NON_PERSISTENT),
        ({"EventReliability": 1}, "mtosi", DeliveryMode.PERSISTENT),
    ],
)
@pytest.mark.obligation("000-EJ1", "000-Q1", "000-X19")
def test_delivery_mode(values: dict[str, int], profile: Anything, mode: DeliveryMode) -> None:
    assert made(with_header(**values), BridgeRules(profile=profile)).delivery_mode is mode


@pytest.mark.parametrize(
    ("ticks", "life"), [(None, 0), (10_000, 1), (10_001, 2), (1, 1), (0, 0), (2**64 - 1, 2**64 // 10_000 + 1)]
)
@pytest.mark.obligation("000-EJ2", "000-X3")
def test_time_to_live(ticks: int | None, life: int) -> None:
    """A part of a millisecond counts as one: 0 would be for ever."""
    assert made(with_header(**({} if ticks is None else {"Timeout": ticks}))).time_to_live_ms == life


@pytest.mark.obligation("000-X4")
def test_the_earlier_of_timeout_and_stop_time() -> None:
    epoch = 12_219_292_800_000
    for timeout, stop, life in ((5, 9, 5), (9, 5, 5)):
        event = with_header(Timeout=timeout * 10_000, StopTime=((epoch + stop) * 10_000, 0, 0, 0))
        assert made(event).time_to_live_ms == life


@pytest.mark.parametrize(
    ("priority", "jms"),
    [(-32768, 0), (-32767, 0), (-1, 0), (0, 0), *((one, one) for one in range(1, 9)), (9, 9), (10, 9), (32767, 9)],
)
@pytest.mark.obligation("000-EJ3", "000-Q5", "000-X13", "000-X3")
def test_priority(priority: int, jms: int) -> None:
    assert made(with_header(Priority=priority)).priority == jms


@pytest.mark.obligation("000-EJ3")
def test_no_priority() -> None:
    assert made(StructuredEvent()).priority == 4


@pytest.mark.obligation("000-EJ4", "000-X1")
def test_the_fixed_header() -> None:
    message = made(StructuredEvent("telecom", "NT_ALARM", "one"))
    assert [message.properties[name] for name in ("$domain_type", "$type_name", "$event_name")] == [
        *("telecom", "NT_ALARM", "one")
    ]
    foreign = JmsMessage(jms_type="Structured Event", properties={"$domain_name": "d", "$type_name": "t"})
    event = event_of(foreign)
    assert event is not None
    assert (event.domain_name, event.type_name, event.event_name) == ("d", "t", "")


@pytest.mark.parametrize(
    ("kind", "value", "java"),
    [
        (TCKind.boolean, True, True),
        (TCKind.octet, 255, Byte(-1)),
        (TCKind.short, -1, Short(-1)),
        (TCKind.ushort, 65535, Short(-1)),
        (TCKind.long, 5, 5),
        (TCKind.ulong, 2**32 - 1, -1),
        (TCKind.longlong, 5, Long(5)),
        (TCKind.ulonglong, 2**64 - 1, Long(-1)),
        (TCKind.float, 0.5, Float(0.5)),
        (TCKind.double, 0.1, 0.1),
        (TCKind.char, "c", "c"),
        (TCKind.wchar, "€", "€"),
        (TCKind.string, "s", "s"),
        (TCKind.wstring, "w", "w"),
    ],
)
@pytest.mark.obligation("000-EJ5", "003-2")
def test_fields_become_properties_of_java_types(kind: TCKind, value: Anything, java: Anything) -> None:
    one = Property("x", Any(TypeCode.of(kind), value))
    event = StructuredEvent("telecom", "T", variable_header=(one,), filterable_data=(one,))
    found = fields(made(event))
    assert found == {"$ohf_x": java, "$fd_x": java}
    assert {type(value) for value in found.values()} == {type(java)}
    assert event_of(made(event), now_ms=0) == event


@pytest.mark.parametrize(
    ("name", "escaped"),
    [("objectName", "objectName"), ("a.b", "a$u002Eb"), ("a-b", "a$u002Db"), ("ü", "ü"), ("$x", "$u0024x"), ("", ""),
     ("1", "1"), ("\U0001f600", "$uD83D$uDE00"), ("\ud800", "$uD800")],
)  # fmt: skip
@pytest.mark.obligation("000-EJ6", "000-X2")
def test_names(name: str, escaped: str) -> None:
    assert property_name("$fd_", name) == f"$fd_{escaped}"
    assert field_name(escaped) == name


@given(st.text())
@pytest.mark.obligation("000-EJ6", "000-X2")
def test_every_name_can_be_used_in_a_selector(name: str) -> None:
    made = property_name("$fd_", name)
    assert is_property_name(made)
    assert parse(f"{made} = 1").matches({made: 1}) is True
    assert field_name(made[4:]) == name


@given(st.text("$u0129AFx"))
def test_names_that_are_no_escapes_are_left(escaped: str) -> None:
    assert isinstance(field_name(escaped), str)


@pytest.mark.parametrize(
    ("code", "value", "selector", "spec"),
    [
        (ALARM, ("LOS", 3), {"$fd_x_Al_name": "LOS", "$fd_x_Severity": 3},
         {"$fd_x.Al_name": "LOS", "$fd_x.Severity": 3}),
        (NESTED, (("LOS", 3), True), {"$fd_x_alarm_Al_name": "LOS", "$fd_x_alarm_Severity": 3, "$fd_x_on": True},
         {"$fd_x.alarm.Al_name": "LOS", "$fd_x.alarm.Severity": 3, "$fd_x.on": True}),
        (TypeCode.alias("IDL:x/A:1.0", "A", ALARM), ("L", 1), {"$fd_x_Al_name": "L", "$fd_x_Severity": 1},
         {"$fd_x.Al_name": "L", "$fd_x.Severity": 1}),
    ],
)  # fmt: skip
@pytest.mark.obligation("000-EJ7", "000-X2")
def test_structs_are_linearised(code: TypeCode, value: Anything, selector: Anything, spec: Anything) -> None:
    event = with_field(Any(code, value))
    assert fields(made(event)) == selector
    assert fields(made(event, BridgeRules(compat="spec"))) == spec


@pytest.mark.obligation("000-EJ7", "000-EJ8")
def test_a_struct_with_a_sequence_is_not_expanded() -> None:
    value = Any(WITH_SEQUENCE, ("n", (1, 2)))
    (octets,) = fields(made(with_field(value))).values()
    assert decode_any(b64decode(octets)) == value
    found = fields(made(with_field(Any(MIXED, (("n", (1,)), 7)))))
    assert list(found) == ["$fd_x_deep", "$fd_x_n"]
    assert found["$fd_x_n"] == 7
    assert decode_any(b64decode(found["$fd_x_deep"])) == Any(WITH_SEQUENCE, ("n", (1,)))


@pytest.mark.parametrize(
    "value",
    [
        Any(TypeCode.sequence(LONG), (1, 2)),
        Any(OCTET_SEQ, b"\x01"),
        Any(TypeCode.of(TCKind.any), any_of(1)),
        Any(TypeCode.of(TCKind.typecode), ALARM),
        Any(TypeCode(TCKind.fixed, digits=4, scale=2), Decimal("-12.30")),
        Any(TypeCode.of(TCKind.longdouble), 0.1),
        Any(TypeCode(TCKind.objref, "IDL:x/O:1.0", "O"), ObjectReference()),
        Any(TypeCode(TCKind.except_, "IDL:x/Ex:1.0", "Ex", (Member("why", STRING),)), ("no",)),
    ],
    ids=lambda one: one.type.kind.name,
)
@pytest.mark.obligation("000-EJ8")
def test_other_values_are_octets_of_cdr(value: Any) -> None:
    event = with_field(value)
    (octets,) = fields(made(event)).values()
    assert decode_any(b64decode(octets)) == value
    assert event_of(made(event), now_ms=0) == event


def test_enumerations() -> None:
    event = with_field(Any(ENUM, "PS_MINOR"))
    message = made(event)
    assert list(fields(message).values()) == ["PS_MINOR"]
    assert event_of(message, now_ms=0) == event


@pytest.mark.obligation("000-EJ9")
def test_what_the_bridge_fills() -> None:
    """The provider sets the id, the time and the destination, as of every message."""
    message = made(with_field(any_of(1)))
    assert message.jms_type == "Structured Event"
    with connect("memory:") as connection:
        connection.start()
        session = connection.session()
        session.send(Queue("q"), message)
        delivery = session.consumer(Queue("q")).receive(30)
    assert delivery is not None
    assert str(delivery.message.message_id).startswith("ID")
    assert delivery.message.timestamp_ms
    assert delivery.message.destination == Queue("q")


BODIES: list[tuple[Any, MessageType, Anything]] = [
    (NULL, MessageType.MESSAGE, ()),
    (any_of("x"), MessageType.TEXT, b"x"),
    (any_of("€"), MessageType.TEXT, "€".encode()),
    (Any(TypeCode(TCKind.string, length=9), "b"), MessageType.TEXT, b"b"),
    (any_of(7), MessageType.STREAM, (7,)),
    (Any(TypeCode.of(TCKind.ushort), 65535), MessageType.STREAM, (Short(-1),)),
    (Any(TypeCode.of(TCKind.char), "c"), MessageType.STREAM, (Char("c"),)),
    (Any(ANY_SEQ, (any_of(1), any_of("a"), NULL, any_of(b"x"))), MessageType.STREAM, (1, "a", None, b"x")),
    (Any(TypeCode.sequence(LONG), (1, 2)), MessageType.STREAM, (1, 2)),
    (Any(PROPERTY_SEQ, (("a", any_of(1)), ("b", any_of(True)))), MessageType.MAP, {"a": 1, "b": True}),
    (any_of(b"\x00"), MessageType.BYTES, b"\x00"),
    (Any(TypeCode(TCKind.array, content=TypeCode.of(TCKind.octet), length=2), b"ab"), MessageType.BYTES, b"ab"),
]


@pytest.mark.parametrize(("remainder", "kind", "content"), BODIES, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.obligation("000-EJ10", "000-EJ11", "000-EJ12", "000-EJ13", "000-X18", "003-3")
def test_bodies(remainder: Any, kind: MessageType, content: Anything) -> None:
    event = StructuredEvent("telecom", "T", remainder_of_body=remainder)
    message = made(event)
    assert message.message_type is kind
    assert (message.body if isinstance(content, bytes) else message.content) == content
    assert event_of(message, now_ms=0) == event


@pytest.mark.parametrize(
    "remainder",
    [
        Any(ALARM, ("a", 1)),
        Any(ANY_SEQ, (Any(ALARM, ("a", 1)),)),
        Any(PROPERTY_SEQ, (("a", any_of(1)), ("a", any_of(2)))),
        Any(PROPERTY_SEQ, (("", any_of(1)),)),
        Any(TypeCode.of(TCKind.any), any_of(1)),
        Any(ENUM, "PS_MAJOR"),
    ],
)
@pytest.mark.obligation("000-EJ13")
def test_other_bodies_are_octets_of_cdr(remainder: Any) -> None:
    message = made(StructuredEvent("telecom", "T", remainder_of_body=remainder))
    assert message.message_type is MessageType.BYTES
    assert decode_any(message.body) == remainder


@pytest.mark.obligation("000-X18")
def test_an_empty_text_instead_of_no_body() -> None:
    message = made(StructuredEvent("telecom", "T"), BridgeRules(no_body="text"))
    assert (message.message_type, message.body) == (MessageType.TEXT, b"")


@pytest.mark.parametrize(
    "hint", ["{", "[]", '{"h": 1, "f": []}', '{"h": [], "f": [["x", "=AA"]]}', '{"h":[],"f":["y"]}', 7]
)
def test_hints_that_are_damaged(hint: Anything) -> None:
    """The names of the properties say the rest."""
    properties = {"$type_name": "T", "$fd_x": 1, "$ohf_y": 2, "plain": "p", EVENT_HINT: hint}
    event = event_of(JmsMessage(jms_type="Structured Event", properties=properties))
    assert event is not None
    assert (event.get("x"), event.header("y"), event.get("plain")) == (any_of(1), any_of(2), any_of("p"))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Any(LONG, 2**31), "x"),
        (Any(LONG, None), "x"),
        (Any(LONG, True), "x"),
        (Any(TypeCode.of(TCKind.boolean), 1), "x"),
        (Any(STRING, 1), "x"),
        (Any(ALARM, ("a",)), "x"),
        (Any(ALARM, ("a", "b")), "x"),
        (Any(ENUM, "PS_NONE"), "x"),
        (Any(TypeCode.sequence(LONG), (1, "2")), r"x\.\[1\]"),
        (Any(TypeCode(TCKind.value, "IDL:x/V:1.0", "V"), None), "x"),
        (Any(TypeCode(TCKind.objref, "IDL:x/O:1.0", "O"), ObjectReference("IOR:zz")), "x"),
    ],
)
def test_values_that_are_none_of_their_type(value: Any, path: str) -> None:
    with pytest.raises(EventError, match=f"^{path}: "):
        message_of(with_field(value))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EventReliability", any_of("x")),
        ("EventReliability", any_of(7)),
        ("Priority", any_of(True)),
        ("StopTime", any_of(1)),
    ],
)
def test_header_fields_that_make_no_sense(name: str, value: Any) -> None:
    with pytest.raises(EventError, match=name):
        message_of(StructuredEvent(variable_header=(Property(name, value),)))


def test_names_that_meet_in_one_property() -> None:
    """The first has the property; both come back."""
    data = (Property("x", Any(ALARM, ("a", 1))), Property("x_Severity", any_of(2)), Property("x_Severity", any_of(3)))
    event = StructuredEvent("telecom", "T", filterable_data=data)
    message = made(event)
    assert message.properties["$fd_x_Severity"] == 1
    assert event_of(message, now_ms=0) == event
