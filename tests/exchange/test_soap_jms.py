"""W3C's SOAP over JMS: properties of requests and answers, its faults, and which services speak it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import from_jms
from mtosi_jms.binding.soap_jms import breach
from mtosi_jms.errors import MtosiError, SoapJmsFault
from mtosi_jms.jms import JmsMessage, MessageType, Queue
from mtosi_jms.namespaces import TRANSPORT_JMS_W3C
from mtosi_jms.soap import Envelope, Header, parse
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri import mer
from mtosi_jms.stubs.mri.equipment_inventory_retrieval import EquipmentInventoryRetrieval
from mtosi_jms.stubs.mri.managed_element_retrieval import ManagedElementRetrieval
from mtosi_jms.testing import connect_privately
from mtosi_jms.transport import Connection

from ..waiting import background
from .conftest import SmallEms

PATIENCE = 60
W3C = BindingProfile(soap_jms="w3c")
ASKED, SERVED = Queue("ASKED"), Queue("SERVED")
PLAIN = {
    "SOAPJMS_requestURI": "jms:queue:SERVED",
    "SOAPJMS_contentType": "text/xml; charset=UTF-8",
    "SOAPJMS_bindingVersion": "1.0",
}
"""What a requestor of another make has to send."""
CODES = {
    "contentEncodingNotSupported",
    "contentTypeMismatch",
    "malformedRequestURI",
    "mismatchedSoapAction",
    "missingContentType",
    "missingRequestURI",
    "missingSoapAction",
    "targetServiceNotAllowedInRequestURI",
    "unrecognizedBindingVersion",
    "unsupportedJMSMessageFormat",
}
NAMES = [
    f"SOAPJMS_{name}"
    for name in ("requestURI", "contentType", "bindingVersion", "soapAction", "isFault", "contentEncoding")
]
WORDS = [
    "1.0",
    "jms:queue:X",
    "jms:jndi:x?a=%41",
    "text/xml",
    "text/xml; charset=utf-16",
    "text/xml;charset=utf-7",
    'application/soap+xml; action="x"',
]
ACTION_12 = 'application/soap+xml; charset=UTF-8; action="urn:a"'
NO_CONTENT = {"SOAPJMS_contentType": None}


class OnW3c(ManagedElementRetrieval):
    """The service as if its WSDL named the W3C's transport, and an action."""

    __service__ = dataclasses.replace(
        ManagedElementRetrieval.__service__,
        transport=TRANSPORT_JMS_W3C,
        operations=tuple(
            dataclasses.replace(one, soap_action=f"urn:{one.name}")
            for one in ManagedElementRetrieval.__service__.operations
        ),
    )


@pytest.fixture
def connection() -> Iterator[Connection]:
    with connect_privately(names={"jms/Ems": "queue:SERVED", "jms/OS": "queue:OS"}) as made:
        made.start()
        yield made


def taken(connection: Connection, queue: Any) -> JmsMessage:
    with connection.session() as session, session.consumer(queue) as consumer:
        delivery = consumer.receive(PATIENCE)
        assert delivery is not None
        delivery.acknowledge()
        return delivery.message


def with_properties(message: JmsMessage, changes: dict[str, Any]) -> JmsMessage:
    """A message with other properties; None takes one away."""
    properties = {**message.properties, **changes}
    return dataclasses.replace(
        message, properties={key: value for key, value in properties.items() if value is not None}
    )


def plain_request(version: str = "1.1", **fields: Any) -> JmsMessage:
    """A request of a peer that knows nothing of MTOSI."""
    body = mer.GetManagedElementRequest(me_ref=name("MD=EMS1/ME=NE-1"))
    document = Envelope(body=body, version=version).to_bytes()
    return JmsMessage(**{"body": document, "properties": PLAIN, "message_type": MessageType.BYTES} | fields)


def asked(connection: Connection, message: JmsMessage) -> JmsMessage:
    """The answer to a request of a peer's."""
    with connection.session() as session:
        replies = session.temporary_queue()
        session.send(SERVED, dataclasses.replace(message, reply_to=replies))
        with session.consumer(replies) as consumer:
            delivery = consumer.receive(PATIENCE)
            assert delivery is not None
            return delivery.message


