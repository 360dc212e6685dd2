"""`mtosi-jms map`: the document's own example, the JSON contract, secrets, warnings with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main

HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
SOAP = "http://schemas.xmlsoap.org/soap/envelope/"

# The header of the document's Figure 12: fields, order and values; the body is ours.
FIGURE_12 = """
   <hdr:activityName>getInventory</hdr:activityName>
   <hdr:msgName>getInventoryRequest</hdr:msgName>
   <hdr:msgType>REQUEST</hdr:msgType>
   <hdr:correlationId>0001</hdr:correlationId>
   <hdr:senderURI>jms/RtoInventoryOSQA</hdr:senderURI>
   <hdr:destinationURI>jms/RtoNMSQA</hdr:destinationURI>
   <hdr:failureReplytoURI>jms/RtoInventoryOSQA</hdr:failureReplytoURI>
   <hdr:communicationPattern>SimpleResponse</hdr:communicationPattern>
   <hdr:communicationStyle>MSG</hdr:communicationStyle>
   <hdr:timestamp>20051004140305</hdr:timestamp>
"""
INVENTORY = '<rir:getInventoryRequest xmlns:rir="http://www.tmforum.org/mtop/mri/xsd/rir/v1"/>'
NOTIFY = """<n:notify xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"
    xmlns:alm="http://www.tmforum.org/mtop/nra/xsd/alm/v1"><n:message><alm:alarm>
    <alm:objectType>ME</alm:objectType><alm:perceivedSeverity>CRITICAL</alm:perceivedSeverity>
    <alm:rootCauseAlarmIndication>true</alm:rootCauseAlarmIndication></alm:alarm></n:message></n:notify>"""

# Table 3, without its JMSPriority and JMSReplyTo.
TABLE_3 = {
    "MTOSI_destinationURI": "jms/RtoNMSQA",
    "MTOSI_senderURI": "jms/RtoInventoryOSQA",
    "MTOSI_activityName": "getInventory",
    "MTOSI_msgType": "REQUEST",
    "MTOSI_msgName": "getInventoryRequest",
    "MTOSI_failureReplytoURI": "jms/RtoInventoryOSQA",
    "MTOSI_communicationPattern": "SimpleResponse",
    "MTOSI_communicationStyle": "MSG",
}

Write = Callable[..., str]
Map = Callable[..., dict[str, Any]]


def envelope(fields: str, body: str = INVENTORY) -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<soap:Envelope xmlns:soap="{SOAP}" xmlns:hdr="{HDR}">\n'
        f"<soap:Header><hdr:header>{fields}</hdr:header></soap:Header>\n<soap:Body>{body}</soap:Body></soap:Envelope>\n"
    )


def fields(**values: str) -> str:
    return "".join(f"\n<hdr:{name}>{value}</hdr:{name}>" for name, value in values.items())


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes an envelope and gives the name of its file."""

    def to_file(header: str, body: str = INVENTORY, name: str = "envelope.xml") -> str:
        path = tmp_path / name
        path.write_text(envelope(header, body), encoding="utf-8")
        return str(path)

    return to_file


