"""Headers of which a template was made: the messages are those that the binding makes of each by itself."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderTemplates, to_jms
from mtosi_jms.errors import EncodeError, HeaderError, NamingError
from mtosi_jms.jms import JmsMessage, NamingContext, Queue
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.gen import AnyListType
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    CompressionEnumType,
    CompressionTypeType,
    HeaderMsgSpecificProperties,
    HeaderMsgSpecificPropertiesProperty,
    MessageTypeType,
    PackingEnumType,
    PackingTypeType,
)
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType
from mtosi_jms.xmlbind import RawXml

NAMES = NamingContext({"jms/Os": "queue:OS", "jms/Ems": "queue:EMS", "jms/Replies": "queue:REPLIES"})
NOON = dt.datetime(2026, 5, 4, 12, 0, 0, tzinfo=dt.UTC)
REQUEST = GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-7"))
RESPONSE = GetManagedElementResponse(me=ManagedElementType(name=name("ME=1"), user_label="Århus & <more>"))


def request(**fields: Any) -> Header:
    given: dict[str, Any] = {
        "activity_name": "getManagedElement",
        "msg_name": "getManagedElementRequest",
        "msg_type": MessageTypeType.REQUEST,
        "sender_uri": "jms/Os",
        "destination_uri": "jms/Ems",
        "correlation_id": "id-0",
        "communication_pattern": CommunicationPatternType.SimpleResponse,
        "communication_style": CommunicationStyleType.MSG,
        "timestamp": NOON,
    }
    return Header(**{**given, **fields})


def response(**fields: Any) -> Header:
    status = ActivityStatusType(value=ActivityStatusEnumType.SUCCESS)
    return request(msg_type=MessageTypeType.RESPONSE, activity_status=status, **fields)


def written(templates: HeaderTemplates, header: Header, body: Any, version: str = "1.1") -> JmsMessage:
    """The message, and a look whether it is the one that the binding makes by itself."""
    message = templates.to_jms(header, body, version, names=NAMES, correlation_id="ID:1")
    envelope = Envelope(header=header, body=body, version=version)
    assert message == to_jms(header, envelope, templates.profile, names=NAMES, correlation_id="ID:1")
    return message


@pytest.mark.parametrize("preset", ["default", "table3", "literal"])
@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize(
    ("header", "body"),
    [
        (request(), REQUEST),
        (request(reply_to_uri="jms/Replies", failure_replyto_uri="jms/Faults"), REQUEST),
        (request(destination_uri="jms/Ems & <others> Ø", activity_name="Ünïcode", priority="7"), REQUEST),
        (response(), RESPONSE),
        (response(communication_style=CommunicationStyleType.RPC, msg_name=None), RESPONSE),
        (request(timestamp=dt.datetime(2026, 5, 4, 12)), REQUEST),
        (request(timestamp=None), REQUEST),
    ],
    ids=["request", "reply address", "text", "response", "RPC", "local time", "no time"],
)
def test_the_message_is_the_same(header: Header, body: Any, version: str, preset: str) -> None:
    templates = HeaderTemplates(BindingProfile.preset(preset))
    for identifier in ("5b0f0a3e-6a3c-4d1e-9a55-5f0c3d8e7a11", "x", "0", " with blanks ", "<&>", "é"):
        written(templates, dataclasses.replace(header, correlation_id=identifier), body, version)


def changes() -> dict[str, list[Any]]:
    """For each field of the header two values that are written differently."""
    texts = {field.name: ["jms/Replies", "jms/Ems"] for field in dataclasses.fields(Header) if field.name != "extras"}
    special: dict[str, list[Any]] = {
        "activity_status": [
            ActivityStatusType(value=ActivityStatusEnumType.SUCCESS),
            ActivityStatusType(value=ActivityStatusEnumType.WARNING),
        ],
        "batch_sequence_end_of_reply": [True, False],
        "batch_sequence_number": [1, 2],
        "communication_pattern": [CommunicationPatternType.SimpleResponse, CommunicationPatternType.BulkResponse],
        "communication_style": [CommunicationStyleType.MSG, CommunicationStyleType.RPC],
        "compression_type": [CompressionTypeType(value=one) for one in list(CompressionEnumType)[:2]],
        "msg_type": [MessageTypeType.REQUEST, MessageTypeType.RESPONSE],
        "msg_specific_properties": [
            HeaderMsgSpecificProperties(property=[HeaderMsgSpecificPropertiesProperty(prop_name="a", prop_value=text)])
            for text in ("1", "2")
        ],
        "packing_type": [PackingTypeType(value=one) for one in list(PackingEnumType)[:2]],
        "priority": ["3", "4"],
        "requested_batch_size": [10, 20],
        "security": ["<a>1</a>", "<a>2</a>"],
        "timestamp": [NOON, NOON + dt.timedelta(seconds=61)],
        "vendor_extensions": [
            AnyListType(any_=[RawXml(b"<v>1</v>")]),
            AnyListType(any_=[RawXml(b"<v>2</v>")]),
        ],
    }
    return texts | special


@pytest.mark.parametrize("field", changes())
def test_no_value_of_one_header_reaches_a_message_of_another(field: str) -> None:
    templates = HeaderTemplates(BindingProfile())
    one, other = (request(**{field: value}) for value in changes()[field])
    for _ in range(3):
        assert written(templates, one, REQUEST).body != written(templates, other, REQUEST).body


def test_what_equals_another_value_and_is_no_such_value_is_refused_all_the_same() -> None:
    templates = HeaderTemplates(BindingProfile())
    for _ in range(3):
        written(templates, request(batch_sequence_number=1), REQUEST)
    with pytest.raises(HeaderError, match="batchSequenceNumber"):
        templates.to_jms(request(batch_sequence_number=True), REQUEST, names=NAMES)


def test_a_value_that_was_changed_inside_a_header_counts() -> None:
    templates = HeaderTemplates(BindingProfile())
    header = response()
    for _ in range(3):
        written(templates, header, RESPONSE)
    header.activity_status.value = ActivityStatusEnumType.FAILURE  # type: ignore[union-attr]
    assert b"FAILURE" in written(templates, header, RESPONSE).body


def test_a_message_of_a_known_key_is_made_without_its_header() -> None:
    templates, more = HeaderTemplates(BindingProfile()), {"names": NAMES, "correlation_id": "ID:1"}
    for _ in range(3):
        templates.to_jms(request(), REQUEST, key=("a",), **more)  # type: ignore[arg-type]
        templates.to_jms(request(activity_name="b"), REQUEST, key=("b",), **more)  # type: ignore[arg-type]
    later = NOON + dt.timedelta(seconds=61)
    for key, name_ in (("a", "getManagedElement"), ("b", "b")):
        header = request(activity_name=name_, correlation_id="id-9", timestamp=later)
        made = templates.again((key,), REQUEST, "id-9", later, **more)  # type: ignore[arg-type]
        assert made == written(templates, header, REQUEST)
    assert templates.again(("c",), REQUEST, "id-9", later, **more) is None  # type: ignore[arg-type]
    for body, identifier in ((RawXml(b"<a/>"), "id-9"), (REQUEST, "<&>")):
        assert templates.again(("a",), body, identifier, later, **more) is None  # type: ignore[arg-type]


def test_a_reply_destination_beside_the_header() -> None:
    templates = HeaderTemplates(BindingProfile())
    header = request(sender_uri="jms/Nobody")
    for _ in range(3):
        assert templates.to_jms(header, REQUEST, names=NAMES, reply_to=Queue("OWN")).reply_to == Queue("OWN")
        with pytest.raises(NamingError, match="jms/Nobody"):
            templates.to_jms(header, REQUEST, names=NAMES)


def test_each_message_has_its_time() -> None:
    templates = HeaderTemplates(BindingProfile())
    for seconds, text in ((0, b"12:00:00Z"), (61, b"12:01:01Z"), (0.5, b"12:00:00.5Z"), (0, b"12:00:00Z")):
        body = written(templates, request(timestamp=NOON + dt.timedelta(seconds=seconds)), REQUEST).body
        assert b"<hdr:timestamp>2026-05-04T" + text in body


def test_a_body_that_cannot_be_written_is_an_error() -> None:
    templates = HeaderTemplates(BindingProfile())
    for _ in range(3):
        with pytest.raises(EncodeError, match=r"GetManagedElementResponse\.me: .*needed, not str"):
            templates.to_jms(request(), GetManagedElementResponse(me="NE-7"), names=NAMES)  # type: ignore[arg-type]
        with pytest.raises(EncodeError, match=r"U\+0001"):
            templates.to_jms(request(), GetManagedElementRequest(me_ref=name("ME=\x01")), names=NAMES)


def test_where_the_time_is_a_property_each_message_has_its_own() -> None:
    templates = HeaderTemplates(BindingProfile(optional_fields=frozenset({"timestamp"})))
    for seconds in range(3):
        time = NOON + dt.timedelta(seconds=seconds)
        found = written(templates, request(timestamp=time), REQUEST).properties["MTOSI_timestamp"]
        assert found == f"2026-05-04T12:00:0{seconds}Z"


@pytest.mark.parametrize(
    "wrong", [{"msg_type": None}, {"sender_uri": None}, {"priority": "many"}, {"msg_name": "\x02"}], ids=str
)
def test_a_header_that_must_not_be_sent_is_an_error_each_time(wrong: dict[str, Any]) -> None:
    templates = HeaderTemplates(BindingProfile())
    for _ in range(3):
        with pytest.raises((HeaderError, EncodeError)):
            templates.to_jms(request(**wrong), REQUEST, names=NAMES)


def test_what_peers_say_does_not_fill_the_memory() -> None:
    templates = HeaderTemplates(BindingProfile())
    for number in range(600):
        for _ in range(2):
            templates.to_jms(request(activity_name=str(number)), REQUEST, names=NAMES)
    for _ in range(3):
        written(templates, request(activity_name="x" * 2_000), REQUEST)
    assert len(templates) <= 256


def test_bodies_and_headers_that_are_no_objects_of_ours() -> None:
    templates = HeaderTemplates(BindingProfile())
    read = parse(Envelope(header=request(sender_uri="  jms/Os "), body=REQUEST).to_bytes()).header
    assert read is not None
    for _ in range(3):
        written(templates, request(), RawXml(b"<anything/>"))
        written(templates, request(msg_type=MessageTypeType.NOTIFICATION), REQUEST)
        written(templates, read, REQUEST)
