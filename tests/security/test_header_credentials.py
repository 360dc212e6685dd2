"""The header's credentials: in no output, log, warning, error or repr, though the message itself carries them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.binding import BindingProfile
from mtosi_jms.binding.mapping import from_jms, to_jms
from mtosi_jms.cli import main
from mtosi_jms.errors import DecodeError
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.spool import entries
from mtosi_jms.validation._judge import readable
from mtosi_jms.xmlbind import Extras, Kept, Leaf, Nil, RawXml

pytestmark = pytest.mark.obligation("C55")
MARK = "S3cr3t-Mark"
HDR = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
_numbers = itertools.count(1)
REQUEST = f"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Header>
<h:header xmlns:h="{HDR}"><h:activityName>getAllManagedElements</h:activityName><h:msgType>REQUEST</h:msgType>
<h:senderURI>http://noc:{MARK}@os/x</h:senderURI><h:destinationURI>queue:EMS</h:destinationURI>
<h:correlationId>c-1</h:correlationId><h:security>{MARK}</h:security><h:securityType>{MARK}</h:securityType>
<h:msgSpecificProperties><h:property><h:propName>password</h:propName><h:propValue>{MARK}</h:propValue></h:property>
</h:msgSpecificProperties><h:communicationPattern>SimpleResponse</h:communicationPattern>
<h:communicationStyle>MSG</h:communicationStyle></h:header></soap:Header><soap:Body>
<m:getAllManagedElementsRequest xmlns:m="http://www.tmforum.org/mtop/mri/xsd/mer/v1"/></soap:Body></soap:Envelope>"""
NOTICE = f"""<soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Header>
<h:header xmlns:h="{HDR}"><h:activityName>notify</h:activityName><h:msgType>NOTIFICATION</h:msgType>
<h:senderURI>jms/EmsOS</h:senderURI><h:security>{MARK}</h:security>
<h:communicationPattern>Notification</h:communicationPattern><h:communicationStyle>MSG</h:communicationStyle>
</h:header></soap:Header><soap:Body><n:notify xmlns:n="http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1">
<n:topic>Fault</n:topic><n:message><a:alarm xmlns:a="http://www.tmforum.org/mtop/nra/xsd/alm/v1"/></n:message>
</n:notify></soap:Body></soap:Envelope>"""


def broken(text: str) -> str:
    """The same with breaches at the very places."""
    return (
        text.replace("<h:security>", "<h:security odd='1'>")
        .replace(">REQUEST<", ">WHATEVER<")
        .replace("<h:securityType>", "<h:securityType><odd/>")
    )


@pytest.mark.parametrize("change", [str, broken], ids=["in order", "with breaches"])
@pytest.mark.parametrize("words", ["inspect", "inspect --json", "map", "validate", "validate --json"])
def test_commands_on_files(words: str, change: Callable[[str], str], say: Any, tmp_path: Path) -> None:
    file = tmp_path / "request.xml"
    file.write_text(change(REQUEST), encoding="utf-8")
    said = say(*words.split(), str(file))
    assert said.texts["output"]
    assert said.leaks() == []


def test_what_a_machine_is_told_is_what_will_be_sent(say: Any, tmp_path: Path) -> None:
    """The exception: `map --json --show-secrets` says what a message will carry."""
    file = tmp_path / "request.xml"
    file.write_text(REQUEST, encoding="utf-8")
    words = "map", "--json", "--optional", "security", str(file)
    assert say(*words).leaks() == []
    told = json.loads(say(*words, "--show-secrets").texts["output"])
    assert told["properties"]["MTOSI_security"]["value"] == MARK


def test_commands_over_a_provider(say: Any, tmp_path: Path) -> None:
    url, landing = f"memory:credentials-{next(_numbers)}", tmp_path / "landing"
    file = tmp_path / "notice.xml"
    file.write_text(NOTICE, encoding="utf-8")
    durable = ("subscribe", "--url", url, "--topic", "topic:T", "--durable", "noc")
    said = [
        say(*durable, "--timeout", "0"),
        say("publish", str(file), "--url", url, "--topic", "topic:T"),
        say("publish", str(file), "--url", url, "--topic", "topic:T", "--json"),
        say(*durable, "--count", "1", "--json", "--landing", str(landing)),
        say(*durable, "--count", "1"),
        say("replay", str(landing), "--url", url, "--to", "queue:AGAIN"),
        say("replay", str(landing), "--url", url, "--to", "queue:AGAIN", "--json"),
    ]
    assert [one.code for one in said] == [0] * 7
    assert [one.leaks() for one in said] == [[]] * 7
    (kept,) = entries(landing)
    assert MARK.encode() in kept.path.read_bytes()  # what came is kept as it came


