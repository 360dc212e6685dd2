"""Table 2 as a table: each row by itself, through whole messages, and nothing beside the rows."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import HeaderMapping, from_jms, map_header, to_jms
from mtosi_jms.binding.profile import OPTIONAL_FIELDS, PRESETS
from mtosi_jms.binding.table2 import ROWS
from mtosi_jms.errors import DecodeError, EnvelopeError, HeaderError, MalformedXmlError
from mtosi_jms.jms import JmsMessage, NamingContext, Queue
from mtosi_jms.soap import FIELD_NAMES, Envelope, Header, header_text, parse
from mtosi_jms.stubs.fmw.hdr import MessageTypeType
from mtosi_jms.xmlbind import RawXml

SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
NAMES = NamingContext({"jms/S": Queue("PHYS.S"), "jms/R": Queue("PHYS.R")})
ALL = BindingProfile(optional_fields=OPTIONAL_FIELDS)
BODY = RawXml(b"<x></x>")

TABLE_2: list[tuple[str, str, str, Any, bool]] = [
    # header field, its text, name in JMS, value in JMS, mandatory
    ("destinationURI", "jms/D", "MTOSI_destinationURI", "jms/D", False),
    ("senderURI", "jms/S", "MTOSI_senderURI", "jms/S", True),
    ("activityName", "getInventory", "MTOSI_activityName", "getInventory", False),
    ("msgType", "NOTIFICATION", "MTOSI_msgType", "NOTIFICATION", True),
    ("msgName", "getInventoryResponse", "MTOSI_msgName", "getInventoryResponse", True),
    ("replyToURI", "jms/R", "JMSReplyTo", Queue("PHYS.R"), True),
    ("failureReplytoURI", "jms/F", "MTOSI_failureReplytoURI", "jms/F", True),
    ("activityStatus", "FAILURE", "MTOSI_activityStatus", "FAILURE", True),
    ("vendorExtensions", '<v xmlns="urn:v"></v>', "MTOSI_vendorExtension", '<v xmlns="urn:v"></v>', False),
    ("security", "s", "MTOSI_security", "s", False),
    ("securityType", "t", "MTOSI_securityType", "t", False),
    ("priority", "7", "JMSPriority", 7, True),
    ("communicationPattern", "SimpleResponse", "MTOSI_communicationPattern", "SimpleResponse", True),
    ("communicationStyle", "MSG", "MTOSI_communicationStyle", "MSG", True),
    ("requestedBatchSize", "200", "MTOSI_requestedBatchSize", 200, True),
    ("batchSequenceNumber", "3", "MTOSI_batchSequenceNumber", 3, True),
    ("batchSequenceEndOfReply", "true", "MTOSI_batchSequenceEndOfReply", True, True),
    ("timestamp", "2026-05-04T12:00:00Z", "MTOSI_timestamp", "2026-05-04T12:00:00Z", False),
]
NEVER = ["originatorURI", "correlationId", "iteratorReferenceURI", "fileLocationURI", "compressionType", "packingType"]


def read(**fields: str) -> Envelope:
    """An envelope with these header fields, in the order of the schema."""
    content = "".join(f"<h:{name}>{fields[name]}</h:{name}>" for name in FIELD_NAMES if name in fields)
    return parse(
        f'<s:Envelope xmlns:s="{SOAP}"><s:Header><h:header xmlns:h="{HDR}">{content}</h:header></s:Header>'
        "<s:Body><x/></s:Body></s:Envelope>"
    )


def sent(envelope: Envelope, profile: BindingProfile) -> JmsMessage:
    assert envelope.header is not None
    return to_jms(envelope.header, envelope, profile, names=NAMES)


def seen(message: JmsMessage) -> dict[str, Any]:
    """What of a message comes from its header: JMSReplyTo and JMSPriority beside the properties."""
    headers = {"JMSReplyTo": message.reply_to, "JMSPriority": message.priority}
    usual = {"JMSReplyTo": None, "JMSPriority": 4}
    return {**message.properties, **{name: value for name, value in headers.items() if value != usual[name]}}


def test_the_table_has_all_its_rows() -> None:
    assert [sum(row[4] is mandatory for row in TABLE_2) for mandatory in (True, False)] == [12, 6]
    assert {row[0] for row in TABLE_2 if not row[4]} == OPTIONAL_FIELDS
    assert {*(row[0] for row in TABLE_2), *NEVER, "msgSpecificProperties"} == set(FIELD_NAMES), "no field is forgotten"


@pytest.mark.obligation("R11", "R14", "R16b", "R3d", "C47", "C57", "C08")
def test_all_rows_at_once_and_nothing_beside_them() -> None:
    """A header with every field of the schema, as a request: eighteen fields, and not one more, end in JMS."""
    fields = {**{row[0]: row[1] for row in TABLE_2}, **dict.fromkeys(NEVER, "GZIP"), "msgType": "REQUEST"}
    fields |= {"correlationId": "id-4711", "packingType": "ZIP"}
    fields["msgSpecificProperties"] = (
        "<h:property><h:propName>MTOSI_own</h:propName><h:propValue>p</h:propValue></h:property>"
    )
    message = sent(read(**fields), ALL)
    expected = {row[2]: row[3] for row in TABLE_2} | {"MTOSI_msgType": "REQUEST"}
    assert seen(message) == expected
    assert message.correlation_id is None
    assert "id-4711" not in map(str, message.properties.values())


@pytest.mark.obligation("C05", "C08", "C12", "R3d")
@pytest.mark.parametrize(
    ("spelling", "field"),
    [
        pytest.param("correlationID", "correlationId", id="C05"),
        pytest.param("CorrelationId", "correlationId", id="C05-capital"),
        *(pytest.param(name.capitalize(), name, id=f"C08-{name}") for name in ("security", "priority", "timestamp")),
    ],
)
def test_other_spellings_are_other_elements(spelling: str, field: str) -> None:
    """They are told as unknown, kept, and mean nothing."""
    envelope = parse(
        f'<s:Envelope xmlns:s="{SOAP}"><s:Header><h:header xmlns:h="{HDR}"><h:{spelling}>7</h:{spelling}></h:header>'
        "</s:Header><s:Body><x/></s:Body></s:Envelope>"
    )
    assert envelope.header is not None
    assert header_text(envelope.header, field) is None
    assert [(warning.rule, warning.path) for warning in envelope.warnings] == [
        ("unknown-element", f"/Envelope/Header/header/{spelling}")
    ]
    mapping = map_header(envelope.header, ALL)
    assert (mapping.properties, mapping.priority) == ({}, 4)


@pytest.mark.obligation("C11")
def test_fields_go_out_in_the_order_of_the_schema_and_are_read_in_any() -> None:
    texts = {row[0]: row[1] for row in TABLE_2 if row[0] != "vendorExtensions"}
    ordered = [name for name in FIELD_NAMES if name in texts]
    backwards = "".join(f"<h:{name}>{texts[name]}</h:{name}>" for name in reversed(ordered))
    document = (
        f'<s:Envelope xmlns:s="{SOAP}"><s:Header><h:header xmlns:h="{HDR}">{backwards}</h:header></s:Header>'
        "<s:Body><x/></s:Body></s:Envelope>"
    )
    envelope = parse(document)
    assert {warning.rule for warning in envelope.warnings} == {"order"}
    assert {name: header_text(envelope.header or Header(), name) for name in ordered} == texts
    written = envelope.encode()
    places = [written.index(f":{name}>".encode()) for name in ordered]
    assert places == sorted(places)
    with pytest.raises(DecodeError):
        parse(document, strict=True)


@pytest.mark.obligation("P36", "P37", "F11")
def test_the_three_layers_of_figure_11() -> None:
    """What the application hands over is an envelope; JMS gets its bytes, and beside them what Table 2 takes of it."""
    header = Header(msg_type=MessageTypeType.REQUEST, sender_uri="jms/S", correlation_id="1")
    message = to_jms(header, BODY, names=NAMES)
    envelope = from_jms(message)
    assert (envelope.header, envelope.body, envelope.blocks, envelope.more) == (header, BODY, [], [])
    assert message.body.count(b"<hdr:header>") == 1
    assert dict(message.properties) == {"MTOSI_msgType": "REQUEST"}
    assert envelope.to_bytes() == message.body


@pytest.mark.obligation("P37")
@pytest.mark.parametrize(
    "body", ['<z:a xmlns:z="urn:z" k="\'"> <b/>\n</z:a>', "<x><MTOSI_msgType>ERROR</MTOSI_msgType></x>", "", "<a/><b/>"]
)
def test_the_body_does_not_matter_to_the_mapping(body: str) -> None:
    data = read(msgType="RESPONSE", correlationId="1", msgName="m").to_bytes().replace(b"<x/>", body.encode())
    envelope = parse(data)
    message = sent(envelope, ALL)
    assert message.body == data
    assert dict(message.properties) == {"MTOSI_msgType": "RESPONSE", "MTOSI_msgName": "m"}


# The header of every sample: each field is mapped by its row of Table 2, or a typed warning says why it is not.

PROFILES = {
    **{name: dataclasses.replace(profile, optional_fields=OPTIONAL_FIELDS) for name, profile in PRESETS.items()},
    "none": BindingProfile(optional_fields=frozenset()),
}


@pytest.fixture(scope="module")
def envelopes(shared: Path) -> dict[str, Envelope]:
    """The samples that are envelopes with an MTOSI header, by file."""
    found = {}
    for path in sorted((shared / "samples").rglob("*.xml")):
        try:
            envelope = parse(path.read_bytes())
        except (EnvelopeError, MalformedXmlError):
            continue
        if envelope.header is not None:
            found[str(path.relative_to(shared))] = envelope
    assert len(found) > 100
    return found


def unaccounted(envelope: Envelope, profile: BindingProfile, mapping: HeaderMapping) -> list[str]:
    """Fields that are present, are to be mapped, and left neither a trace in JMS nor a warning."""
    header = envelope.header
    assert header is not None
    warned = {warning.path for warning in mapping.warnings}
    left = []
    for row in ROWS:
        if not row.mandatory and row.name not in profile.optional_fields:
            continue
        if row.name == "vendorExtensions" or header_text(header, row.name) is None:
            continue
        is_address = row.name == "senderURI" and mapping.reply_to_uri == header_text(header, "senderURI")
        if row.property not in mapping.properties and f"header/{row.name}" not in warned and not is_address:
            left.append(row.name)
    if header_text(header, "priority") not in (None, str(mapping.priority)) and "header/priority" not in warned:
        left.append("priority")
    return left


@pytest.mark.obligation("R13a", "R13b", "R15c", "R15d")
@pytest.mark.parametrize("name", PROFILES)
def test_every_field_of_every_sample_is_accounted_for(name: str, envelopes: dict[str, Envelope]) -> None:
    profile = PROFILES[name]
    for file, envelope in envelopes.items():
        assert envelope.header is not None
        mapping = map_header(envelope.header, profile, body=envelope.body)
        assert unaccounted(envelope, profile, mapping) == [], file
        assert all(warning.rule and warning.message and warning.path for warning in mapping.warnings), file
        assert set(mapping.properties) <= {row.property for row in ROWS}, file


@pytest.mark.obligation("R3b", "R4a", "R5a", "C14", "C25")
def test_what_is_warned_of_in_a_sample_is_refused_when_sent(envelopes: dict[str, Envelope]) -> None:
    refused = 0
    for file, envelope in envelopes.items():
        assert envelope.header is not None
        warned = map_header(envelope.header).warnings
        if not warned:
            assert map_header(envelope.header, strict=True).warnings == [], file
            continue
        refused += 1
        with pytest.raises(HeaderError) as caught:
            map_header(envelope.header, strict=True)
        assert f"({warned[0].rule})" in str(caught.value), file
    assert 0 < refused < len(envelopes)
