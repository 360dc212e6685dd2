"""JMS messages become events (formal/04-10-09, 2.4.1); random ones, and random events, come back as they were."""

from __future__ import annotations

from dataclasses import replace
from typing import Any as Anything

import pytest
from hypothesis import given

from mtosi_jms.bridge.cdr import decode_any, decode_typecode, encode_any, encode_typecode
from mtosi_jms.bridge.events import NULL, OCTET_SEQ, Any, Property, StructuredEvent, TCKind, TypeCode, any_of
from mtosi_jms.bridge.omg import BridgeRules, event_of, is_from_jms, message_of
from mtosi_jms.errors import ConfigError, EventError
from mtosi_jms.jms import (
    Byte,
    Char,
    DeliveryMode,
    Float,
    JmsMessage,
    Long,
    MessageType,
    Queue,
    Short,
    TemporaryQueue,
    Topic,
)

from .event_maker import EVENTS, MESSAGES, TYPES, anys

NOW = 1_700_000_000_000
FULL = JmsMessage(
    body=b"<a/>",
    properties={"MTOSI_msgType": "REQUEST", "JMSXUserID": "u", "JMSXAppID": "a", "JMSXGroupID": "g", "JMSXGroupSeq": 3},
    destination=Topic("alarms"),
    reply_to=Queue("replies"),
    message_id="ID:1",
    timestamp_ms=NOW,
    correlation_id="c",
    jms_type="t",
    redelivered=True,
    delivery_count=2,
)
CONTENT: dict[MessageType, dict[str, Anything]] = {
    MessageType.TEXT: {"body": b"x"},
    MessageType.BYTES: {"body": b"x"},
    MessageType.OBJECT: {"body": b"x"},
    MessageType.MAP: {"content": {"secret": 1}},
    MessageType.STREAM: {"content": (1,)},
    MessageType.MESSAGE: {},
}


def made(message: JmsMessage, rules: BridgeRules | None = None, now_ms: int = NOW) -> StructuredEvent:
    event = event_of(message, rules or BridgeRules(), now_ms=now_ms)
    assert event is not None
    return event


def value(event: StructuredEvent, name: str) -> Anything:
    found = event.get(name)
    return None if found is None else found.value


def header(event: StructuredEvent, name: str) -> Anything:
    found = event.header(name)
    return None if found is None else found.value


@pytest.mark.obligation("000-JE1", "000-JE14")
def test_header_and_properties_are_the_same_for_all_types() -> None:
    events = [
        made(replace(FULL, body=b"", message_type=MessageType.TEXT) if kind is MessageType.TEXT else JmsMessage(
            **{name: getattr(FULL, name) for name in ("properties", "destination", "reply_to", "message_id",
               "timestamp_ms", "correlation_id", "jms_type", "redelivered", "delivery_count")},
            message_type=kind, **fields))
        for kind, fields in CONTENT.items()
    ]  # fmt: skip
    assert len({(one.variable_header, one.filterable_data) for one in events}) == 1
    assert value(events[0], "secret") is None


@pytest.mark.parametrize("kind", list(CONTENT))
@pytest.mark.obligation("000-JE2", "000-JE3")
def test_domain_and_type(kind: MessageType) -> None:
    event = made(JmsMessage(message_type=kind, **CONTENT[kind]))
    assert (event.domain_name, event.type_name, event.event_name) == ("", f"%{kind.value}", "")
    assert is_from_jms(event)


@pytest.mark.parametrize(("event_name", "name"), [(True, "alarms"), (False, "")])
@pytest.mark.obligation("000-JE4", "000-X17")
def test_the_name_of_the_destination(event_name: bool, name: str) -> None:
    event = made(FULL, BridgeRules(event_name=event_name))
    assert event.event_name == name
    assert event.type_name == "%TextMessage"  # never the topic


@pytest.mark.parametrize(("mode", "reliability"), [(DeliveryMode.PERSISTENT, 1), (DeliveryMode.NON_PERSISTENT, 0)])
@pytest.mark.obligation("000-JE5", "000-Q1", "003-1")
def test_event_reliability(mode: DeliveryMode, reliability: int) -> None:
    event = made(JmsMessage(delivery_mode=mode))
    assert event.header("EventReliability") == Any(TypeCode.of(TCKind.short), reliability)
    back = message_of(event)
    assert back is not None
    assert back.delivery_mode is mode


@pytest.mark.parametrize("priority", range(10))
@pytest.mark.obligation("000-JE7", "000-Q4", "003-1")
def test_priority(priority: int) -> None:
    assert made(JmsMessage(priority=priority)).header("Priority") == Any(TypeCode.of(TCKind.short), priority)


