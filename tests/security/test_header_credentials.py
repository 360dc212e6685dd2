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
from mtosi_jms.jms import JmsMessage, Queue
from mtosi_jms.simulator import ManagedElementEms, Network
from mtosi_jms.soap import Envelope, parse
from mtosi_jms.spool import entries
from mtosi_jms.validation._messages import readable

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
