"""`mtosi-jms inspect`: operation, pattern, header, objects, events, fault, warnings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtosi_jms.cli import main

MTOP = "http://www.tmforum.org/mtop"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{uri}"'
    for prefix, uri in {
        "s": "http://schemas.xmlsoap.org/soap/envelope/",
        "h": f"{MTOP}/fmw/xsd/hdr/v1",
        "nam": f"{MTOP}/fmw/xsd/nam/v1",
        "coi": f"{MTOP}/fmw/xsd/coi/v1",
        "msg": f"{MTOP}/fmw/xsd/msg/v1",
        "not": f"{MTOP}/fmw/xsd/notmsg/v1",
        "mer": f"{MTOP}/mri/xsd/mer/v1",
        "rir": f"{MTOP}/mri/xsd/rir/v1",
        "inv": f"{MTOP}/nrf/xsd/invdata/v1",
        "me": f"{MTOP}/nrf/xsd/me/v1",
        "alm": f"{MTOP}/nra/xsd/alm/v1",
        "ei": f"{MTOP}/fmw/xsd/ei/v1",
    }.items()
)
RESPONSE = {
    "activityName": "getAllManagedElements",
    "msgName": "getAllManagedElementsResponse",
    "msgType": "RESPONSE",
    "senderURI": "/MTOSI/EmsOS",
    "activityStatus": "SUCCESS",
    "correlationId": "7",
    "communicationPattern": "MultipleBatchResponse",
    "communicationStyle": "MSG",
    "requestedBatchSize": "3",
    "batchSequenceNumber": "2",
    "batchSequenceEndOfReply": "true",
}


def header(**values: str) -> str:
    return "<h:header>" + "".join(f"\n<h:{name}>{value}</h:{name}>" for name, value in values.items()) + "</h:header>"


def envelope(body: str, **values: str) -> str:
    head = f"<s:Header>{header(**values)}</s:Header>" if values else ""
    return f"<s:Envelope {NAMESPACES}>\n{head}<s:Body>{body}</s:Body></s:Envelope>"


def name(**parts: str) -> str:
    rdns = "".join(f"<nam:rdn><nam:type>{k}</nam:type><nam:value>{v}</nam:value></nam:rdn>" for k, v in parts.items())
    return f"<coi:name>{rdns}</coi:name>"


ELEMENTS = "".join(f"<me:me>{name(MD='E1', ME=f'N{number}')}</me:me>" for number in range(1, 5))
BATCH = f"<mer:getAllManagedElementsResponse><mer:meList>{ELEMENTS}</mer:meList></mer:getAllManagedElementsResponse>"

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "envelope.xml"


@pytest.fixture
def inspected(file: Path, capsys: pytest.CaptureFixture[str]) -> Inspect:
    """The JSON of an envelope, which must be inspected without a word on standard error."""

    def run(text: str, *options: str, code: int = 0) -> dict[str, Any]:
        file.write_text(text, encoding="utf-8")
        assert main(["inspect", str(file), "--json", *options]) == code
        out, err = capsys.readouterr()
        assert (err == "") is (code == 0)
        (line,) = out.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found

    return run


def test_a_batch_is_told_whole(file: Path, inspected: Inspect) -> None:
    assert inspected(envelope(BATCH, **RESPONSE)) == {
        "file": str(file),
        "release": "2.x",
        "soap_version": "1.1",
        "body": {"element": "getAllManagedElementsResponse", "namespace": f"{MTOP}/mri/xsd/mer/v1"},
        "operation": "getAllManagedElements",
        "services": [
            {
                "service": "ManagedElementRetrieval",
                "namespace": f"{MTOP}/mri/wsdl/mer/v1-0",
                "role": "response",
                "mep": "request-response",
            }
        ],
        "pattern": "MultipleBatchResponse",
        "style": "MSG",
        "batch": {"requested": 3, "number": 2, "end_of_reply": True},
        "header": RESPONSE,
        "objects": [{"type": "ME", "count": 4, "names": ["MD=E1/ME=N1", "MD=E1/ME=N2", "MD=E1/ME=N3"]}],
        "events": [],
        "fault": None,
        "warnings": [],
    }


def test_people_get_plain_lines(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = {key: RESPONSE[key] for key in ("activityName", "msgType", "correlationId", "communicationPattern")}
    file.write_text(envelope(BATCH, **values, batchSequenceNumber="1", activityStatus=""), encoding="utf-8")
    assert main(["inspect", str(file), "--show", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert [line.split(maxsplit=2) for line in out.splitlines()[2:] if not line.startswith("warning")] == [
        ["body", "getAllManagedElementsResponse", f"{MTOP}/mri/xsd/mer/v1"],
        ["operation", "getAllManagedElements", "response of ManagedElementRetrieval, request-response"],
        ["pattern", "MultipleBatchResponse"],
        ["batch", "number", "1"],
        ["header", "activityName", "getAllManagedElements"],
        ["header", "msgType", "RESPONSE"],
        ["header", "correlationId", "7"],
        ["header", "communicationPattern", "MultipleBatchResponse"],
        ["header", "batchSequenceNumber", "1"],
        ["header", "activityStatus", "(empty)"],
        ["objects", "ME", "4: MD=E1/ME=N1, MD=E1/ME=N2, ... 2 more"],
    ]
    assert "warning: line 2 /Envelope/Header/header/batchSequenceEndOfReply: " in out


def test_objects_of_the_nested_layout_are_counted_with_composed_names(inspected: Inspect) -> None:
    nodes = "".join(f"<inv:meInv><inv:meNm>{short}</inv:meNm></inv:meInv>" for short in ("A", "B/C"))
    body = (
        "<rir:getInventoryResponse><rir:inventoryData><inv:mdList><inv:md><inv:mdNm>E1</inv:mdNm>"
        f"<inv:meList>{nodes}</inv:meList></inv:md></inv:mdList></rir:inventoryData></rir:getInventoryResponse>"
    )
    found = inspected(envelope(body, activityName="getInventory", msgType="RESPONSE", correlationId="1"))
    assert found["objects"] == [
        {"type": "MD", "count": 1, "names": ["MD=E1"]},
        {"type": "ME", "count": 2, "names": ["MD=E1/ME=A", "MD=E1/ME=B%2FC"]},
    ]
    assert found["services"][0]["service"] == "ResourceInventoryRetrieval"


def test_events_of_a_notification_are_counted(inspected: Inspect) -> None:
    rdn = "<nam:rdn><nam:type>MD</nam:type><nam:value>E1</nam:value></nam:rdn>"
    alarm = f"<alm:alarm><ei:objectName>{rdn}</ei:objectName></alm:alarm>"
    body = f"<not:notify><not:message>{alarm}<alm:alarm/></not:message></not:notify>"
    found = inspected(envelope(body, activityName="notify", msgType="NOTIFICATION"))
    assert found["events"] == [{"type": "AlarmInformation", "count": 2, "names": ["MD=E1"]}]
    assert {use["service"] for use in found["services"]} == {"NotificationBroker", "NotificationConsumer"}
    assert {use["mep"] for use in found["services"]} == {"one-way"}


def fault(head: str) -> str:
    kind = f"<msg:entityNotFound>{head}<msg:reason>no such element</msg:reason></msg:entityNotFound>"
    detail = f"<detail><mer:getManagedElementException>{kind}</mer:getManagedElementException></detail>"
    return f"<s:Fault><faultcode>s:Server</faultcode><faultstring>not found</faultstring>{detail}</s:Fault>"


def test_a_fault_is_told_with_kind_and_reason(inspected: Inspect) -> None:
    head = header(activityName="getManagedElement", msgType="ERROR", correlationId="9")
    found = inspected(envelope(fault(head)))
    assert found["fault"] == {
        "code": "Server",
        "string": "not found",
        "kind": "entityNotFound",
        "reason": "no such element",
    }
    assert found["header"] == {"activityName": "getManagedElement", "msgType": "ERROR", "correlationId": "9"}
    assert [(use["service"], use["role"]) for use in found["services"]] == [("ManagedElementRetrieval", "fault")]
    assert found["body"]["element"] == "getManagedElementException"


def test_what_there_is_without_a_header_is_shown_and_the_file_is_at_fault(inspected: Inspect) -> None:
    found = inspected(envelope(fault("")), code=1)
    assert (found["header"], found["pattern"]) == (None, None)
    assert found["fault"]["kind"] == "entityNotFound"


def test_a_body_that_no_stub_knows_is_named(inspected: Inspect) -> None:
    body = '<v:doIt xmlns:v="urn:vendor"><v:list><x/></v:list></v:doIt>'
    found = inspected(envelope(body, activityName="doIt", msgType="REQUEST", senderURI="a", correlationId="1"))
    assert (found["operation"], found["services"], found["objects"]) == ("doIt", [], [])
    assert found["body"] == {"element": "doIt", "namespace": "urn:vendor"}


def test_an_empty_body_has_no_element(inspected: Inspect) -> None:
    found = inspected(envelope("", msgType="RESPONSE", correlationId="1"))
    assert (found["body"], found["operation"]) == (None, None)
    assert [warning["rule"] for warning in found["warnings"]] == ["empty-body"]


def test_header_and_body_that_differ_are_warned_of(inspected: Inspect) -> None:
    values = {**RESPONSE, "activityName": "getInventory", "msgType": "REQUEST"}
    warnings = inspected(envelope(BATCH, **values))["warnings"]
    assert [(w["line"], w["path"], w["message"]) for w in warnings] == [
        (
            3,
            "/Envelope/Header/header/activityName",
            "activityName is 'getInventory', the body belongs to getAllManagedElements",
        ),
        (5, "/Envelope/Header/header/msgType", "msgType is REQUEST, the body is the response of getAllManagedElements"),
    ]


SECRETS = {
    "security": "hunter2",
    "msgSpecificProperties": "<h:property><h:propName>ftpPassword</h:propName><h:propValue>hunter3</h:propValue>"
    "</h:property><h:property><h:propName>color</h:propName><h:propValue>red</h:propValue></h:property>",
    "fileLocationURI": "ftp://joe:hunter4@host/file.zip",
    "vendorExtensions": "<v:login xmlns:v='urn:v'><v:user>joe</v:user><v:passwd>hunter5</v:passwd></v:login>",
}


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["plain", "json"])
def test_credentials_in_the_header_are_masked_unless_asked(
    file: Path, options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(envelope(BATCH, **RESPONSE, **SECRETS), encoding="utf-8")
    assert main(["inspect", str(file), *options]) == 0
    out, err = capsys.readouterr()
    assert "hunter" not in out + err
    for text in ("ftpPassword=***; color=red", "ftp://joe:***@host/file.zip", "login=(user=joe; passwd=***)"):
        assert text in out
    assert main(["inspect", str(file), "--show-secrets", *options]) == 0
    shown = capsys.readouterr().out
    assert [number for number in "2345" if f"hunter{number}" in shown] == ["2", "3", "4", "5"]


def test_many_warnings_are_cut_for_people_and_whole_in_json(
    file: Path, inspected: Inspect, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = BATCH.replace("</me:me>", "<me:bogus/></me:me>" + "<me:me><me:bogus/></me:me>" * 10)
    assert len(inspected(envelope(odd, **RESPONSE))["warnings"]) == 44
    assert main(["inspect", str(file)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: ")]
    assert len(lines) == 31
    assert lines[-1] == "warning: 14 more; --json lists all"


def test_neither_spark_nor_arrow_is_needed(file: Path) -> None:
    file.write_text(envelope(BATCH, **RESPONSE), encoding="utf-8")
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('pyspark', 'pyarrow', 'pandas')))  # as if not installed\n"
        "from mtosi_jms.cli import main; sys.exit(main(['inspect', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
