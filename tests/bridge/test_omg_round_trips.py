"""What JMS made returns as it was, and what a channel made too; and CDR is read as it was written."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from mtosi_jms.bridge.cdr import decode_any, decode_typecode, encode_any, encode_typecode
from mtosi_jms.bridge.events import Any, StructuredEvent, TypeCode
from mtosi_jms.bridge.omg import BridgeRules, event_of, message_of
from mtosi_jms.jms import JmsMessage, MessageType

from .event_maker import EVENTS, MESSAGES, TYPES, anys

NOW = 2**41


def with_first_id(message: JmsMessage) -> JmsMessage:
    """What is documented to be other: the first id is a property, and the time to live what is left."""
    if message.message_id is not None:
        message = replace(message, properties={**message.properties, "$fd_JMSMessageID": message.message_id})
    if message.expiration_ms:
        message = replace(message, time_to_live_ms=message.expiration_ms - NOW)
    return message


def types_of(message: JmsMessage) -> list[type]:
    content = message.content.values() if hasattr(message.content, "values") else message.content
    return [type(one) for one in (*dict(sorted(message.properties.items())).values(), *content)]


@given(MESSAGES)
@pytest.mark.obligation("000-EJ14", "000-X6")
def test_a_message_comes_back(message: JmsMessage) -> None:
    message = replace(message, expiration_ms=NOW + message.time_to_live_ms if message.expiration_ms else 0)
    event = event_of(message, now_ms=NOW)
    assert event is not None
    back = message_of(event, now_ms=NOW)
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