@pytest.mark.parametrize(
    ("address", "uri", "more"),
    [
        (ASKED, "jms:queue:ASKED", {}),
        ("queue:ASKED", "jms:queue:ASKED", {}),
        ("jms:queue:ASKED", "jms:queue:ASKED", {}),
        ("jms:queue:ASKED?priority=7&x=%20", "jms:queue:ASKED?priority=7&x=%20", {}),
        ("jms:queue:ASKED?replyToName=OS&priority=7", "jms:queue:ASKED?priority=7", {}),
        ("jms:queue:ASKED?targetService=me", "jms:queue:ASKED", {"SOAPJMS_targetService": "me"}),
        (
            "jms:queue:ASKED?jndiURL=tcp%3A%2F%2Fme%3Ahush%40h&jndi-java.naming.security.credentials=hush",
            "jms:queue:ASKED?jndiURL=tcp%3A%2F%2Fme%3A%2A%2A%2A%40h",
            {},
        ),
    ],
)
def test_properties_of_a_request(connection: Connection, address: Any, uri: str, more: dict[str, str]) -> None:
    with mtosi.Requestor(connection, sender_uri="jms/OS") as requestor:
        OnW3c(requestor, address).get_managed_element.batches(me_ref="MD=EMS1/ME=NE-1", batch_size=0)
        message = taken(connection, ASKED)
    said = {key: value for key, value in message.properties.items() if key.startswith("SOAPJMS_")}
    assert said == PLAIN | {"SOAPJMS_requestURI": uri, "SOAPJMS_soapAction": "urn:getManagedElement"} | more
    assert message.message_type is MessageType.TEXT
    assert message.properties["MTOSI_msgType"] == "REQUEST"  # beside MTOSI's own


def test_a_request_in_soap_1_2_says_so(connection: Connection) -> None:
    def in_1_2(envelope: Envelope) -> Envelope:
        envelope.version = "1.2"
        return envelope

    with mtosi.Requestor(connection, sender_uri="jms/OS") as requestor:
        options = mtosi.CallOptions(on_request=in_1_2)
        OnW3c(requestor, ASKED).get_all_managed_elements.batches(batch_size=0, options=options)
    assert taken(connection, ASKED).properties["SOAPJMS_contentType"] == "application/soap+xml; charset=UTF-8"


@pytest.mark.parametrize("version", ["1.1", "1.2"])
@pytest.mark.parametrize("kind", [MessageType.TEXT, MessageType.BYTES])
@pytest.mark.parametrize("identifier", [None, "theirs"])
def test_an_answer_is_like_its_request(
    connection: Connection, version: str, kind: MessageType, identifier: str | None
) -> None:
    media = {"1.1": "text/xml", "1.2": "application/soap+xml"}[version]
    properties = PLAIN | {"SOAPJMS_contentType": f"{media};charset='utf-8'", "SOAPJMS_soapAction": '"urn:a"'}
    request = plain_request(version, properties=properties, message_type=kind, correlation_id=identifier)
    with mtosi.Supplier(connection, SERVED, [SmallEms(1)], profile=W3C):
        answer = asked(connection, request)
    said = {key: value for key, value in answer.properties.items() if key.startswith("SOAPJMS_")}
    assert said == PLAIN | {"SOAPJMS_contentType": f"{media}; charset=UTF-8", "SOAPJMS_isFault": False}
    assert answer.message_type is kind
    assert answer.correlation_id
    assert answer.correlation_id == identifier or (identifier is None and answer.correlation_id.startswith("ID:"))
    envelope = from_jms(answer)
    assert isinstance(envelope.body, mer.GetManagedElementResponse)
    assert envelope.version == version


def test_an_operation_that_fails_answers_a_fault(connection: Connection) -> None:
    with mtosi.Supplier(connection, SERVED, [SmallEms(0)], profile=W3C):
        answer = asked(connection, plain_request())
    assert answer.properties["SOAPJMS_isFault"] is True
    fault = from_jms(answer).fault
    assert fault is not None
    assert fault.kind == "entityNotFound"


