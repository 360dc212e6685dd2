"""Header templates: the messages are those that the binding makes of each header by itself."""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from typing import Any

import pytest

from mtosi_jms.errors import EncodeError, NamingError
from mtosi_jms.jms import BindingProfile, NamingContext, Queue
from mtosi_jms.jms.binding import to_jms
from mtosi_jms.jms.templates import HeaderTemplates
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.stubs.fmw.hdr import (
    ActivityStatusEnumType,
    ActivityStatusType,
    CommunicationPatternType,
    CommunicationStyleType,
    MessageTypeType,
)
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest, GetManagedElementResponse
from mtosi_jms.stubs.nrf.me import ManagedElementType

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


def message_of(templates: HeaderTemplates, header: Header, body: Any = REQUEST, **how: Any) -> Any:
    """A message by a template, which is made when a header of its kind comes for the second time."""
    made = [templates.message(header, body, names=NAMES, **how) for _ in range(2)]
    assert made[0] is None or made[0] == made[1]
    return made[1]


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
    ],
    ids=["request", "reply address", "text", "response", "RPC"],
)
def test_the_message_is_the_same(header: Header, body: Any, version: str, preset: str) -> None:
    profile = BindingProfile.preset(preset)
    if "timestamp" in profile.optional_fields:
        pytest.skip("the time is a property by this preset")
    templates = HeaderTemplates(profile)
    for identifier in ("5b0f0a3e-6a3c-4d1e-9a55-5f0c3d8e7a11", "x", "0"):
        own = dataclasses.replace(header, correlation_id=identifier)
        anew = to_jms(
            own, Envelope(header=own, body=body, version=version), profile, names=NAMES, correlation_id="ID:1"
        )
        assert message_of(templates, own, body, version=version, correlation_id="ID:1") == anew


FIELDS: dict[str, tuple[Any, Any]] = {
    "activity_name": ("a", "b"),
    "msg_name": ("a", "b"),
    "msg_type": (MessageTypeType.REQUEST, MessageTypeType.RESPONSE),
    "sender_uri": ("jms/Os", "jms/Ems"),
    "destination_uri": ("a", "b"),
    "reply_to_uri": ("jms/Os", "jms/Replies"),
    "originator_uri": ("a", "b"),
    "failure_replyto_uri": ("jms/Os", "jms/Replies"),
    "activity_status": (
        ActivityStatusType(value=ActivityStatusEnumType.SUCCESS, qualifier="a"),
        ActivityStatusType(value=ActivityStatusEnumType.SUCCESS, qualifier="b"),
    ),
    "security": ("a", "b"),
    "security_type": ("a", "b"),
    "priority": ("3", "4"),
    "communication_pattern": (CommunicationPatternType.SimpleResponse, CommunicationPatternType.BulkResponse),
    "communication_style": (CommunicationStyleType.MSG, CommunicationStyleType.RPC),
    "requested_batch_size": (1, 2),
    "batch_sequence_number": (1, 2),
    "batch_sequence_end_of_reply": (True, False),
    "file_location_uri": ("a", "b"),
}


@pytest.mark.parametrize("field", [one.name for one in Header.__xml__.fields])
def test_no_field_of_one_header_gets_into_the_message_of_another(field: str) -> None:
    """Whatever two headers differ in, each message is that of its own header."""
    if field not in FIELDS and field not in ("correlation_id", "timestamp"):
        pytest.skip("a field with parts of its own: such a header has no template")
    values = FIELDS.get(field, ("id-1", "id-2") if field == "correlation_id" else (NOON, NOON + dt.timedelta(1)))
    templates = HeaderTemplates(BindingProfile())
    for value in [*values] * 3:
        header = request(**{field: value})
        made = templates.message(header, REQUEST, names=NAMES)
        anew = to_jms(header, Envelope(header=header, body=REQUEST), BindingProfile(), names=NAMES)
        assert made in (None, anew)


def test_a_reply_destination_beside_the_header() -> None:
    templates = HeaderTemplates(BindingProfile())
    header = request(sender_uri="jms/Nobody")
    assert message_of(templates, header, reply_to=Queue("OWN")).reply_to == Queue("OWN")
    with pytest.raises(NamingError, match="jms/Nobody"):
        to_jms(header, Envelope(header=header, body=REQUEST), names=NAMES)
    assert message_of(templates, request()).reply_to == Queue("OS")


def test_each_message_has_its_time() -> None:
    templates = HeaderTemplates(BindingProfile())
    for seconds, text in ((0, b"12:00:00Z"), (61, b"12:01:01Z"), (0.5, b"12:00:00.5Z"), (0, b"12:00:00Z")):
        header = request(timestamp=NOON + dt.timedelta(seconds=seconds))
        assert b"<hdr:timestamp>2026-05-04T" + text in message_of(templates, header).body


def test_a_body_that_cannot_be_written_is_told() -> None:
    templates = HeaderTemplates(BindingProfile())
    message_of(templates, request())
    with pytest.raises(EncodeError, match=r"GetManagedElementResponse\.me: .*needed, not str"):
        templates.message(request(), GetManagedElementResponse(me="NE-7"), names=NAMES)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"U\+0001"):
        templates.message(request(), GetManagedElementRequest(me_ref=name("ME=\x01")), names=NAMES)


@pytest.mark.parametrize(
    "header",
    [
        request(msg_type=None),
        request(sender_uri=None),
        request(priority="many"),
        request(msg_name="\x02"),
        request(destination_uri="x" * 2_001),
        request(timestamp=None),
        request(activity_status="SUCCESS"),
    ],
    ids=["no type", "no sender", "priority", "text", "long", "no time", "status"],
)
def test_a_header_that_is_not_to_be_sent_or_kept_has_no_template(header: Header) -> None:
    assert message_of(HeaderTemplates(BindingProfile()), header) is None


def test_where_the_time_is_a_property_there_is_no_template() -> None:
    profile = BindingProfile(optional_fields={"timestamp"})  # type: ignore[arg-type]
    assert message_of(HeaderTemplates(profile), request()) is None


def test_what_peers_say_does_not_fill_the_memory() -> None:
    templates = HeaderTemplates(BindingProfile())
    for number in range(2_000):
        message_of(templates, request(destination_uri=str(number)))
    assert len(templates) <= 256


@pytest.mark.parametrize("identifier", ["", "-", " id", "a&b", "<x>", "é", "²", "a\n", uuid.UUID(int=1), b"id", 7])
def test_an_id_that_is_not_letters_digits_and_hyphens_has_no_template(identifier: Any) -> None:
    templates = HeaderTemplates(BindingProfile())
    message_of(templates, request())
    assert templates.message(request(correlation_id=identifier), REQUEST, names=NAMES) is None
