"""Figures 12 and 13 by their facts: a getInventory request as older peers write it, from reading to the handler."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import map_header, to_jms
from mtosi_jms.cli import main
from mtosi_jms.errors import MalformedXmlError
from mtosi_jms.jms import NamingContext, Queue
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.stubs.mri.rir import GetInventoryRequest

NAMES = NamingContext({"jms/RtoInventoryOSQA": Queue("PHYS.Q1")})
HEADER = {
    "activityName": "getInventory",
    "msgName": "getInventoryRequest",
    "msgType": "REQUEST",
    "correlationId": "0001",
    "senderURI": "jms/RtoInventoryOSQA",
    "destinationURI": "jms/RtoNMSQA",
    "failureReplytoURI": "jms/RtoInventoryOSQA",
    "communicationPattern": "SimpleResponse",
    "communicationStyle": "MSG",
    "timestamp": "20051004140305",
}
TYPES = ("ME", "EH", "EQ", "CC")


def figure(prefix: str = "nam", slip: str = "") -> str:
    """The request; with `slip` the declaration that the figure has for an attribute."""
    names = {
        "soap": "http://schemas.xmlsoap.org/soap/envelope/",
        "hdr": "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1",
        "invr": "http://www.tmforum.org/mtop/mri/xsd/rir/v1",
        "nam": "http://www.tmforum.org/mtop/fmw/xsd/nam/v1",
    }
    declared = " ".join(f'xmlns:{name}="{space}"' for name, space in names.items())
    header = "".join(f"<hdr:{name}>{text}</hdr:{name}>" for name, text in HEADER.items())
    included = "".join(
        "<invr:includedObjectType>"
        f"<invr:objectType>{kind}</invr:objectType><invr:granularity>FULL</invr:granularity>"
        "</invr:includedObjectType>"
        for kind in TYPES
    )
    rdn = f"<nam:rdn><nam:type>MD</nam:type><{prefix}:value>N1/XdrEMS/Server1</{prefix}:value></nam:rdn>"
    base = f"<invr:baseInstance>{rdn}</invr:baseInstance>"
    return (
        f"<soap:Envelope {declared}{slip}><soap:Header><hdr:header>{header}</hdr:header></soap:Header><soap:Body>"
        f"<invr:getInventoryRequest><invr:filter>{base}{included}</invr:filter></invr:getInventoryRequest>"
        "</soap:Body></soap:Envelope>"
    )


SLIP = '\nxmlns:schemaLocation="urn:one one.xsd\nurn:two two.xsd"'


def rules(envelope: Envelope) -> list[str]:
    return sorted(warning.rule for warning in envelope.warnings)


@pytest.mark.obligation("F12", "C03", "C11")
def test_the_header_is_read_and_its_oddities_are_told() -> None:
    envelope = parse(figure())
    assert rules(envelope) == ["bad-value", "order"]
    assert envelope.header is not None
    assert (envelope.header.correlation_id, envelope.header.msg_type) == ("0001", "REQUEST")
    assert envelope.to_bytes() == figure().encode()


@pytest.mark.obligation("F13", "C54")
def test_the_body_is_read() -> None:
    """CC is in no list of object types that the schema proposes; any text is one."""
    body = parse(figure()).body
    assert type(body) is GetInventoryRequest
    assert body.filter is not None
    (base,) = body.filter.base_instance
    assert [(rdn.type, rdn.value) for rdn in base.rdn] == [("MD", "N1/XdrEMS/Server1")]
    included = [(str(one.object_type), str(one.granularity)) for one in body.filter.included_object_type]
    assert included == [(kind, "FULL") for kind in TYPES]


@pytest.mark.obligation("F13", "C10")
def test_an_undeclared_prefix_is_not_repaired() -> None:
    with pytest.raises(MalformedXmlError, match="prefix name"):
        parse(figure(prefix="name"))


@pytest.mark.obligation("C09")
def test_the_slip_with_schemalocation_is_told_and_otherwise_ignored() -> None:
    plain, slipped = parse(figure()), parse(figure(slip=SLIP))
    assert rules(slipped) == sorted([*rules(plain), "C09"])
    assert (slipped.header, slipped.body) == (plain.header, plain.body)
    assert slipped.to_bytes() == figure(slip=SLIP).encode()
    assert b"schemaLocation" not in slipped.encode(), "what we write has none"


@pytest.mark.obligation("C09")
@pytest.mark.parametrize("command", ["map", "inspect"])
def test_the_commands_read_it_too(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "figure.xml"
    file.write_text(figure(slip=SLIP).replace(">MSG<", ">MGS<"), encoding="utf-8")
    assert main([command, str(file), "--json"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "C09" in {warning["rule"] for warning in json.loads(out)["warnings"]}


@pytest.mark.obligation("C09")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("</soap:Envelope>", "", id="ends-early"),
        pytest.param("<invr:filter>", "<schemaLocation:filter/><invr:filter>", id="used-by-an-element"),
        pytest.param("<invr:filter>", '<invr:filter schemaLocation:a="1">', id="used-by-an-attribute"),
        pytest.param("<invr:filter>", "<invr:filter><undeclared:x/>", id="another-fault-besides"),
        pytest.param("xmlns:schemaLocation=", "xmlns=", id="no-prefix"),
    ],
)
def test_the_slip_excuses_nothing_else(old: str, new: str) -> None:
    document = figure(slip=SLIP)
    assert document.count(old) >= 1
    with pytest.raises(MalformedXmlError):
        parse(document.replace(old, new))


@pytest.mark.obligation("T3.2", "T3.6", "T3.8", "C01", "C02")
@pytest.mark.parametrize(("preset", "shown"), [("default", False), ("table3", True)])
def test_the_sender_is_a_property_only_by_table_3(preset: str, shown: bool) -> None:
    envelope = parse(figure(slip=SLIP))
    assert envelope.header is not None
    message = to_jms(envelope.header, envelope, BindingProfile.preset(preset), names=NAMES)
    assert (message.reply_to, message.priority) == (Queue("PHYS.Q1"), 4)
    assert message.properties.get("MTOSI_senderURI") == ("jms/RtoInventoryOSQA" if shown else None)
    assert len(message.properties) == 7 + shown


@pytest.mark.obligation("C02")
def test_no_priority_is_made_up_in_the_header() -> None:
    envelope = parse(figure())
    assert envelope.header is not None
    assert envelope.header.priority is None
    assert map_header(envelope.header, BindingProfile(priority=6)).priority == 6