@pytest.mark.parametrize("validation", ["lenient", "strict"])
def test_what_comes_without_a_header_is_as_good(connection: Connection, validation: Any) -> None:
    profile = BindingProfile(soap_jms="w3c", validation=validation)
    warned: list[Any] = []
    options = mtosi.CallOptions(on_reply=lambda envelope: warned.append(envelope.warnings), timeout=PATIENCE)
    answer = plain_request(body=Envelope(body=mer.GetManagedElementResponse()).to_bytes())
    with (
        mtosi.Supplier(connection, SERVED, [SmallEms(1)], profile=profile),
        mtosi.Requestor(connection, sender_uri="jms/OS", profile=profile) as requestor,
    ):
        assert asked(connection, plain_request()).properties["SOAPJMS_isFault"] is False
        stub = ManagedElementRetrieval(requestor, ASKED)
        called = background(lambda: stub.get_managed_element(me_ref="MD=EMS1/ME=NE-1", options=options))
        request = taken(connection, ASKED)
        answer = dataclasses.replace(answer, correlation_id=request.message_id)
        with connection.session() as session:
            assert request.reply_to is not None
            session.send(request.reply_to, with_properties(answer, {"SOAPJMS_isFault": "false"}))
        assert called.result(PATIENCE) == mer.GetManagedElementResponse()
    assert warned == [[]]


BREACHES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("unsupportedJMSMessageFormat", {}, {"message_type": MessageType.MAP, "body": b""}),
    ("unsupportedJMSMessageFormat", {}, {"message_type": MessageType.OBJECT, "body": b""}),
    ("missingContentType", NO_CONTENT, {}),
    ("missingContentType", {"SOAPJMS_contentType": " "}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "application/json"}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "multipart/related; type=text/xml"}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "application/soap+xml; charset=UTF-8"}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "text/xml; charset=base64"}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "text/xml; charset=x\0y"}, {}),
    ("contentTypeMismatch", {"SOAPJMS_contentType": "text/xml; charset=punycode"}, {}),
    (
        "contentTypeMismatch",
        {"SOAPJMS_contentType": 'text/xml; charset="latin-1"'},
        {"message_type": MessageType.BYTES},
    ),
    ("contentEncodingNotSupported", {"SOAPJMS_contentEncoding": "gzip"}, {}),
    ("missingRequestURI", {"SOAPJMS_requestURI": None}, {}),
    ("missingRequestURI", {"SOAPJMS_requestURI": ""}, {}),
    ("malformedRequestURI", {"SOAPJMS_requestURI": "http://ems"}, {}),
    ("malformedRequestURI", {"SOAPJMS_requestURI": "jms:queue:X?%"}, {}),
    ("malformedRequestURI", {"SOAPJMS_requestURI": 7}, {}),
    ("targetServiceNotAllowedInRequestURI", {"SOAPJMS_requestURI": "jms:queue:X?targetService=y"}, {}),
    ("unrecognizedBindingVersion", {"SOAPJMS_bindingVersion": "2.0"}, {}),
]


@pytest.mark.parametrize(("code", "properties", "fields"), BREACHES)
def test_a_breach_is_answered_and_raised(
    connection: Connection, code: str, properties: dict[str, Any], fields: dict[str, Any]
) -> None:
    """A request that is spoiled on its way."""
    told: list[Any] = []
    with (
        mtosi.Supplier(connection, SERVED, [SmallEms(1)], profile=W3C, on_error=told.append),
        mtosi.Requestor(connection, sender_uri="jms/OS", profile=W3C) as requestor,
    ):
        batches = ManagedElementRetrieval(requestor, ASKED).get_all_managed_elements.batches(
            batch_size=0, timeout=PATIENCE
        )
        spoiled = dataclasses.replace(with_properties(taken(connection, ASKED), properties), **fields)
        with connection.session() as session:
            session.send(SERVED, dataclasses.replace(spoiled, correlation_id=spoiled.message_id))
        with pytest.raises(SoapJmsFault) as caught:
            next(batches)
    assert caught.value.fault_code == code
    assert caught.value.fault_string
    assert told[-1].fault_code == code if spoiled.body else told


@pytest.mark.parametrize(
    ("code", "action"),
    [("missingSoapAction", None), ("mismatchedSoapAction", "urn:b"), (None, "urn:a"), (None, '"urn:a"')],
)
def test_the_action_of_a_content_type(connection: Connection, code: str | None, action: str | None) -> None:
    request = with_properties(plain_request("1.2"), {"SOAPJMS_contentType": ACTION_12, "SOAPJMS_soapAction": action})
    with mtosi.Supplier(connection, SERVED, [SmallEms(1)], profile=W3C):
        answer = asked(connection, request)
    fault = from_jms(answer).fault
    assert answer.properties["SOAPJMS_isFault"] is (code is not None)
    assert (fault.fault_code if fault is not None else None) == code


