"""Any bytes at all, and damaged envelopes: a result or an `MtosiError`, never another exception.

The long form, guided by coverage, is `test_guided_fuzzing.py`.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtosi_jms import soap, xmlbind
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import from_jms, map_header
from mtosi_jms.binding.profile import FILTER_ATTRIBUTES, OPTIONAL_FIELDS
from mtosi_jms.errors import MtosiError
from mtosi_jms.exchange.messages import read_reply
from mtosi_jms.inventory import place_of
from mtosi_jms.jms import JmsMessage
from mtosi_jms.jms.message import MessageType
from mtosi_jms.stubs.fmw.nam import RelativeDistinguishNameType
from mtosi_jms.stubs.nrf.me import ManagedElementType

NAMES = (
    'xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" xmlns:h="http://www.tmforum.org/mtop/fmw/xsd/hdr/v1" '
    'xmlns:m="http://www.tmforum.org/mtop/fmw/xsd/msg/v1" xmlns:mer="http://www.tmforum.org/mtop/mri/xsd/mer/v1" '
    'xmlns:nam="http://www.tmforum.org/mtop/fmw/xsd/nam/v1" xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1" '
    'xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1" xmlns:p="http://www.tmforum.org/mtop/nra/xsd/prc/v1" '
    'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:me="http://www.tmforum.org/mtop/nrf/xsd/me/v1"'
)
HEADER = (
    "<h:header><h:activityName>x</h:activityName><h:msgType>{}</h:msgType><h:senderURI>jms/S</h:senderURI>"
    '<h:activityStatus qualifier="q">SUCCESS</h:activityStatus><h:correlationId> 1 </h:correlationId>'
    "<h:priority>4</h:priority><h:communicationPattern>MultipleBatchResponse</h:communicationPattern>"
    "<h:requestedBatchSize>20</h:requestedBatchSize><h:batchSequenceNumber>1</h:batchSequenceNumber>"
    "<h:batchSequenceEndOfReply>true</h:batchSequenceEndOfReply><h:timestamp>2024-05-06T07:08:09Z</h:timestamp>"
    "<h:vendorExtensions><v>1</v></h:vendorExtensions></h:header>"
)
RDN = "<nam:rdn><nam:type>ME</nam:type><nam:value>NE%2F7</nam:value></nam:rdn>"
BODIES = {
    "REQUEST": f"<mer:getManagedElementRequest><mer:meRef>{RDN}</mer:meRef></mer:getManagedElementRequest>",
    "RESPONSE": "<mer:getManagedElementResponse><mer:me><me:location xsi:nil='true'/>"
    "<me:manufactureDate>2024-01-01</me:manufactureDate></mer:me></mer:getManagedElementResponse>",
    "NOTIFICATION": "<n:notify><n:topic>t</n:topic><n:message><a:alarm><a:isEdgePointRelated>1</a:isEdgePointRelated>"
    "<a:probableCause qualifier='n'><p:probableCause>LOS</p:probableCause></a:probableCause>"
    "<a:perceivedSeverity>MAJOR</a:perceivedSeverity></a:alarm></n:message></n:notify>",
    "ERROR": "<s:Fault><faultcode>s:Server</faultcode><faultstring>w</faultstring><detail>"
    "<mer:getManagedElementException><m:entityNotFound><h:header><h:msgType>ERROR</h:msgType></h:header>"
    "<m:reason>r</m:reason></m:entityNotFound></mer:getManagedElementException></detail></s:Fault>",
}
SEEDS = [
    f'<?xml version="1.0" encoding="UTF-8"?><s:Envelope {NAMES}><s:Header>{HEADER.format(kind)}</s:Header>'
    f"<s:Body>{body}</s:Body></s:Envelope>".encode()
    for kind, body in BODIES.items()
]
PIECES = [
    b"", b"9" * 5000, b"-0", b"+1", b"NaN", b"1e999", b"\xff", b"\0", b"&#0;", b"&#xD800;", b"&lol;", b"<!DOCTYPE a>",
    b"<!---->", b"<?p i?>", b"<![CDATA[ ]]>", b'xsi:nil="true"', b'xsi:type="a:AlarmType"', b"<x/>",
    b'xsi:type="x:y:z"',
    b'xml:lang="e"', b"24:00:00", b"9999-12-31T24:00:00+14:00", b"0000-00-00", b"-99999999-01-01", b"encoding='x'",
    b'xmlns:h=""', b'xmlns="urn:%zz"', "\u0663".encode(), "\u2028".encode(), b"s:Fault", b"n:notify", b"h:header",
    b"MultipleResponse", b"NOTIFICATION", b"ERROR",
]  # fmt: skip
PROFILE = BindingProfile(optional_fields=OPTIONAL_FIELDS, time_form="millis", severity_form="code")
PROPERTIES: dict[str, str | int] = {
    "MTOSI_requestedBatchSize": "9" * 5000,
    "MTOSI_batchSequenceEndOfReply": "x",
    "mtosi_msgname": 1,
}


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An envelope with bytes flipped, ends cut off, slices doubled or moved, words replaced."""
    data = draw(st.sampled_from(SEEDS))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.integers(0, 60)))
        ways = (
            data[:at],
            data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :],
            data[:end] + data[at:end] * draw(st.integers(1, 3)) + data[end:],
            data[:at] + data[end:],
            data[:at] + draw(st.sampled_from(PIECES)) + data[end:],
            _word_replaced(data, at, draw(st.sampled_from(PIECES))),
        )
        data = draw(st.sampled_from(ways))
    return data


