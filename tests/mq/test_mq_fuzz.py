"""Dumps that are damaged, and random messages: an error with its place, a message, or the same message again."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mtosi_jms.errors import MqFormatError
from mtosi_jms.jms import DeliveryMode, JmsMessage, MessageType, Queue, Topic
from mtosi_jms.jms.message import Byte, Char, Float, Long, Short
from mtosi_jms.mq import read_mq, write_mq

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"))
NUMBERS: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(0.5, 2.0**100, width=32).map(Float),
    st.floats(-1e300, -1e-300) | st.just(0.0),
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    NUMBERS, TEXTS, st.none(), st.binary(max_size=9), st.sampled_from("aÄ€<").map(Char)
)
NAMES = st.from_regex(r"x[A-Za-z0-9_]{0,8}", fullmatch=True)
DESTINATIONS = st.none() | st.builds(Queue, st.sampled_from(["A.B", "queue://QM/A", "größe"])) | st.just(Topic("T/U"))
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "properties": st.dictionaries(NAMES, TEXTS | NUMBERS, max_size=6),
    "destination": DESTINATIONS,
    "reply_to": DESTINATIONS,
    "correlation_id": st.none() | st.text("abc-019 <&ä", min_size=1, max_size=30),
    "jms_type": st.none() | st.just("MTOSI"),
    "delivery_mode": st.sampled_from(DeliveryMode),
    "priority": st.integers(0, 9),
    "timestamp_ms": st.none() | st.integers(0, 2**62),
    "expiration_ms": st.just(0) | st.integers(1, 2**62),
    "message_id": st.none() | st.binary(min_size=24, max_size=24).filter(any).map(lambda octets: f"ID:{octets.hex()}"),
}


def messages(kind: MessageType, **more: st.SearchStrategy[Any]) -> st.SearchStrategy[JmsMessage]:
    return st.builds(JmsMessage, message_type=st.just(kind), **{**COMMON, **more})


OF_OCTETS = messages(MessageType.BYTES, body=st.binary(max_size=40))
OF_TEXT = messages(MessageType.TEXT, body=TEXTS.map(str.encode))
OF_MAPS = messages(MessageType.MAP, content=st.dictionaries(TEXTS.filter(bool), VALUES, max_size=5))
OF_STREAMS = messages(MessageType.STREAM, content=st.lists(VALUES, max_size=5).map(tuple))
MESSAGES = OF_OCTETS | OF_TEXT | OF_MAPS | OF_STREAMS | messages(MessageType.MESSAGE)
ORDERS: st.SearchStrategy[Any] = st.sampled_from(["big", "little"])
CHARACTER_SETS = st.sampled_from([1208, 1200])


@st.composite
def dumps(draw: st.DrawFn) -> bytes:
    """What was written, with octets and numbers replaced, ends cut off, slices doubled or left out."""
    message, order = draw(MESSAGES), draw(ORDERS)
    try:
        data = write_mq(message, with_mqmd=draw(st.booleans()), byte_order=order, ccsid=draw(CHARACTER_SETS))
    except MqFormatError:
        return draw(st.binary(max_size=60))
    for _ in range(draw(st.integers(0, 3))):
        at, upto = sorted((draw(st.integers(0, len(data))), draw(st.integers(0, len(data)))))
        how = draw(st.sampled_from(["octet", "number", "cut", "doubled", "left out", "piece"]))
        if how == "octet":
            data = data[:at] + draw(st.binary(min_size=1, max_size=1)) + data[at + 1 :]
        elif how == "number":
            number = draw(st.sampled_from([0, 1, -1, 2, 3, 4, 36, 273, 546, 819, 1200, 1208, 2**31 - 1, -(2**31)]))
            at -= at % 4
            data = data[:at] + struct.pack(">i" if order == "big" else "<i", number) + data[at + 4 :]
        elif how == "cut":
            data = data[:at]
        elif how == "doubled":
            data = data[:upto] + data[at:]
        elif how == "left out":
            data = data[:at] + data[upto:]
        else:
            pieces = [b"<a>", b"</usr>", b"<!DOCTYPE x>", b"&x;", b"&#0;", b' dt="i4"', b"RFH ", b"MD  ", b"9" * 30]
            data = data[:at] + draw(st.sampled_from(pieces)) + data[at:]
    return data


@given(dumps() | st.binary(max_size=200), st.sampled_from(["fail", "ignore"]))
def test_any_dump_is_a_message_or_an_error_with_its_place(data: bytes, on_invalid: Any) -> None:
    message = place = None
    try:
        message = read_mq(data, on_invalid=on_invalid)
    except MqFormatError as error:
        place = error.offset
    if message is None:
        assert place is not None
        assert 0 <= place <= len(data)
        return
    try:
        written = write_mq(message, with_mqmd=True)
    except MqFormatError:
        return
    assert read_mq(written).body == message.body


@given(MESSAGES, ORDERS, CHARACTER_SETS)
def test_what_is_written_is_read_again(message: JmsMessage, order: Any, ccsid: int) -> None:
    """Ids of messages are in the MQMD alone."""
    data = write_mq(message, with_mqmd=False, byte_order=order, ccsid=ccsid)
    read = read_mq(data)
    expected = replace(message, message_id=None)
    assert read == expected
    assert {name: type(value) for name, value in read.properties.items()} == {
        name: type(value) for name, value in message.properties.items()
    }


@given(MESSAGES, ORDERS, st.integers(0, 2**62), st.integers(1, 2**40))
def test_with_an_mqmd_it_is_read_again_or_refused(message: JmsMessage, order: Any, life: int, count: int) -> None:
    """Refused: what the fields of an MQMD do not hold."""
    message = replace(message, time_to_live_ms=life, delivery_count=count)
    try:
        data = write_mq(message, with_mqmd=True, byte_order=order)
    except MqFormatError:
        return
    read = read_mq(data)
    assert (read.body, read.content, read.properties) == (message.body, message.content, message.properties)
    assert (read.message_id, read.reply_to) == (message.message_id, message.reply_to)