@pytest.fixture
def mapped(capsys: pytest.CaptureFixture[str]) -> Map:
    """The JSON of one file, which must be mapped without a word on standard error."""

    def run(file: str, *options: str) -> dict[str, Any]:
        assert main(["map", file, "--json", *options]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        (line,) = out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    return run


def strings(values: dict[str, str]) -> dict[str, dict[str, str]]:
    return {name: {"type": "String", "value": value} for name, value in values.items()}


@pytest.mark.obligation("T3.1", "T3.2", "T3.3", "T3.4", "T3.5", "T3.6", "T3.7", "T3.8", "T3.9", "T3.10", "C03", "C11")
def test_table3_is_what_the_document_prints_for_its_figure_12(write: Write, mapped: Map) -> None:
    file = write(FIGURE_12)
    found = mapped(file, "--profile", "table3")
    warnings = found.pop("warnings")
    assert found == {
        "file": file,
        "release": "2.x",
        "message_type": "TextMessage",
        "headers": {
            "JMSReplyTo": "jms/RtoInventoryOSQA",
            "JMSPriority": 4,
            "JMSDeliveryMode": "NON_PERSISTENT",
            "JMSTimeToLive": 1_800_000,
        },
        "properties": strings(TABLE_3),
    }
    assert len(found["properties"]) + 2 == 10
    # The figure keeps neither the schema's order nor its form of a time (C11, C03).
    assert [(warning["line"], warning["path"]) for warning in warnings] == [
        (8, "/Envelope/Header/header/senderURI"),
        (13, "/Envelope/Header/header/timestamp"),
    ]


@pytest.mark.obligation("R16a", "C01")
@pytest.mark.parametrize("profile", ["default", "literal"])
def test_by_the_rules_the_sender_is_the_reply_address_alone(write: Write, mapped: Map, profile: str) -> None:
    found = mapped(write(FIGURE_12), "--profile", profile)
    expected = {name: value for name, value in TABLE_3.items() if name != "MTOSI_senderURI"}
    assert found["properties"] == strings(expected)
    assert found["headers"]["JMSReplyTo"] == "jms/RtoInventoryOSQA"


@pytest.mark.parametrize(
    ("profile", "reply_to", "sender"),
    [("default", None, "jms/EmsOS"), ("literal", "jms/EmsOS", None), ("table3", None, "jms/EmsOS")],
)
def test_literal_gives_a_response_a_reply_address_too(
    write: Write, mapped: Map, profile: str, reply_to: str | None, sender: str | None
) -> None:
    file = write(fields(msgName="getInventoryResponse", msgType="RESPONSE", senderURI="jms/EmsOS", correlationId="1"))
    found = mapped(file, "--profile", profile)
    assert found["headers"].get("JMSReplyTo") == reply_to
    assert found["properties"].get("MTOSI_senderURI", {}).get("value") == sender


def test_the_keys_of_the_json_are_pinned(write: Write, mapped: Map) -> None:
    found = mapped(write(fields(msgType="RESPONSE", correlationId="1", bogus="x")))
    assert list(found) == ["file", "release", "message_type", "headers", "properties", "warnings"]
    assert list(found["headers"]) == ["JMSPriority", "JMSDeliveryMode", "JMSTimeToLive"]
    assert {key for value in found["properties"].values() for key in value} == {"type", "value"}
    (warning,) = found["warnings"]
    assert {"path", "line", "message"} <= set(warning)


def test_properties_have_the_types_of_the_specification(write: Write, mapped: Map) -> None:
    header = fields(
        msgType="RESPONSE",
        correlationId="1",
        priority="7",
        communicationPattern="MultipleBatchResponse",
        requestedBatchSize="500",
        batchSequenceNumber="2",
        batchSequenceEndOfReply="1",
    )
    found = mapped(write(header))
    assert found["headers"]["JMSPriority"] == 7
    assert found["properties"]["MTOSI_requestedBatchSize"] == {"type": "Integer", "value": 500}
    assert found["properties"]["MTOSI_batchSequenceNumber"] == {"type": "Integer", "value": 2}
    assert found["properties"]["MTOSI_batchSequenceEndOfReply"] == {"type": "Boolean", "value": True}


def test_blanks_around_values_go_and_empty_elements_count_as_absent(write: Write, mapped: Map) -> None:
    header = fields(
        msgType=" REQUEST\n", senderURI="\n jms/OS ", replyToURI="  ", failureReplytoURI="", correlationId="1"
    )
    found = mapped(write(header))
    assert found["headers"]["JMSReplyTo"] == "jms/OS"
    assert found["properties"] == strings({"MTOSI_msgType": "REQUEST"})


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"MTOSI_destinationURI", "MTOSI_activityName"}),
        (("--optional", ""), set()),
        (("--optional", "timestamp"), {"MTOSI_timestamp"}),
        (("--optional", "+timestamp"), {"MTOSI_destinationURI", "MTOSI_activityName", "MTOSI_timestamp"}),
        (
            ("--optional", "security, securityType,vendorExtensions", "--show-secrets"),
            {"MTOSI_security", "MTOSI_securityType", "MTOSI_vendorExtension"},
        ),
    ],
)
def test_optional_fields_are_those_that_are_asked_for(
    write: Write, mapped: Map, options: tuple[str, ...], names: set[str]
) -> None:
    header = fields(
        activityName="a",
        msgType="REQUEST",
        senderURI="jms/OS",
        destinationURI="jms/Ems",
        correlationId="1",
        security="hunter2",
        securityType="plain",
        timestamp="2026-01-02T03:04:05Z",
        vendorExtensions="<v:x xmlns:v='urn:v'>1</v:x>",
    )
    found = mapped(write(header), *options)
    assert set(found["properties"]) - {"MTOSI_msgType"} == names
    if "MTOSI_vendorExtension" in names:
        assert found["properties"]["MTOSI_vendorExtension"]["value"] == '<v:x xmlns:v="urn:v">1</v:x>'
        assert found["properties"]["MTOSI_security"]["value"] == "hunter2"


