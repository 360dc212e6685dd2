"""The tree of a message: one XML document, and the same message again."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mtosi_jms.errors import DecodeError, EncodeError, XmlError
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
    TemporaryTopic,
    Topic,
)
from mtosi_jms.mq.tree import PAYLOAD_TYPES, folder_of, from_tree, to_tree

HEADERS = [
    "JMSDestination", "JMSDeliveryMode", "JMSMessageID", "JMSTimestamp", "JMSExpiration", "JMSRedelivered",
    "JMSPriority", "JMSReplyTo", "JMSCorrelationID", "JMSType",
]  # fmt: skip
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"))
TYPED: st.SearchStrategy[Any] = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**63), 2**63 - 1).map(Long),
    st.floats(0.5, 2.0**100, width=32).map(Float),
    st.floats(-1e300, -1e-300) | st.just(0.0),
)
VALUES = TYPED | st.none() | st.binary(max_size=9) | st.sampled_from("aÄ€<").map(Char)
NAMES = st.sampled_from(["MTOSI_msgName", "JMSXGroupID", "JMS_IBM_MsgType", "a", "$odd", "größe", "elt"])
KINDS = st.one_of(
    st.builds(dict, message_type=st.just(MessageType.TEXT), body=TEXTS.map(str.encode) | st.binary(max_size=20)),
    st.sampled_from([b"a\r\nb\r", b"]]>", b" \n <a/> \t", b"\0", b"\xff"]).map(lambda body: {"body": body}),
    st.builds(dict, message_type=st.just(MessageType.BYTES), body=st.binary(max_size=20)),
    st.builds(dict, message_type=st.just(MessageType.OBJECT), body=st.binary(max_size=20)),
    st.builds(dict, message_type=st.just(MessageType.MESSAGE)),
    st.builds(dict, message_type=st.just(MessageType.MAP), content=st.dictionaries(TEXTS.filter(bool), VALUES)),
    st.builds(dict, message_type=st.just(MessageType.STREAM), content=st.lists(VALUES).map(tuple)),
)
DESTINATIONS = st.none() | st.builds(
    lambda kind, name: kind(name),
    st.sampled_from([Queue, Topic, TemporaryQueue, TemporaryTopic]),
    st.sampled_from(["EMS.OS", "a:b", "größe", "queue://QM1/X?a=b&c=d"]),
)
TIMES = st.integers(0, 2**62)
MESSAGES = st.builds(
    lambda kind, **others: JmsMessage(**kind, **others),
    KINDS,
    properties=st.dictionaries(NAMES, TYPED),
    destination=DESTINATIONS,
    reply_to=DESTINATIONS,
    delivery_mode=st.sampled_from(DeliveryMode),
    priority=st.integers(0, 9),
    time_to_live_ms=TIMES,
    delivery_delay_ms=TIMES,
    message_id=st.none() | TEXTS,
    timestamp_ms=st.none() | TIMES,
    expiration_ms=TIMES,
    delivery_time_ms=TIMES,
    correlation_id=st.none() | TEXTS,
    jms_type=st.none() | TEXTS,
    redelivered=st.booleans(),
    delivery_count=st.integers(1, 9),
)


def types_of(message: JmsMessage) -> tuple[object, object]:
    """The types of all values: properties have no order, and neither have maps."""
    properties = {name: type(value) for name, value in message.properties.items()}
    content = message.content
    if isinstance(content, Mapping):
        return properties, {name: type(value) for name, value in content.items()}
    return properties, [type(value) for value in content]


@pytest.mark.obligation("001-J3", "001-J9", "001-I6")
@given(MESSAGES)
def test_a_message_comes_back_from_its_tree(message: JmsMessage) -> None:
    again = from_tree(to_tree(message))
    assert again == message
    assert types_of(again) == types_of(message)


WHOLE = JmsMessage(
    body=b"<a>\n</a>",
    destination=Queue("EMS.OS"),
    correlation_id="call-1",
    priority=7,
    delivery_mode=DeliveryMode.PERSISTENT,
    timestamp_ms=1_700_000_000_000,
    redelivered=True,
    delivery_count=2,
    properties={"MTOSI_batchSequenceNumber": 3, "JMSXGroupID": "g", "JMS_IBM_MsgType": 8, "text": "a<b & c"},
)


@pytest.mark.obligation("001-J5")
def test_the_tree_as_it_is_written() -> None:
    assert (
        to_tree(WHOLE).decode()
        == """\