@pytest.mark.parametrize(
    ("fields", "timeout"),
    [
        ({}, None),
        ({"time_to_live_ms": 1500}, 15_000_000),
        ({"time_to_live_ms": 9, "timestamp_ms": NOW - 1, "expiration_ms": NOW + 8}, 80_000),
    ],
)
@pytest.mark.obligation("000-JE6", "000-X4", "003-1")
def test_timeout(fields: dict[str, int], timeout: int | None) -> None:
    assert header(made(JmsMessage(**fields)), "Timeout") == timeout  # type: ignore[arg-type]


@pytest.mark.obligation("000-X4", "000-Q6")
def test_stop_time() -> None:
    event = made(JmsMessage(expiration_ms=NOW + 5, timestamp_ms=NOW), BridgeRules(expiry="StopTime"))
    assert event.header("Timeout") is None
    assert header(event, "StopTime") == ((NOW + 5 + 12_219_292_800_000) * 10_000, 0, 0, 0)
    back = message_of(event, now_ms=NOW + 2)
    assert back is not None
    assert back.time_to_live_ms == 3
    assert message_of(event, now_ms=NOW + 5) is None


@pytest.mark.obligation("000-JE6")
def test_expired_messages_are_not_seen() -> None:
    message = JmsMessage(expiration_ms=NOW, timestamp_ms=NOW - 9)
    assert event_of(message, now_ms=NOW) is None
    assert event_of(message, now_ms=NOW - 1) is not None


@pytest.mark.obligation("000-JE8", "000-JE11", "000-JE13", "000-X5")
def test_headers_and_properties_are_filterable_data() -> None:
    event = made(FULL)
    assert {one.name: one.value.value for one in event.filterable_data} == {
        "JMSType": "t",
        "JMSMessageID": "ID:1",
        "JMSTimestamp": NOW,
        "JMSreplyTo": "queue:replies",
        "JMSCorrelationID": "c",
        "JMSDestination": "topic:alarms",
        "JMSRedelivered": True,
        "JMSXDeliveryCount": 2,
        "MTOSI_msgType": "REQUEST",
        "JMSXUserID": "u",
        "JMSXAppID": "a",
        "JMSXGroupID": "g",
        "JMSXGroupSeq": 3,
    }


@pytest.mark.obligation("000-JE9")
def test_headers_without_value() -> None:
    names = {one.name for one in made(JmsMessage()).filterable_data}
    assert names == {"JMSRedelivered", "JMSXDeliveryCount"}
    kept = made(JmsMessage(), BridgeRules(keep_nil=True))
    assert {one.name for one in kept.filterable_data if one.value == NULL} == {
        *("JMSType", "JMSMessageID", "JMSTimestamp", "JMSreplyTo", "JMSCorrelationID", "JMSDestination")
    }
    assert message_of(kept) == JmsMessage()


VALUES = [
    (True, TCKind.boolean, True),
    (Byte(-1), TCKind.octet, 255),
    (Short(-7), TCKind.short, -7),
    (7, TCKind.long, 7),
    (Long(2**40), TCKind.longlong, 2**40),
    (Float(0.5), TCKind.float, 0.5),
    (0.1, TCKind.double, 0.1),
    ("é", TCKind.string, "é"),
    ("€", TCKind.wstring, "€"),
]


@pytest.mark.parametrize(("given", "kind", "held"), VALUES)
@pytest.mark.obligation("000-JE12", "003-2")
def test_values_of_properties(given: Anything, kind: TCKind, held: Anything) -> None:
    event = made(JmsMessage(properties={"p": given}))
    assert event.get("p") == Any(TypeCode.of(kind), held)
    back = message_of(event)
    assert back is not None
    assert (type(back.properties["p"]), back.properties["p"]) == (type(given), given)


@pytest.mark.parametrize(("text", "kind"), [("é", TCKind.string), ("€", TCKind.wstring), ("", TCKind.string)])
@pytest.mark.obligation("000-JE15", "003-3")
def test_a_text(text: str, kind: TCKind) -> None:
    assert made(JmsMessage(body=text.encode())).remainder_of_body == Any(TypeCode.of(kind), text)


def test_a_text_that_is_not_utf_8() -> None:
    with pytest.raises(EventError, match="byte 1"):
        event_of(JmsMessage(body=b"a\xff"))


STREAM = (*(one[0] for one in VALUES), b"\x00\xff", Char("c"), Char("€"), None)