def test_a_supplier_that_is_asked_wrongly(caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    """Whatever it logs of requests with warnings, refused and unreadable ones."""
    caplog.set_level("DEBUG")
    told: list[Exception] = []
    with mtosi.connect(f"memory:credentials-{next(_numbers)}") as connection:
        supplier = mtosi.Supplier(
            connection, Queue("EMS"), [ManagedElementEms(Network(elements=1))], on_error=told.append
        )
        session = connection.session()
        reply_to = session.temporary_queue()
        unknown = REQUEST.replace("getAllManagedElementsRequest", "nothingRequest")
        for text in (REQUEST, broken(REQUEST), unknown, REQUEST[:-9]):
            message = JmsMessage(
                body=text.encode(), reply_to=reply_to, properties={"MTOSI_security": MARK, "MTOSI_msgType": "REQUEST"}
            )
            supplier.answer(message, session)
    assert caplog.text
    assert MARK not in f"{caplog.text} {told} {capsys.readouterr()}"


@pytest.mark.parametrize("change", [str, broken], ids=["in order", "with breaches"])
def test_reprs_and_warnings(change: Callable[[str], str]) -> None:
    text = change(REQUEST).replace(f"http://noc:{MARK}@os/x", "jms/OS").replace(f"propValue>{MARK}", "propValue>x")
    text = text.replace(f"<h:securityType>{MARK}", "<h:securityType>x")
    message = JmsMessage(body=text.encode(), properties={"MTOSI_security": f"{MARK}-other", "MTOSI_msgType": "REQUEST"})
    envelope = from_jms(message)
    assert envelope.warnings
    assert MARK not in f"{envelope!r} {message!r} {message} {envelope.warnings}"
    assert MARK not in " ".join(map(str, envelope.warnings))
    assert MARK.encode() in envelope.to_bytes()


@pytest.mark.parametrize(
    "finding",
    [
        f"Element '{{{HDR}}}security': [facet 'maxLength'] The value '{MARK}' has a length of '11'; this exceeds '3'.",
        f"Element '{{{HDR}}}security': [facet 'enumeration'] The value '{MARK}' is not an element of the set {{'a'}}.",
        f"Element '{{{HDR}}}security': '{MARK}' is not a valid value of the atomic type 'xs:int'.",
        f"Element '{{{HDR}}}security': [facet 'pattern'] The value 'it's {MARK}' is not accepted by the pattern 'x+'.",
    ],
)
def test_findings_of_a_schema_that_restricts_it(finding: str) -> None:
    element = etree.fromstring(f"<h:security xmlns:h='{HDR}'>{MARK}</h:security>")
    shown = readable(finding, element)
    assert MARK not in shown
    assert shown.startswith("Element 'h:security': ")
    other = etree.fromstring(f"<h:senderURI xmlns:h='{HDR}'>{MARK}</h:senderURI>")
    assert MARK in readable(finding.replace("security", "senderURI"), other)


def test_a_header_that_is_sent_shows_none() -> None:
    """Mapped on request, the property is masked wherever the message is shown."""
    header = parse(REQUEST.replace(f"http://noc:{MARK}@os/x", "queue:OS").encode()).header
    assert header is not None
    assert header.security == MARK
    profile = BindingProfile(optional_fields=frozenset({"security", "securityType"}))
    message = to_jms(header, Envelope(header=header, body=None), profile)
    assert message.properties["MTOSI_security"] == MARK
    assert MARK not in f"{message!r} {message} {message.properties!r}"


def test_the_command_that_shows_them_when_told_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So that the tests above look for something that would be there."""
    file = tmp_path / "request.xml"
    file.write_text(REQUEST, encoding="utf-8")
    assert main(["inspect", "--show-secrets", str(file)]) == 0
    assert MARK in capsys.readouterr().out


# Attributes of credentials: in no repr, warning, error or output, wherever they are kept.

XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
SECURITY = {
    "attribute": f'<h:security kind="{MARK}">x</h:security>',
    "attribute of a namespace": f'<h:security h:kind="{MARK}">x</h:security>',
    "type": f'<h:security xsi:type="{MARK}">x</h:security>',
    "type with a prefix": f'<h:security xsi:type="nix:{MARK}">x</h:security>',
    "nil": f'<h:security xsi:nil="true" kind="{MARK}"/>',
    "not nil": f'<h:security xsi:nil="{MARK}">x</h:security>',
    "elements": f'<h:security kind="{MARK}"><x token="{MARK}">{MARK}</x>{MARK}</h:security>',
    "twice": f'<h:security>x</h:security><h:security kind="{MARK}">{MARK}</h:security>',
    "a name of its own": f'<h:mySecret kind="{MARK}">{MARK}</h:mySecret>',
    "its type": f'<h:securityType kind="{MARK}">x</h:securityType>',
}


def envelope(security: str) -> bytes:
    hdr = "http://www.tmforum.org/mtop/fmw/xsd/hdr/v1"
    return (
        f'<s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/" token="{MARK}"><s:Header>'
        f'<h:header xmlns:h="{hdr}" {XSI}><h:activityName>a</h:activityName><h:msgType>REQUEST</h:msgType>'
        f'{security}</h:header></s:Header><s:Body><x xmlns="urn:x"/></s:Body></s:Envelope>'
    ).encode()


def told(found: Envelope) -> str:
    header: Any = found.header
    return f"{found!r} {header!r} {header.extras!r} {found.warnings!r} {[str(one) for one in found.warnings]}"


@pytest.mark.parametrize("security", SECURITY.values(), ids=SECURITY.keys())
def test_an_envelope_does_not_tell(security: str, tmp_path: Path, capsys: Any) -> None:
    data = envelope(security)
    found = parse(data)
    shown = told(found)
    try:
        parse(data, strict=True)
    except DecodeError as error:
        shown += str(error)
    assert MARK not in shown
    file = tmp_path / "envelope.xml"
    file.write_bytes(data)
    for command in (("inspect", str(file)), ("validate", str(file)), ("map", str(file))):
        main(list(command))
    out = capsys.readouterr()
    assert MARK not in out.out + out.err
    assert found.to_bytes() == data


def test_what_is_kept_shows_names_alone() -> None:
    extras = Extras(
        elements=[Kept(RawXml(f"<a b='{MARK}'/>".encode()), None, MARK)],
        attributes={"kind": MARK},
        leaves={("security", 0): Leaf(MARK, MARK, (("kind", MARK),))},
        texts={None: MARK},
    )
    assert MARK not in repr(extras) + repr(extras.elements) + repr(extras.leaves)
    assert "kind" in repr(extras)
    assert repr(Nil({"token": MARK})) == "Nil({'token': ***})"