<Root>
  <JMSTransport>
    <Message_MetaData>
      <PayloadType>jms_text</PayloadType>
      <JMSXDeliveryCount>2</JMSXDeliveryCount>
    </Message_MetaData>
    <Header_Values>
      <JMSDestination>queue:EMS.OS</JMSDestination>
      <JMSDeliveryMode>2</JMSDeliveryMode>
      <JMSMessageID xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>
      <JMSTimestamp>1700000000000</JMSTimestamp>
      <JMSExpiration>0</JMSExpiration>
      <JMSRedelivered>1</JMSRedelivered>
      <JMSPriority>7</JMSPriority>
      <JMSReplyTo xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>
      <JMSCorrelationID>call-1</JMSCorrelationID>
      <JMSType xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>
    </Header_Values>
    <Application_Properties>
      <MTOSI_batchSequenceNumber dt="i4">3</MTOSI_batchSequenceNumber>
      <text>a&lt;b &amp; c</text>
    </Application_Properties>
    <Provider_Properties>
      <JMS_IBM_MsgType dt="i4">8</JMS_IBM_MsgType>
    </Provider_Properties>
    <Standard_Properties>
      <JMSXGroupID>g</JMSXGroupID>
    </Standard_Properties>
  </JMSTransport>
  <Body><![CDATA[<a>
</a>]]></Body>
</Root>"""
    )


def folders(message: JmsMessage) -> list[str]:
    (transport, _) = etree.fromstring(to_tree(message))
    return [str(folder.tag) for folder in transport]


@pytest.mark.obligation("001-J1", "001-J9")
def test_all_ten_headers_are_always_there_and_have_no_types() -> None:
    headers = etree.fromstring(to_tree(JmsMessage())).find("JMSTransport/Header_Values")
    assert headers is not None
    assert [one.tag for one in headers] == HEADERS
    assert not [one for one in headers if "dt" in one.attrib]


@pytest.mark.obligation("001-J6")
def test_folders_of_properties_are_there_where_properties_are() -> None:
    assert folders(JmsMessage()) == ["Message_MetaData", "Header_Values"]
    assert folders(JmsMessage(properties={"JMSXGroupID": "g"})) == [
        "Message_MetaData",
        "Header_Values",
        "Standard_Properties",
    ]
    root = etree.fromstring(to_tree(WHOLE))
    assert [one.tag for one in root] == ["JMSTransport", "Body"]


@pytest.mark.obligation("001-J2")
@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("MTOSI_msgName", "Application_Properties"), ("JMS_IBM_MsgType", "Provider_Properties"),
        ("JMSXDeliveryCount", "Standard_Properties"), ("jmsx", "Application_Properties"),
    ],
)  # fmt: skip
def test_whose_a_property_is(name: str, folder: str) -> None:
    assert folder_of(name) == folder


@pytest.mark.obligation("001-J4", "001-J7")
@pytest.mark.parametrize(("kind", "name"), PAYLOAD_TYPES.items())
def test_the_kind_of_message(kind: MessageType, name: str) -> None:
    document = to_tree(JmsMessage(message_type=kind))
    assert f"<PayloadType>{name}</PayloadType>".encode() in document
    assert from_tree(document).message_type is kind
    assert len(PAYLOAD_TYPES) == len(MessageType) == 6


@pytest.mark.obligation("001-J11")
@pytest.mark.parametrize("kind", [MessageType.TEXT, MessageType.BYTES, MessageType.OBJECT])
def test_payloads_are_taken_whole(kind: MessageType) -> None:
    message = JmsMessage(message_type=kind, body=b"\xac\xed\0<a/>")
    document = to_tree(message)
    assert b'<Body dt="bin.hex">aced003c612f3e</Body>' in document
    assert from_tree(document) == message


@pytest.mark.obligation("001-J12", "001-J13")
def test_a_map_and_a_stream_are_elements() -> None:
    assert b'<Body><map><n dt="i2">7</n><s>x</s></map></Body>' in to_tree(
        JmsMessage(message_type=MessageType.MAP, content={"n": Short(7), "s": "x"})
    )
    stream = JmsMessage(message_type=MessageType.STREAM, content=("x", 7, Char("A")))
    document = to_tree(stream)
    assert b'<Body><stream><elt>x</elt><elt dt="i4">7</elt><elt dt="char">A</elt></stream></Body>' in document
    assert from_tree(document).content == ("x", 7, "A")
    swapped = from_tree(document.replace(b'<elt>x</elt><elt dt="i4">7</elt>', b'<elt dt="i4">7</elt><elt>x</elt>'))
    assert swapped.content == (7, "x", "A")


@pytest.mark.obligation("001-I5")
def test_without_its_kind_a_message_is_bytes() -> None:
    """001-I5: so IBM's brokers make one."""
    document = b"<Root><JMSTransport><Header_Values/></JMSTransport><Body>00FF</Body></Root>"
    assert from_tree(document) == JmsMessage(message_type=MessageType.BYTES, body=b"\0\xff")