@pytest.mark.obligation("000-JE16", "003-3")
def test_a_stream() -> None:
    remainder = made(JmsMessage(message_type=MessageType.STREAM, content=STREAM)).remainder_of_body
    assert remainder.type == TypeCode.sequence(TypeCode.of(TCKind.any))
    octets, char, wide = Any(OCTET_SEQ, b"\x00\xff"), any_of(Char("c")), any_of(Char("€"))
    assert remainder.value == (*(Any(TypeCode.of(kind), held) for _, kind, held in VALUES), octets, char, wide, NULL)
    assert (char.type.kind, wide.type.kind) == (TCKind.char, TCKind.wchar)


@pytest.mark.obligation("000-JE17", "003-3")
def test_a_map() -> None:
    remainder = made(JmsMessage(message_type=MessageType.MAP, content={"a b": 1, "x": "y"})).remainder_of_body
    assert remainder.type.repository_id == "IDL:omg.org/CosNotification/PropertySeq:1.0"
    assert remainder.value == (("a b", any_of(1)), ("x", any_of("y")))


@pytest.mark.parametrize("kind", [MessageType.BYTES, MessageType.OBJECT])
@pytest.mark.obligation("000-JE18", "000-JE19", "003-3")
def test_octets(kind: MessageType) -> None:
    assert made(JmsMessage(message_type=kind, body=b"\xac\xed")).remainder_of_body == Any(OCTET_SEQ, b"\xac\xed")


@pytest.mark.obligation("000-JE10")
def test_an_answer() -> None:
    question = made(FULL)
    data = {"JMSDestination": question.get("JMSreplyTo"), "JMSCorrelationID": question.get("JMSMessageID")}
    fields = tuple(Property(name, value) for name, value in data.items() if value is not None)
    message = message_of(StructuredEvent("", "%TextMessage", "", (), fields, any_of("<b/>")))
    assert message is not None
    assert (message.destination, message.correlation_id, message.body) == (Queue("replies"), "ID:1", b"<b/>")


def test_a_temporary_destination_comes_back_as_one() -> None:
    back = message_of(made(JmsMessage(reply_to=TemporaryQueue("x"))))
    assert back is not None
    assert type(back.reply_to) is TemporaryQueue


@pytest.mark.parametrize("name", ["compat", "expiry", "no_body", "profile"])
def test_a_switch_without_such_a_setting(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BridgeRules(**{name: "other"})  # type: ignore[arg-type]


LATER = 2**41


def with_first_id(message: JmsMessage) -> JmsMessage:
    """What is documented to be other: the first id is a property, and the time to live what is left."""
    if message.message_id is not None:
        message = replace(message, properties={**message.properties, "$fd_JMSMessageID": message.message_id})
    if message.expiration_ms:
        message = replace(message, time_to_live_ms=message.expiration_ms - LATER)
    return message


def types_of(message: JmsMessage) -> list[type]:
    content = message.content.values() if hasattr(message.content, "values") else message.content
    return [type(one) for one in (*dict(sorted(message.properties.items())).values(), *content)]


@given(MESSAGES)
@pytest.mark.obligation("000-EJ14", "000-X6")
def test_a_message_comes_back(message: JmsMessage) -> None:
    message = replace(message, expiration_ms=LATER + message.time_to_live_ms if message.expiration_ms else 0)
    event = event_of(message, now_ms=LATER)
    assert event is not None
    back = message_of(event, now_ms=LATER)
    assert back is not None
    assert back == with_first_id(message)
    assert types_of(back) == types_of(with_first_id(message))


@given(EVENTS)
@pytest.mark.obligation("000-EJ14")
def test_an_event_comes_back(event: StructuredEvent) -> None:
    message = message_of(event, now_ms=0)
    assert message is not None
    assert event_of(message, now_ms=0) == event


@given(EVENTS)
@pytest.mark.obligation("000-EJ14")
def test_an_event_comes_back_from_the_spec_names(event: StructuredEvent) -> None:
    message = message_of(event, BridgeRules(compat="spec", no_body="text"), now_ms=0)
    assert message is not None
    assert event_of(message, now_ms=0) == event


@given(anys())
@pytest.mark.obligation("000-EJ8")
def test_cdr_of_anys(value: Any) -> None:
    assert decode_any(encode_any(value)) == value


@given(TYPES)
def test_cdr_of_typecodes(code: TypeCode) -> None:
    assert decode_typecode(encode_typecode(code)) == code


@pytest.mark.obligation("000-JE19", "000-X6")
def test_an_object_comes_back_as_its_octets() -> None:
    message = JmsMessage(message_type=MessageType.OBJECT, body=b"\xac\xed\x00\x05")
    event = event_of(message)
    assert event is not None
    assert (event.type_name, event.remainder_of_body.value) == ("%ObjectMessage", b"\xac\xed\x00\x05")
    assert message_of(event) == replace(message, message_type=MessageType.BYTES)
