"""Whole messages: `to_jms`, `from_jms`, and Table 3 out of Figure 12."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import from_jms, map_header, sender_of, to_jms
from mtosi_jms.binding.profile import OPTIONAL_FIELDS
from mtosi_jms.errors import EnvelopeError, HeaderError, MalformedXmlError, NamingError
from mtosi_jms.jms import DeliveryMode, JmsMessage, NamingContext, Queue, TemporaryQueue
from mtosi_jms.jms.message import MessageType, PropertyValue
from mtosi_jms.soap import Header, parse
from mtosi_jms.stubs.fmw.hdr import CommunicationStyleType, MessageTypeType
from mtosi_jms.xmlbind import RawXml

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
NAMES = NamingContext({"jms/S": Queue("PHYS.S"), "jms/R": Queue("PHYS.R"), "jms/RtoInventoryOSQA": Queue("PHYS.Q1")})
BODY = RawXml(b"<x></x>")
TABLE3 = {
    "MTOSI_destinationURI": "jms/RtoNMSQA",
    "MTOSI_senderURI": "jms/RtoInventoryOSQA",
    "MTOSI_activityName": "getInventory",
    "MTOSI_msgType": "REQUEST",
    "MTOSI_msgName": "getInventoryRequest",
    "MTOSI_failureReplytoURI": "jms/RtoInventoryOSQA",
    "MTOSI_communicationPattern": "SimpleResponse",
    "MTOSI_communicationStyle": "MSG",
}
"""The properties that Table 3 prints."""
FIGURE_FIELDS = (
    ("activityName", "getInventory"),
    ("msgName", "getInventoryRequest"),
    ("msgType", "REQUEST"),
    ("correlationId", "0001"),
    ("senderURI", "jms/RtoInventoryOSQA"),
    ("destinationURI", "jms/RtoNMSQA"),
    ("failureReplytoURI", "jms/RtoInventoryOSQA"),
    ("communicationPattern", "SimpleResponse"),
    ("communicationStyle", "MSG"),
    ("timestamp", "20051004140305"),
)
"""What the header of Figure 12 says, in the order in which it says it (C11)."""


def document(fields: str, body: str = "<x/>") -> str:
    return (
        f'<s:Envelope xmlns:s="{SOAP}"><s:Header><h:header xmlns:h="{HDR}">{fields}</h:header></s:Header>'
        f"<s:Body>{body}</s:Body></s:Envelope>"
    )


def request(**fields: object) -> Header:
    given: dict[str, object] = {
        "msg_type": MessageTypeType.REQUEST,
        "sender_uri": "jms/S",
        "correlation_id": "1",
        **fields,
    }
    return Header(**given)  # type: ignore[arg-type]


def check_table3(data: str | bytes) -> None:
    envelope = parse(data)
    assert envelope.header is not None
    made = to_jms(envelope.header, envelope, BindingProfile.preset("table3"), names=NAMES)
    assert dict(made.properties) == TABLE3
    assert {type(value) for value in made.properties.values()} == {str}
    assert (made.reply_to, made.priority) == (Queue("PHYS.Q1"), 4)
    assert made.correlation_id is None, "R3d"
    assert {warning.rule for warning in envelope.warnings} >= {"order"}, "C11"
    by_rules = map_header(envelope.header)
    assert by_rules.properties == {name: value for name, value in TABLE3.items() if name != "MTOSI_senderURI"}, "C01"
    assert by_rules.reply_to_uri == "jms/RtoInventoryOSQA"
    every = map_header(envelope.header, BindingProfile(optional_fields=OPTIONAL_FIELDS)).properties
    assert every["MTOSI_timestamp"] == "20051004140305", "C03"


@pytest.mark.obligation(
    "T3.1", "T3.2", "T3.3", "T3.4", "T3.5", "T3.6", "T3.7", "T3.8", "T3.9", "T3.10", "R3d", "R16a", "C01", "C02", "C04"
)
def test_table_3_out_of_the_facts_of_figure_12() -> None:
    check_table3(document("".join(f"<h:{name}>{text}</h:{name}>" for name, text in FIGURE_FIELDS)))


@pytest.mark.obligation("F12", "T3.2", "C09", "C10")
def test_table_3_out_of_figure_12_itself(shared: Path) -> None:
    text = (shared / "spec" / "using-jms-as-an-mtosi-transport.md").read_text("utf-8")
    first, second = re.findall(r"```\n(.*?)```", text[: text.index("Figure 13. MTOSI body")], re.DOTALL)[-2:]
    figure = first + second
    assert "name:value" in figure
    assert "xmlns:schemaLocation" in figure
    for broken in (figure, figure.replace("xmlns:schemaLocation", "xsi:schemaLocation")):
        with pytest.raises(MalformedXmlError):  # C10: nothing that is not well-formed is repaired
            parse(broken)
    readable = figure.replace("name:value", "nam:value")
    check_table3(readable)
    rules = [warning.rule for warning in parse(readable).warnings]
    assert sorted(rules) == ["C09", "bad-value", "order"], "the slip, the timestamp (C03), the place of the id (C11)"


@pytest.mark.obligation("O1", "O6b", "O7b", "O7c", "R16b", "R15b")
def test_all_that_a_message_is_made_of() -> None:
    made = to_jms(request(reply_to_uri="jms/R"), BODY, names=NAMES)
    assert made.message_type is MessageType.TEXT
    assert made.delivery_mode is DeliveryMode.NON_PERSISTENT
    assert (made.priority, made.time_to_live_ms, made.jms_type, made.correlation_id) == (4, 1_800_000, None, None)
    assert made.reply_to == Queue("PHYS.R")
    assert made.properties == {"MTOSI_senderURI": "jms/S", "MTOSI_msgType": "REQUEST"}
    assert parse(made.body).body == BODY


@pytest.mark.obligation("C15")
def test_a_temporary_queue_takes_the_place_of_the_uris() -> None:
    queue = TemporaryQueue("t-1", "c-1")
    made = to_jms(request(), BODY, reply_to=queue)
    assert made.reply_to is queue
    assert "MTOSI_senderURI" not in made.properties, "R16a, C15"
    assert to_jms(request(sender_uri=None), BODY, reply_to=queue).reply_to is queue


@pytest.mark.parametrize(
    ("names", "header"),
    [
        pytest.param(None, request(), id="R16c-no-context"),
        pytest.param(NAMES, request(sender_uri="jms/unknown"), id="R16c-unknown"),
        pytest.param(NAMES, request(reply_to_uri="jms/unknown"), id="R16c-reply-unknown"),
    ],
)
def test_a_reply_uri_without_destination(names: NamingContext | None, header: Header) -> None:
    with pytest.raises(NamingError):
        to_jms(header, BODY, names=names)


@pytest.mark.obligation("R16c", "C42")
def test_a_reply_uri_that_says_what_it_is_needs_no_context() -> None:
    assert to_jms(request(sender_uri="queue:PHYS.S"), BODY).reply_to == Queue("PHYS.S")


@pytest.mark.obligation("C55")
def test_a_security_value_is_shown_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    header = request(security="S3CRET", security_type="basic", communication_style=CommunicationStyleType.MSG)
    profile = BindingProfile(optional_fields=OPTIONAL_FIELDS)
    made = to_jms(header, BODY, profile, names=NAMES)
    assert made.properties["MTOSI_security"] == "S3CRET"
    changed = JmsMessage(body=made.body, properties={**made.properties, "MTOSI_security": "0TH3R"})
    envelope = from_jms(changed)
    assert [warning.rule for warning in envelope.warnings] == ["R13"]
    with pytest.raises(HeaderError) as caught:
        to_jms(request(security="S3CRET", correlation_id=None), BODY, profile, names=NAMES)
    mapping = map_header(header, profile)
    shown = f"{header!r} {made!r} {changed!r} {envelope!r} {caught.value!r} {caught.value} {envelope.warnings}"
    assert "S3CRET" not in shown + caplog.text + str(mapping.warnings)
    assert "0TH3R" not in shown + caplog.text


SPELLINGS = [
    pytest.param({}, [], id="none"),
    pytest.param({"MTOSI_requestedBatchSize": 5}, [], id="R15c-typed"),
    pytest.param({"MTOSI_requestedBatchSize": "5"}, [], id="C62-text"),
    pytest.param({"MTOSI_requestedBatchSize": "+05"}, [], id="C62-lexical"),
    pytest.param({"MTOSI_requestedBatchSize": 6}, ["R13"], id="R13-differs"),
    pytest.param({"MTOSI_requestedBatchSize": "9" * 5000}, ["R13"], id="R13-5000-digits"),
    pytest.param({"MTOSI_batchSequenceEndOfReply": True}, [], id="R15d-typed"),
    pytest.param({"MTOSI_batchSequenceEndOfReply": "true"}, [], id="C62-bool"),
    pytest.param({"MTOSI_batchSequenceEndOfReply": "false"}, ["R13"], id="R13-bool"),
    pytest.param({"MTOSI_failureReplyToURI": "jms/F"}, ["R14"], id="C06-R14"),
    pytest.param({"MTOSI_failureReplytoURI": "jms/F"}, [], id="R14"),
    pytest.param({"MTOSI_senderURI": "jms/S"}, [], id="C01-no-error"),
    pytest.param({"MTOSI_correlationID": "other"}, [], id="C12"),
    pytest.param({"JMSXGroupID": "g", "vendor": 1}, [], id="foreign"),
]


@pytest.mark.obligation("C01", "C06", "C12", "C62")
@pytest.mark.parametrize(("properties", "rules"), SPELLINGS)
def test_properties_are_compared_with_the_header(properties: dict[str, PropertyValue], rules: list[str]) -> None:
    fields = (
        "<h:msgType>RESPONSE</h:msgType><h:senderURI>jms/S</h:senderURI><h:failureReplytoURI>jms/F</h:failureReplytoURI>"
        "<h:correlationId>1</h:correlationId><h:requestedBatchSize>+5</h:requestedBatchSize>"
        "<h:batchSequenceEndOfReply>1</h:batchSequenceEndOfReply>"
    )
    envelope = from_jms(JmsMessage(body=document(fields).encode(), properties=properties))
    assert [warning.rule for warning in envelope.warnings] == rules
    assert envelope.header is not None
    assert envelope.header.requested_batch_size == 5, "the XML header counts"
    assert envelope.to_bytes() == document(fields).encode()


@pytest.mark.obligation("C01")
def test_who_sent_it() -> None:
    header = parse(document("<h:senderURI> jms/S </h:senderURI>")).header
    assert header is not None
    assert sender_of(JmsMessage(), header) == "jms/S"
    assert sender_of(JmsMessage(properties={"mtosi_SENDERURI": "jms/P"}), header) == "jms/P"
    assert sender_of(JmsMessage(), Header()) is None


@pytest.mark.obligation("O1")
def test_bytes_are_read_with_a_warning() -> None:
    message = JmsMessage(body=document("<h:msgName>x</h:msgName>").encode(), message_type=MessageType.BYTES)
    envelope = from_jms(message)
    assert [warning.rule for warning in envelope.warnings] == ["O1"]
    assert envelope.header is not None
    assert envelope.header.msg_name == "x"


@pytest.mark.parametrize(
    ("body", "error"), [(b"", MalformedXmlError), (b"\xff<a/>", MalformedXmlError), (b"<a/>", EnvelopeError)]
)
def test_what_is_no_envelope(body: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        from_jms(JmsMessage(body=body))