def test_a_large_body() -> None:
    message = JmsMessage(body=b"<a>" + b"x" * 11_000_000 + b"</a>")
    assert from_tree(to_tree(message)) == message


def tree(headers: str = "", properties: str = "", body: str = "", kind: str = "jms_text", more: str = "") -> str:
    folder = f"<Application_Properties>{properties}</Application_Properties>" if properties else ""
    about = f"<Message_MetaData><PayloadType>{kind}</PayloadType></Message_MetaData>"
    transport = f"<JMSTransport>\n{about}<Header_Values>{headers}</Header_Values>{folder}{more}</JMSTransport>"
    return f"<Root>{transport}<Body>{body}</Body></Root>"


def test_what_is_left_out_has_its_default() -> None:
    assert from_tree(tree()) == JmsMessage()
    assert from_tree(tree(properties="<a dt='I4'>1</a>")).properties == {"a": 1}


@pytest.mark.obligation("001-E5", "001-E7")
@pytest.mark.parametrize(
    ("document", "told"),
    [
        ("<Root/>", "JMSTransport and then Body"),
        ("<Other/>", "where Root is needed"),
        ("<Root><Body/><JMSTransport/></Root>", "JMSTransport and then Body"),
        ("<Root><JMSTransport/><Body/></Root>", "no Header_Values"),
        (tree("<JMSTimeStamp>1</JMSTimeStamp>"), "JMSTimeStamp"),
        (tree("<JMSRedlivered>1</JMSRedlivered>"), "JMSRedlivered"),
        (tree("<JMSPriority>1</JMSPriority><JMSPriority>1</JMSPriority>"), "twice"),
        (tree("<JMSPriority>12</JMSPriority>"), "priority"),
        (tree("<JMSRedelivered>true</JMSRedelivered>"), "0 or 1"),
        (tree("<JMSDeliveryMode>3</JMSDeliveryMode>"), "DeliveryMode"),
        (tree("<JMSReplyTo>EMS</JMSReplyTo>"), "queue:NAME"),
        (tree("<JMSReplyTo>queue:</JMSReplyTo>"), "not empty"),
        (tree(properties="<a dt='i2'>99999</a>"), "out of range"),
        (tree(properties="<a dt='i9'>1</a>"), "not known"),
        (tree(properties="<a dt='r8'>NaN</a>"), "decimal number"),
        (tree(properties="<a dt='bin.hex'>00</a>"), "bytes"),
        (tree(properties="<JMSBad>x</JMSBad>"), "JMSBad"),
        (tree(properties="<a>1</a><a>2</a>"), "twice"),
        (tree(kind="jms_bytes"), "jms_byte"),
        (tree(kind="jms_map", body="<stream/>"), "one map"),
        (tree(kind="jms_map"), "one map"),
        (tree(body="<a/>"), "no elements"),
        (tree(kind="jms_byte", body="0"), "hexadecimal"),
        (tree(more="<Other/>"), "Other"),
    ],
)
def test_what_is_no_tree(document: str, told: str) -> None:
    with pytest.raises(DecodeError, match=told) as caught:
        from_tree(document)
    assert caught.value.line is not None