@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_a_fault_of_the_binding_in_each_version_of_soap(version: str) -> None:
    made = Envelope.bare_fault(SoapJmsFault("no", fault_code="missingContentType"), Header(), version=version)
    wire = made.to_bytes()
    assert b">soapjms:missingContentType</" in wire
    assert (b":Sender<" in wire) is (version == "1.2")
    again = parse(wire)
    assert isinstance(again.fault, SoapJmsFault)
    assert (again.fault.fault_code, again.fault.fault_string) == ("missingContentType", "no")
    assert again.encode() == parse(again.encode()).encode()


def test_a_code_of_another_namespace_is_none_of_the_binding() -> None:
    wire = Envelope.bare_fault(SoapJmsFault("no", fault_code="missingContentType"), Header()).to_bytes()
    fault = parse(wire.replace(TRANSPORT_JMS_W3C.encode(), b"urn:other")).fault
    assert fault is not None
    assert not isinstance(fault, SoapJmsFault)
    assert fault.fault_code == "missingContentType"


@pytest.mark.parametrize(
    ("soap_jms", "stub", "spoken"),
    [
        ("wsdl", ManagedElementRetrieval, False),
        ("wsdl", OnW3c, True),
        ("w3c", ManagedElementRetrieval, True),
        ("off", OnW3c, False),
    ],
)
def test_who_speaks_it(connection: Connection, soap_jms: Any, stub: Any, spoken: bool) -> None:
    profile = BindingProfile(soap_jms=soap_jms)
    service = SmallEms(1)
    service.__class__ = type("Serving", (type(service),), {"__service__": stub.__service__})
    with mtosi.Requestor(connection, sender_uri="jms/OS", profile=profile) as requestor:
        stub(requestor, ASKED).get_all_managed_elements.batches(batch_size=0)
        request = taken(connection, ASKED)
        with mtosi.Supplier(connection, SERVED, [service], profile=profile):
            answer = asked(connection, request)
    assert ("SOAPJMS_bindingVersion" in request.properties) is spoken
    assert ("SOAPJMS_bindingVersion" in answer.properties) is spoken


def test_a_destination_of_both_kinds_of_service_goes_by_the_request(connection: Connection) -> None:
    class Serving(OnW3c.Supplier):
        __service__ = OnW3c.__service__

        def get_managed_element(self, request: Any, context: Any) -> Any:
            return mer.GetManagedElementResponse()

    services = [Serving(), EquipmentInventoryRetrieval.Supplier()]
    found = []
    with mtosi.Supplier(connection, SERVED, services):
        for properties in (PLAIN, {}):
            answer = asked(connection, plain_request(properties=properties))
            found.append((answer.properties.get("SOAPJMS_isFault"), from_jms(answer).fault))
    assert found == [(False, None), (None, None)]


@given(
    st.dictionaries(st.sampled_from(NAMES), st.text() | st.sampled_from(WORDS) | st.booleans() | st.integers(0, 9)),
    st.binary(max_size=40) | st.just(plain_request().body),
    st.sampled_from(MessageType),
)
def test_any_properties_give_an_envelope_or_an_error_of_ours(
    properties: dict[str, Any], body: bytes, kind: MessageType
) -> None:
    has_body = kind not in (MessageType.MAP, MessageType.STREAM)
    message = JmsMessage(properties=properties, body=body if has_body else b"", message_type=kind)
    envelope = None
    with contextlib.suppress(MtosiError):
        envelope = from_jms(message)
    fault = breach(message, envelope)
    if fault is not None:
        assert fault.fault_code in CODES
        assert Envelope.bare_fault(fault, Header()).to_bytes()  # it can be answered


def test_is_fault_that_says_otherwise_is_a_warning() -> None:
    for said, rules in ((True, ["W3C"]), ("TRUE", ["W3C"]), (False, []), ("false", []), ("perhaps", [])):
        message = with_properties(plain_request(), {"SOAPJMS_isFault": said})
        assert [warning.rule for warning in from_jms(message).warnings] == rules


def test_bytes_in_an_encoding_that_the_content_type_alone_says() -> None:
    text = plain_request().body.decode().partition("?>")[2].replace("NE-1", "Zürich")
    for charset in ("latin-1", "UTF-16", "utf-8"):
        properties = PLAIN | {"SOAPJMS_contentType": f"text/xml; charset={charset}"}
        message = plain_request(body=text.encode(charset), properties=properties)
        assert "Zürich" in str(from_jms(message).body.me_ref)
    with pytest.raises(mtosi.errors.MalformedXmlError):  # what is not in its encoding is not text
        from_jms(plain_request(body=text.encode("latin-1")))