def _word_replaced(data: bytes, at: int, piece: bytes) -> bytes:
    """The text between the next two tags replaced, which keeps the document well-formed now and then."""
    start = data.find(b">", at) + 1
    end = data.find(b"<", start)
    return data[:start] + piece + data[end:] if 0 < start <= end else data


def through_soap(data: bytes) -> None:
    envelope = soap.parse(data)
    assert envelope.to_bytes() == data
    written = soap.parse(envelope.encode())
    assert written.content() == envelope.content()


def through_decode(data: bytes) -> None:
    for element in xmlbind.parse_xml(data).iter("{*}*"):
        xmlbind.encode(xmlbind.decode(element))


def through_mapping(data: bytes) -> None:
    envelope = soap.parse(data)
    if envelope.header is not None:
        mapping = map_header(envelope.header, PROFILE, body=envelope.body, filters=FILTER_ATTRIBUTES)
        JmsMessage(properties=mapping.properties, priority=mapping.priority)
        map_header(envelope.header, PROFILE, body=envelope.body, strict=True)


def through_jms(data: bytes) -> None:
    for kind in MessageType:
        message = JmsMessage(body=data, message_type=kind, properties=PROPERTIES)
        read_reply(message)
        from_jms(message)


def through_iter_decode(data: bytes) -> None:
    for item in xmlbind.iter_decode(io.BytesIO(data), ManagedElementType):
        xmlbind.encode(item)
    for found in xmlbind.iter_placed(data, (ManagedElementType, RelativeDistinguishNameType)):
        place_of(found)


WAYS: dict[str, Callable[[bytes], Any]] = {
    "soap": through_soap,
    "soap-strict": lambda data: soap.parse(data, strict=True),
    "decode": through_decode,
    "iter-decode": through_iter_decode,
    "map": through_mapping,
    "jms": through_jms,
}


def survives(way: str, data: bytes) -> bool:
    """Whether a way came to a result or an error of the SDK; any other exception is raised."""
    try:
        WAYS[way](data)
    except MtosiError:
        return True
    return True


@pytest.mark.parametrize("way", WAYS)
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(data=damaged())
def test_damaged_envelopes(way: str, data: bytes) -> None:
    assert survives(way, data)


@pytest.mark.parametrize("way", WAYS)
@given(data=st.binary(max_size=200))
def test_any_bytes(way: str, data: bytes) -> None:
    assert survives(way, data)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(len(SEEDS)))
@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.endurance)])
def test_every_piece_in_every_value(seed: int, way: str, step: int) -> None:
    """Of three pieces one, another in each value; in the long form every one in each."""
    data = SEEDS[seed]
    starts = [at + 1 for at in range(len(data) - 1) if data[at : at + 1] == b">" and data[at + 1 : at + 2] != b"<"]
    assert len(starts) > 10
    for number, start in enumerate(starts):
        end = data.find(b"<", start)
        for piece in PIECES[number % step : 25 : step]:
            assert survives(way, data[:start] + piece + data[end:] if end > 0 else data)


@pytest.mark.parametrize("way", WAYS)
def test_truncated_anywhere(way: str) -> None:
    for data in SEEDS:
        for end in range(0, len(data), 7):
            assert survives(way, data[:end])