@pytest.mark.obligation("001-E3")
@pytest.mark.parametrize("document", ["", "<Root>", "<Root></Other>", '<!DOCTYPE a [<!ENTITY b "c">]><Root/>'])
def test_what_is_no_xml(document: str) -> None:
    with pytest.raises(XmlError):
        from_tree(document)


def test_the_line_of_an_error_is_that_of_the_document() -> None:
    with pytest.raises(DecodeError) as caught:
        from_tree(tree(properties="\n<a>1</a>\n<b dt='i1'>999</b>"))
    assert (caught.value.line, caught.value.path) == (4, "b")


def test_values_that_their_type_does_not_have_become_text(caplog: pytest.LogCaptureFixture) -> None:
    for document in (
        tree(properties="<n dt='i2'>99999</n>"),
        tree(kind="jms_map", body="<map><n dt='i2'>99999</n></map>"),
        tree(kind="jms_stream", body="<stream><n dt='i2'>99999</n></stream>"),
    ):
        with caplog.at_level(logging.WARNING):
            for action in ("ignore", "warn"):
                message = from_tree(document, on_invalid=action)  # type: ignore[arg-type]
                assert "99999" in str([message.properties, message.content])
                assert len(caplog.records) == int(action == "warn")
        caplog.clear()


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (JmsMessage(correlation_id="\0"), "JMSCorrelationID"),
        (JmsMessage(properties={"a": "\x01"}), "a"),
        (JmsMessage(properties={"a": float("nan")}), "a"),
        (JmsMessage(message_type=MessageType.MAP, content={"n": "\0"}), "n"),
    ],
)
def test_what_xml_does_not_have(message: JmsMessage, name: str) -> None:
    with pytest.raises(EncodeError) as caught:
        to_tree(message)
    assert caught.value.path == name


VALID = to_tree(WHOLE)


@given(st.integers(0, len(VALID) - 1), st.integers(0, 255), st.integers(0, len(VALID)))
def test_any_damage_is_an_error_of_ours_or_a_message(at: int, octet: int, end: int) -> None:
    damaged = bytearray(VALID)
    damaged[at] = octet
    for data in (bytes(damaged), bytes(damaged[:end])):
        try:
            from_tree(data)
        except XmlError:
            pass


@pytest.mark.obligation("001-I6")
def test_every_part_of_a_message_is_in_the_tree() -> None:
    """Each attribute that has another value makes another tree."""
    others: dict[str, Any] = {
        "body": b"x", "message_type": MessageType.BYTES, "properties": {"a": 1}, "destination": Queue("q"),
        "reply_to": Topic("t"), "delivery_mode": DeliveryMode.PERSISTENT, "priority": 5, "time_to_live_ms": 1,
        "delivery_delay_ms": 1, "message_id": "", "timestamp_ms": 0, "expiration_ms": 1, "delivery_time_ms": 1,
        "correlation_id": "", "jms_type": "", "redelivered": True, "delivery_count": 2,
    }  # fmt: skip
    assert {one.name for one in fields(JmsMessage)} == {*others, "content"}
    for name, value in others.items():
        changed = replace(JmsMessage(), **{name: value})
        assert to_tree(changed) != to_tree(JmsMessage()), name
        assert from_tree(to_tree(changed)) == changed, name


@pytest.mark.obligation("001-J3", "001-E7")
def test_a_char_is_no_type_of_properties() -> None:
    """001-E7: JMS has none; as a property it is a String, and octets are none at all (above)."""
    value = from_tree(tree(properties="<a dt='char'>x</a>")).properties["a"]
    assert (type(value), value) == (str, "x")
