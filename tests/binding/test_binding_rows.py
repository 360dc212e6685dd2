"""Table 2 row by row, with each preset, each optional field on and off (R11 to R18, T2.1 to T2.18)."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import MAX_EXTENSION, map_header
from mtosi_jms.binding.profile import OPTIONAL_FIELDS, PRESETS
from mtosi_jms.binding.table2 import restore, row_of
from mtosi_jms.errors import HeaderError
from mtosi_jms.soap import FIELD_NAMES, Envelope, Header, parse

HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"
PRESET_NAMES = ("default", "table3", "literal")
NONE = BindingProfile(optional_fields=frozenset())
ALL = BindingProfile(optional_fields=OPTIONAL_FIELDS)


def read(fields: str) -> Envelope:
    return parse(
        f'<s:Envelope xmlns:s="{SOAP}"><s:Header><h:header xmlns:h="{HDR}">{fields}</h:header></s:Header>'
        "<s:Body><x/></s:Body></s:Envelope>"
    )


def header(**fields: str) -> Header:
    """A header that was read, with these fields in the order of the schema."""
    known = [name for name in FIELD_NAMES if name in fields]
    assert len(known) == len(fields)
    found = read("".join(f"<h:{name}>{fields[name]}</h:{name}>" for name in known)).header
    assert found is not None
    return found


MANDATORY: list[Any] = [
    pytest.param("msgType", "REQUEST", "MTOSI_msgType", "REQUEST", id="T2.4-R13a-REQUEST"),
    pytest.param("msgType", "RESPONSE", "MTOSI_msgType", "RESPONSE", id="T2.4-R13a-RESPONSE"),
    pytest.param("msgType", "NOTIFICATION", "MTOSI_msgType", "NOTIFICATION", id="T2.4-R13a-NOTIFICATION"),
    pytest.param("msgType", "ERROR", "MTOSI_msgType", "ERROR", id="T2.4-R13a-ERROR"),
    pytest.param("msgName", "getInventoryRequest", "MTOSI_msgName", "getInventoryRequest", id="T2.5-R13a-R15a"),
    pytest.param("failureReplytoURI", "jms/F", "MTOSI_failureReplytoURI", "jms/F", id="T2.7-R13a-C06"),
    pytest.param("activityStatus", "WARNING", "MTOSI_activityStatus", "WARNING", id="T2.8-R13a"),
    pytest.param("communicationPattern", "BulkResponse", "MTOSI_communicationPattern", "BulkResponse", id="T2.13-R13a"),
    pytest.param("communicationStyle", "RPC", "MTOSI_communicationStyle", "RPC", id="T2.14-R13a"),
    pytest.param("requestedBatchSize", "200", "MTOSI_requestedBatchSize", 200, id="T2.15-R13a-R15c"),
    pytest.param("requestedBatchSize", " +007 ", "MTOSI_requestedBatchSize", 7, id="T2.15-R15c-lexical"),
    pytest.param("requestedBatchSize", "2147483647", "MTOSI_requestedBatchSize", 2**31 - 1, id="T2.15-C25-largest"),
    pytest.param("batchSequenceNumber", "3", "MTOSI_batchSequenceNumber", 3, id="T2.16-R13a-R15c"),
    pytest.param("batchSequenceNumber", "0", "MTOSI_batchSequenceNumber", 0, id="T2.16-R15c-zero"),
    *(
        pytest.param("batchSequenceEndOfReply", text, "MTOSI_batchSequenceEndOfReply", value, id=f"T2.17-R15d-{text}")
        for text, value in (("true", True), ("1", True), ("false", False), ("0", False), (" true\n", True))
    ),
]
OPTIONAL: list[Any] = [
    pytest.param("destinationURI", "jms/D", "MTOSI_destinationURI", "jms/D", id="T2.1-R13b"),
    pytest.param("activityName", "getInventory", "MTOSI_activityName", "getInventory", id="T2.3-R13b"),
    pytest.param("security", "pw", "MTOSI_security", "pw", id="T2.10-R13b-C55"),
    pytest.param("securityType", "basic", "MTOSI_securityType", "basic", id="T2.11-R13b"),
    pytest.param("timestamp", "2007-07-30T09:26:00.0Z", "MTOSI_timestamp", "2007-07-30T09:26:00.0Z", id="T2.18-C04"),
    pytest.param("timestamp", "20051004140305", "MTOSI_timestamp", "20051004140305", id="T2.18-C03"),
    pytest.param(
        "vendorExtensions",
        '<v:a xmlns:v="urn:v" v:k="1">x</v:a>',
        "MTOSI_vendorExtension",
        '<v:a xmlns:v="urn:v" v:k="1">x</v:a>',
        id="T2.9-C07",
    ),
]
DEFAULT_ON = {"destinationURI", "activityName"}


@pytest.mark.obligation(
    "R13a",
    "R14",
    "R15a",
    "R15c",
    "R15d",
    "T2.4",
    "T2.5",
    "T2.7",
    "T2.8",
    "T2.13",
    "T2.14",
    "T2.15",
    "T2.16",
    "T2.17",
    "C06",
)
@pytest.mark.parametrize("preset", PRESET_NAMES)
@pytest.mark.parametrize(("field", "text", "name", "value"), MANDATORY)
def test_mandatory_row(preset: str, field: str, text: str, name: str, value: object) -> None:
    for profile in (PRESETS[preset], dataclasses.replace(PRESETS[preset], optional_fields=frozenset())):
        properties = map_header(header(**{field: text}), profile).properties
        assert properties == {name: value}
        assert type(properties[name]) is type(value)


@pytest.mark.obligation("R13b", "T2.1", "T2.3", "T2.9", "T2.10", "T2.11", "T2.18", "C03", "C04", "C07")
@pytest.mark.parametrize("preset", PRESET_NAMES)
@pytest.mark.parametrize(("field", "text", "name", "value"), OPTIONAL)
def test_optional_row(preset: str, field: str, text: str, name: str, value: object) -> None:
    profile = PRESETS[preset]
    assert profile.optional_fields == DEFAULT_ON
    given = header(**{field: text})
    for fields in (profile.optional_fields, {field}, OPTIONAL_FIELDS, OPTIONAL_FIELDS - {field}, set[str]()):
        properties = map_header(given, dataclasses.replace(profile, optional_fields=frozenset(fields))).properties
        assert properties == ({name: value} if field in fields else {})
        assert all(type(found) is str for found in properties.values())


@pytest.mark.obligation("R12")
@pytest.mark.parametrize("field", [pytest.param(name, id=f"R12-{name}") for name in FIELD_NAMES])
def test_absent_or_empty_is_not_mapped(field: str) -> None:
    for form in ("<h:{0}/>", "<h:{0}></h:{0}>", "<h:{0}> \n </h:{0}>", ""):
        found = read(form.format(field)).header
        assert found is not None
        for preset in PRESET_NAMES:
            mapping = map_header(found, dataclasses.replace(PRESETS[preset], optional_fields=OPTIONAL_FIELDS))
            assert (mapping.properties, mapping.reply_to_uri, mapping.priority) == ({}, None, 4), (form, preset)


@pytest.mark.obligation("R18", "C46")
@pytest.mark.parametrize(
    "field", [pytest.param(name, id=f"R18-C46-{name}") for name in ("languageCode", "countryCode")]
)
def test_language_and_country_are_never_mapped(field: str) -> None:
    code = f"<h:{field}>en</h:{field}><{field} xmlns='urn:vendor'>en</{field}>"
    other = '<v:a xmlns:v="urn:v"></v:a>'
    for extension, properties in ((code, {}), (code + other, {"MTOSI_vendorExtension": other})):
        found = read(f"<h:{field}>en</h:{field}><h:vendorExtensions>{extension}</h:vendorExtensions>").header
        assert found is not None
        assert map_header(found).properties == {}
        assert map_header(found, ALL).properties == properties
    assert row_of(f"MTOSI_{field}") is None


@pytest.mark.obligation("T2.8")
def test_qualifier_of_the_status_is_dropped() -> None:
    found = read('<h:activityStatus qualifier="partly"> SUCCESS </h:activityStatus>').header
    assert found is not None
    assert map_header(found).properties == {"MTOSI_activityStatus": "SUCCESS"}


BOTH, SENDER, REPLY = {"senderURI": "jms/S", "replyToURI": "jms/R"}, {"senderURI": "jms/S"}, {"replyToURI": "jms/R"}


@pytest.mark.obligation("R16a", "R16b", "T2.2", "T2.6", "C01", "C13", "C14")
@pytest.mark.parametrize(
    ("preset", "kind", "uris", "reply_to", "sender"),
    [
        pytest.param("default", "REQUEST", SENDER, "jms/S", None, id="R16a"),
        pytest.param("default", "REQUEST", BOTH, "jms/R", "jms/S", id="R16b"),
        pytest.param("default", "REQUEST", REPLY, "jms/R", None, id="C14-reply-alone"),
        pytest.param("default", "REQUEST", {}, None, None, id="C14-neither"),
        pytest.param("table3", "REQUEST", SENDER, "jms/S", "jms/S", id="C01-table3"),
        pytest.param("table3", "REQUEST", BOTH, "jms/R", "jms/S", id="C01-table3-both"),
        pytest.param("literal", "REQUEST", SENDER, "jms/S", None, id="R16a-literal"),
        pytest.param("literal", "REQUEST", BOTH, "jms/R", "jms/S", id="R16b-literal"),
        *(
            case
            for kind in ("RESPONSE", "NOTIFICATION", "ERROR")
            for case in (
                pytest.param("default", kind, SENDER, None, "jms/S", id=f"C13-{kind}"),
                pytest.param("default", kind, BOTH, None, "jms/S", id=f"C13-{kind}-both"),
                pytest.param("table3", kind, SENDER, None, "jms/S", id=f"C13-table3-{kind}"),
                pytest.param("literal", kind, SENDER, "jms/S", None, id=f"C13-literal-{kind}"),
                pytest.param("literal", kind, BOTH, "jms/R", "jms/S", id=f"C13-literal-{kind}-both"),
            )
        ),
    ],
)
def test_reply_address(preset: str, kind: str, uris: dict[str, str], reply_to: str | None, sender: str | None) -> None:
    mapping = map_header(header(msgType=kind, **uris), PRESETS[preset])
    assert mapping.reply_to_uri == reply_to
    assert mapping.properties.get("MTOSI_senderURI") == sender
    assert "MTOSI_replyToURI" not in mapping.properties


@pytest.mark.obligation("R17", "R15c", "O7c", "T2.12", "C02")
@pytest.mark.parametrize(
    ("text", "given", "priority", "rules"),
    [
        *(pytest.param(str(value), 4, value, [], id=f"T2.12-R15c-{value}") for value in range(10)),
        pytest.param(" 7 ", 4, 7, [], id="T2.12-blanks"),
        pytest.param(None, 4, 4, [], id="R17-O7c-C02"),
        pytest.param(None, 9, 9, [], id="R17-profile"),
        pytest.param("2", 9, 2, [], id="R17-header-wins"),
        pytest.param("", 6, 6, [], id="R12-empty"),
        *(
            pytest.param(text, 6, 6, ["R15c"], id=f"T2.12-bad-{text[:4]}")
            for text in ("x", "12", "-1", "3.0", "٣", "9" * 5000)
        ),
    ],
)
def test_priority(text: str | None, given: int, priority: int, rules: list[str]) -> None:
    found = header(msgType="NOTIFICATION") if text is None else header(msgType="NOTIFICATION", priority=text)
    mapping = map_header(found, BindingProfile(priority=given))
    assert mapping.priority == priority
    assert type(mapping.priority) is int
    assert [warning.rule for warning in mapping.warnings] == rules
    if rules:
        with pytest.raises(HeaderError) as caught:
            map_header(found, strict=True)
        assert caught.value.field == "priority"


@pytest.mark.obligation("R15c", "R15d", "C25")
@pytest.mark.parametrize(
    ("field", "text", "rule"),
    [
        pytest.param("requestedBatchSize", "2147483648", "C25", id="C25-one-more"),
        pytest.param("batchSequenceNumber", "4294967295", "C25", id="C25-unsigned"),
        pytest.param("requestedBatchSize", "9" * 5000, "C25", id="C25-5000-digits"),
        pytest.param("requestedBatchSize", "-1", "R15c", id="R15c-negative"),
        pytest.param("requestedBatchSize", "many", "R15c", id="R15c-text"),
        pytest.param("batchSequenceNumber", "1.0", "R15c", id="R15c-decimal"),
        pytest.param("batchSequenceNumber", "٣", "R15c", id="R15c-other-digits"),
        pytest.param("batchSequenceEndOfReply", "yes", "R15d", id="R15d-text"),
        pytest.param("batchSequenceEndOfReply", "2", "R15d", id="R15d-number"),
    ],
)
def test_what_no_property_can_hold(field: str, text: str, rule: str) -> None:
    found = header(msgType="ERROR", **{field: text})
    mapping = map_header(found)
    assert mapping.properties == {"MTOSI_msgType": "ERROR"}
    assert [(warning.rule, warning.path) for warning in mapping.warnings] == [(rule, f"header/{field}")]
    with pytest.raises(HeaderError, match=rule) as caught:
        map_header(found, strict=True)
    assert caught.value.field == field


@pytest.mark.obligation("C07")
def test_extensions_are_joined_and_bounded() -> None:
    two = header(msgType="ERROR", vendorExtensions="<a xmlns='urn:a'/><b xmlns='urn:b'>é</b>")
    assert map_header(two, ALL).properties["MTOSI_vendorExtension"] == '<a xmlns="urn:a"></a><b xmlns="urn:b">é</b>'
    long = header(msgType="ERROR", vendorExtensions=f"<a>{'x' * MAX_EXTENSION}</a>")
    mapping = map_header(long, ALL)
    assert "MTOSI_vendorExtension" not in mapping.properties
    assert [warning.rule for warning in mapping.warnings] == ["C07"]
    assert map_header(long, NONE).warnings == [], "what is not mapped has no bound"


RPC = {"communicationStyle": "RPC"}
BATCH = {"communicationPattern": "MultipleBatchResponse"}
REQUEST = {"msgType": "REQUEST", "senderURI": "jms/S", "correlationId": "1"}
RESPONSE = {"msgType": "RESPONSE", "correlationId": "1"}


@pytest.mark.obligation("R3b", "R4a", "R5a", "C14", "C51")
@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        pytest.param(REQUEST, [], id="good-request"),
        pytest.param({**REQUEST, "correlationId": ""}, ["R3b"], id="R3b-empty"),
        pytest.param({**REQUEST, "correlationId": "  "}, ["R3b"], id="R3b-blank"),
        pytest.param({**REQUEST, "correlationId": "", **RPC}, [], id="R3b-not-in-RPC"),
        pytest.param({**RESPONSE, "correlationId": ""}, ["R3c"], id="R3c"),
        pytest.param({**REQUEST, **BATCH}, ["R4a"], id="R4a"),
        pytest.param({**REQUEST, **BATCH, "requestedBatchSize": "0"}, [], id="R4a-zero"),
        pytest.param({**REQUEST, "communicationPattern": "SimpleResponse"}, [], id="R4a-simple"),
        pytest.param(
            {**REQUEST, "communicationPattern": "MultipleResponse", "requestedBatchSize": "2"}, ["C51"], id="C51"
        ),
        pytest.param({**RESPONSE, **BATCH}, ["R5a", "R5a"], id="R5a-neither"),
        pytest.param({**RESPONSE, **BATCH, "batchSequenceNumber": "1"}, ["R5a"], id="R5a-no-end"),
        pytest.param({**RESPONSE, **BATCH, "batchSequenceEndOfReply": "true"}, ["R5a"], id="R5a-no-number"),
        pytest.param(
            {**RESPONSE, **BATCH, "batchSequenceNumber": "1", "batchSequenceEndOfReply": "true"}, [], id="R5a-good"
        ),
        pytest.param({**REQUEST, "senderURI": ""}, ["C14"], id="C14"),
        pytest.param({"senderURI": "jms/S"}, ["R13a"], id="R13a-no-msgType"),
        pytest.param({"msgType": "NOTIFICATION"}, [], id="R3b-not-in-notifications"),
        pytest.param({"msgType": "ERROR"}, [], id="C17-sample-errors"),
    ],
)
def test_what_a_sender_must_not_send(fields: dict[str, str], rules: list[str]) -> None:
    found = header(**fields)
    assert [warning.rule for warning in map_header(found).warnings] == rules
    if rules:
        with pytest.raises(HeaderError, match=rules[0]) as caught:
            map_header(found, strict=True)
        assert not re.search("not mapped|is taken", str(caught.value)), "what reading does about it is not done here"
    else:
        assert map_header(found, strict=True).warnings == []


@pytest.mark.obligation("C14", "C15")
@pytest.mark.parametrize(
    ("options", "rules"),
    [
        pytest.param({"has_reply_to": True}, [], id="C15"),
        pytest.param({"one_way": True}, [], id="C14-notify"),
        pytest.param({}, ["C14"], id="C14"),
    ],
)
def test_a_reply_address_is_needed_unless(options: dict[str, bool], rules: list[str]) -> None:
    mapping = map_header(header(msgType="REQUEST", correlationId="1"), **options)  # type: ignore[arg-type]
    assert [warning.rule for warning in mapping.warnings] == rules


@pytest.mark.obligation("C06", "C62")
@pytest.mark.parametrize(
    ("name", "value", "restored"),
    [
        pytest.param("MTOSI_requestedBatchSize", "200", 200, id="C62-int"),
        pytest.param("MTOSI_requestedBatchSize", " +7 ", 7, id="C62-int-lexical"),
        pytest.param("mtosi_requestedbatchsize", "7", 7, id="C06-C62-case"),
        pytest.param("MTOSI_batchSequenceNumber", "9" * 5000, "9" * 5000, id="C25-too-large"),
        pytest.param("MTOSI_batchSequenceNumber", "x", "x", id="C62-no-int"),
        pytest.param("MTOSI_batchSequenceNumber", 3, 3, id="C62-typed"),
        pytest.param("MTOSI_batchSequenceEndOfReply", "TRUE", True, id="C62-bool"),
        pytest.param("MTOSI_batchSequenceEndOfReply", "0", False, id="C62-bool-0"),
        pytest.param("MTOSI_batchSequenceEndOfReply", 1, True, id="C62-bool-from-int"),
        pytest.param("MTOSI_batchSequenceEndOfReply", "perhaps", "perhaps", id="C62-no-bool"),
        pytest.param("MTOSI_msgName", "7", "7", id="C62-text"),
        pytest.param("other", "7", "7", id="C62-foreign"),
    ],
)
def test_types_are_told_again_by_name(name: str, value: str, restored: object) -> None:
    found = restore(name, value)
    assert found == restored
    assert type(found) is type(restored)