@pytest.mark.obligation("C55")
def test_the_table_masks_credentials_unless_asked(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(fields(msgType="REQUEST", senderURI="jms/OS", security="hunter2"))
    assert main(["map", file, "--optional", "security"]) == 0
    out, err = capsys.readouterr()
    assert "hunter2" not in out + err
    assert re.search(r"^property +MTOSI_security +String +\*\*\*$", out, re.MULTILINE)
    assert main(["map", file, "--optional", "security", "--show-secrets"]) == 0
    assert "hunter2" in capsys.readouterr().out


def test_nothing_says_a_credential_that_was_not_asked_for(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(fields(msgType="BOGUS", security="hunter2", requestedBatchSize="x", securityType="hunter3"))
    for options in ((), ("--json",), ("--show-secrets",)):
        assert main(["map", file, *options]) == 0
        out, err = capsys.readouterr()
        assert "hunter" not in out + err


def test_filters_map_attributes_of_events(write: Write, mapped: Map) -> None:
    file = write(fields(msgType="NOTIFICATION", senderURI="jms/Ems"), NOTIFY)
    assert set(mapped(file)["properties"]) == {"MTOSI_msgType", "MTOSI_senderURI"}
    found = mapped(file, "--filter", "EventType,perceivedSeverity,rootCauseAlarmIndication,layerRate")
    assert found["properties"]["MTOSI_EventType"] == {"type": "String", "value": "AlarmInformation"}
    assert found["properties"]["MTOSI_perceivedSeverity"] == {"type": "String", "value": "CRITICAL"}
    assert found["properties"]["MTOSI_rootCauseAlarmIndication"] == {"type": "Boolean", "value": True}
    assert "MTOSI_layerRate" not in found["properties"]
    assert found["headers"]["JMSTimeToLive"] == 30 * 60 * 1000
    assert "JMSReplyTo" not in found["headers"]


def test_a_breach_of_a_rule_is_a_warning_with_its_place(write: Write, mapped: Map) -> None:
    header = fields(msgType="REQUEST", senderURI="jms/OS", communicationPattern="MultipleBatchResponse", priority="12")
    warnings = mapped(write(header))["warnings"]
    places = {warning["rule"]: (warning["line"], warning["path"]) for warning in warnings}
    assert places["R15c"] == (7, "/Envelope/Header/header/priority")
    assert places["R4a"] == (3, "/Envelope/Header/header/requestedBatchSize")
    assert places["R3b"] == (3, "/Envelope/Header/header/correlationId")


def test_a_request_that_wants_no_answer_needs_no_reply_address(write: Write, mapped: Map) -> None:
    def rules(body: str) -> set[str]:
        found = mapped(write(fields(msgType="REQUEST", correlationId="1"), body))
        return {warning["rule"] for warning in found["warnings"]}

    assert "C14" in rules(INVENTORY)
    assert "C14" not in rules(NOTIFY)


def test_a_fault_is_mapped_by_the_header_in_its_detail(tmp_path: Path, mapped: Map) -> None:
    header = f'<h:header xmlns:h="{HDR}"><h:msgType>ERROR</h:msgType><h:senderURI>jms/Ems</h:senderURI></h:header>'
    kind = f'<m:invalidInput xmlns:m="http://www.tmforum.org/mtop/fmw/xsd/msg/v1">{header}</m:invalidInput>'
    detail = f'<e:getInventoryException xmlns:e="http://www.tmforum.org/mtop/mri/xsd/rir/v1">{kind}</e:getInventoryException>'
    fault = f"<s:Fault><faultcode>s:Client</faultcode><faultstring>no</faultstring><detail>{detail}</detail></s:Fault>"
    file = tmp_path / "fault.xml"
    file.write_text(f'<s:Envelope xmlns:s="{SOAP}"><s:Body>{fault}</s:Body></s:Envelope>', encoding="utf-8")
    found = mapped(str(file))
    assert found["properties"] == strings({"MTOSI_senderURI": "jms/Ems", "MTOSI_msgType": "ERROR"})
    assert "JMSReplyTo" not in found["headers"]


def test_the_table_is_plain_lines_when_piped(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(fields(msgType="RESPONSE", correlationId="1", batchSequenceEndOfReply="true", vendorExtension="x"))
    assert main(["map", file]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        f"{file}: TextMessage",
        "          name                           type     value",
        "header    JMSPriority                    Integer  4",
        "header    JMSDeliveryMode                         NON_PERSISTENT",
        "header    JMSTimeToLive                  ms       1800000",
        "property  MTOSI_msgType                  String   RESPONSE",
        "property  MTOSI_batchSequenceEndOfReply  Boolean  true",
        "warning: line 7 /Envelope/Header/header/vendorExtension: unknown element vendorExtension is kept as XML",
    ]


def test_what_a_terminal_would_obey_is_escaped(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(fields(msgType="RESPONSE", correlationId="1", msgName="a\u009b31m\u202eb\nc"), name="a\x1b[31m.xml")
    assert main(["map", file]) == 0
    out, err = capsys.readouterr()
    assert "a\\x9b31m\\u202eb\\nc" in out
    assert not {"\x1b", "\u009b", "\u202e"} & set(out + err)


def test_each_file_has_its_line_and_a_bad_one_stops_no_other(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [write(FIGURE_12, name="1.xml"), str(tmp_path / "gone.xml"), write(FIGURE_12, name="3.xml")]
    assert main(["map", "--json", *files]) == 1
    out, err = capsys.readouterr()
    assert [json.loads(line)["file"] for line in out.splitlines()] == [files[0], files[2]]
    assert err == f"error: {files[1]}: cannot be read: No such file or directory; check the name\n"
