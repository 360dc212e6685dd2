"""Headers of which a form was made: the messages are those that the binding makes of each by itself."""

from __future__ import annotations

import dataclasses
import datetime as dt
import uuid
from typing import Any

import pytest

from mtosi_jms.errors import EncodeError, NamingError
from mtosi_jms.jms import BindingProfile, NamingContext, Queue
from mtosi_jms.jms.binding import to_jms
from mtosi_jms.jms.templates import HeaderForm, HeaderForms, Unfit, fits
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
    form = HeaderForm(header, profile, version, has_reply_to=False)
    for identifier in ("5b0f0a3e-6a3c-4d1e-9a55-5f0c3d8e7a11", "x", "0"):
        own = dataclasses.replace(header, correlation_id=identifier)
        envelope = Envelope(header=own, body=body, version=version)
        anew = to_jms(own, envelope, profile, names=NAMES, correlation_id="ID:1")
        assert form.message(body, identifier, NOON, names=NAMES, correlation_id="ID:1") == anew


def test_a_reply_destination_beside_the_header() -> None:
    form = HeaderForm(request(sender_uri="jms/Nobody"), BindingProfile(), "1.1", has_reply_to=True)
    assert form.message(REQUEST, "id", NOON, names=NAMES, reply_to=Queue("OWN")).reply_to == Queue("OWN")
    with pytest.raises(NamingError, match="jms/Nobody"):
        form.message(REQUEST, "id", NOON, names=NAMES)


def test_each_message_has_its_time() -> None:
    form = HeaderForm(request(), BindingProfile(), "1.1", has_reply_to=False)
    for seconds, text in ((0, b"12:00:00Z"), (61, b"12:01:01Z"), (0.5, b"12:00:00.5Z"), (0, b"12:00:00Z")):
        body = form.message(REQUEST, "id", NOON + dt.timedelta(seconds=seconds), names=NAMES).body
        assert b"<hdr:timestamp>2026-05-04T" + text in body


def test_a_body_that_cannot_be_written_is_told() -> None:
    form = HeaderForm(request(), BindingProfile(), "1.1", has_reply_to=False)
    with pytest.raises(EncodeError, match=r"GetManagedElementResponse\.me: .*needed, not str"):
        form.message(GetManagedElementResponse(me="NE-7"), "id", NOON, names=NAMES)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match=r"U\+0001"):
        form.message(GetManagedElementRequest(me_ref=name("ME=\x01")), "id", NOON, names=NAMES)


def test_where_the_time_is_a_property_there_is_no_form() -> None:
    profile = BindingProfile(optional_fields={"timestamp"})  # type: ignore[arg-type]
    with pytest.raises(Unfit):
        HeaderForm(request(), profile, "1.1", has_reply_to=False)
    forms = HeaderForms(profile)
    assert [forms.get(("key",), request) for _ in range(3)] == [None, None, None]


def test_a_header_that_must_not_be_sent_has_no_form() -> None:
    forms = HeaderForms(BindingProfile())
    for wrong in (request(msg_type=None), request(sender_uri=None), request(priority="many"), request(msg_name="\x02")):
        assert [forms.get((str(wrong),), lambda wrong=wrong: wrong) for _ in range(3)] == [None, None, None]


def test_a_form_is_made_once_and_not_for_a_single_message() -> None:
    forms = HeaderForms(BindingProfile())
    made: list[Header] = []

    def make() -> Header:
        made.append(request())
        return made[-1]

    found = [forms.get(("key",), make) for _ in range(5)]
    assert found[0] is None
    assert found[1] is not None
    assert found[1:] == [found[1]] * 4
    assert len(made) == 1


def test_what_peers_say_does_not_fill_the_memory() -> None:
    forms = HeaderForms(BindingProfile())
    for number in range(2_000):
        for _ in range(2):
            forms.get((str(number),), request)
    assert len(forms) <= 256


def test_what_is_long_is_not_kept() -> None:
    forms = HeaderForms(BindingProfile())
    assert [forms.get(("jms/Ems", None, "x" * 2_000), request) for _ in range(3)] == [None] * 3
    assert len(forms) == 0


@pytest.mark.parametrize(
    ("identifier", "fit"),
    [
        ("5b0f0a3e-6a3c-4d1e-9a55-5f0c3d8e7a11", True),
        ("A1", True),
        ("", False),
        ("-", False),
        (" id", False),
        ("a&b", False),
        ("<x>", False),
        ("é", False),
        ("²", False),
        ("a\n", False),
    ],
)
def test_which_ids_fit(identifier: str, fit: bool) -> None:
    assert fits(identifier) is fit


def test_what_is_no_text_fits_not() -> None:
    assert not any(fits(identifier) for identifier in (uuid.UUID(int=1), b"id", 7))  # type: ignore[arg-type]
