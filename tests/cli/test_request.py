"""`mtosi-jms request` over the embedded provider, by stubs and by WSDL: what it prints, within --timeout."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

import mtosi_jms as mtosi
from mtosi_jms.cli import main
from mtosi_jms.cli._contents import listed_in
from mtosi_jms.soap import Envelope, Header
from mtosi_jms.spool import entries
from mtosi_jms.stubs.fmw.nam import name
from mtosi_jms.stubs.mri.mer import GetManagedElementRequest
from mtosi_jms.stubs.nra.alm import AlarmType
from mtosi_jms.stubs.nra.prc import ProbableCauseEnumType, ProbableCauseType
from mtosi_jms.stubs.rtm.alarm_retrieval import AlarmRetrieval
from mtosi_jms.xmlbind import encode

Capture = pytest.CaptureFixture[str]
NE2 = "MD=EMS1/ME=NE-2"


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def request_of(url: str, serving: Callable[..., Any], root: Path, capsys: Capture) -> Call:
    """Calls `request`, with the WSDL of a service if one is named."""
    serving("--elements", "5", "--services", "ManagedElementRetrieval,ResourceInventoryRetrieval")

    def call(*words: str, wsdl: str = "") -> tuple[int, str, str]:
        if wsdl:
            pytest.importorskip("zeep")
            words = ("--wsdl", str(root / "wsdl" / f"{wsdl}.wsdl"), *words)
        capsys.readouterr()
        code = main(["request", *words, "--url", url, "--to", "queue:EMS", "--timeout", "20"])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call


@pytest.fixture(params=["", "ManagedElementRetrieval"], ids=["stubs", "wsdl"])
def retrieve(request_of: Call, request: pytest.FixtureRequest) -> Call:
    return partial(request_of, wsdl=request.param)


def test_one_reply_is_printed_as_xml(retrieve: Call) -> None:
    code, out, err = retrieve("getManagedElement", "--set", f"meRef={NE2}")
    assert (code, err) == (0, "")
    assert out.startswith("<")
    assert "getManagedElementResponse" in out.splitlines()[0]
    assert out.count("NE-2<") == 1


def test_several_replies_are_lines(retrieve: Call, tmp_path: Path) -> None:
    words = ("--batch-size", "2", "--landing", str(tmp_path), "--reply-to", "queue:OS")
    code, out, err = retrieve("getAllManagedElements", *words)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"batch 1: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-1, {NE2}",
        "batch 2: getAllManagedElementsResponse: 2 ME: MD=EMS1/ME=NE-3, MD=EMS1/ME=NE-4",
        "batch 3, the last: getAllManagedElementsResponse: 1 ME: MD=EMS1/ME=NE-5",
    ]
    landed = list(entries(tmp_path, strict=True))
    assert [entry.facts.properties["MTOSI_batchSequenceNumber"] for entry in landed if entry.facts] == [1, 2, 3]


def test_how_replies_are_shown_can_be_chosen(request_of: Call) -> None:
    out = request_of("getAllManagedElements", "--batch-size", "2", "--show", "xml")[1]
    assert out.count("getAllManagedElementsResponse xmlns") == 3
    out = request_of("getManagedElement", "--set", f"me_ref={NE2}", "--show", "summary")[1]
    assert out == f"reply 1: getManagedElementResponse: 1 ME: {NE2}\n"


def test_json_has_a_line_for_each_reply(request_of: Call) -> None:
    code, out, err = request_of("ManagedElementRetrieval.getManagedElement", "--set", f"meRef={NE2}", "--json")
    assert (code, err) == (0, "")
    (reply,) = [json.loads(line) for line in out.splitlines()]
    assert (reply["service"], reply["operation"]) == ("ManagedElementRetrieval", "getManagedElement")
    assert reply["body"]["me"]["name"] == NE2
    assert reply["batch_sequence_number"] is None
    assert len(reply["correlation_id"]) == 36


def test_json_has_the_names_of_the_schema(request_of: Call) -> None:
    code, out, err = request_of("getManagedElement", "--set", f"meRef={NE2}", "--json", wsdl="ManagedElementRetrieval")
    assert (code, err) == (0, "")
    (reply,) = [json.loads(line) for line in out.splitlines()]
    assert (reply["service"], reply["operation"]) == ("ManagedElementRetrieval_MSG", "getManagedElement")
    assert reply["body"]["me"]["name"]["rdn"][1] == {"type": "ME", "value": "NE-2"}
    assert len(reply["correlation_id"]) == 36
    assert reply["objects"] == [{"type": "ME", "count": 1, "names": [NE2]}]


@pytest.mark.parametrize("form", ["element", "envelope"])
def test_a_request_from_a_file(retrieve: Call, tmp_path: Path, form: str) -> None:
    request = GetManagedElementRequest(me_ref=name(NE2))
    data = encode(request) if form == "element" else Envelope(header=Header(), body=request).to_bytes()
    file = tmp_path / "request.xml"
    file.write_bytes(data)
    code, out, err = retrieve("getManagedElement", "--body", str(file), "--show", "summary")
    assert (code, out) == (0, f"reply 1: getManagedElementResponse: 1 ME: {NE2}\n"), err


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<a/>", "is not a request of getManagedElement"),
        ("<a>", "get it again, complete"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>', "no MTOSI message has a DTD"),
    ],
)
def test_a_file_that_holds_no_request(request_of: Call, tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "request.xml"
    file.write_text(text, encoding="utf-8")
    code, out, err = request_of("getManagedElement", "--body", str(file))
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert reason in err


def test_a_file_that_is_not_there(request_of: Call, tmp_path: Path) -> None:
    code, _, err = request_of("getManagedElement", "--body", str(tmp_path / "no.xml"))
    assert (code, err.count("\n")) == (1, 1)
    assert "check the name" in err


def test_a_fault_is_one_line_and_a_json_line_too(retrieve: Call) -> None:
    code, out, err = retrieve("getManagedElement", "--set", "meRef=MD=EMS1/ME=no", "--json")
    assert code == 1
    reply = json.loads(out)
    assert reply["fault"] == {
        "kind": "entityNotFound",
        "reason": "there is no MD=EMS1/ME=no",
        "code": "Server",
    }
    told = f"{reply['service']}.getManagedElement: entityNotFound: there is no MD=EMS1/ME=no"
    assert err == f"error: {told}\n"


def test_an_operation_without_a_reply(request_of: Call, url: str, tmp_path: Path) -> None:
    file = tmp_path / "notify.xml"
    file.write_text(
        '<notify xmlns="http://www.tmforum.org/mtop/fmw/xsd/notmsg/v1"><topic>T</topic><message/></notify>',
        encoding="utf-8",
    )
    code, out, err = request_of("NotificationConsumer.notify", "--body", str(file))
    assert (code, out) == (0, "sent: NotificationConsumer.notify, which has no reply\n")
    assert "required element commonEventInformation is missing" in err


def test_fields_are_filled_step_by_step(request_of: Call) -> None:
    code, out, _ = request_of(
        "getManagedElement",
        *("--set", "meRef.rdn[0].type=MD", "--set", "meRef.rdn[0].value=EMS1"),
        *("--set", "meRef.rdn[1].type=ME", "--set", "meRef.rdn[1].value=NE-3"),
        *("--show", "summary"),
        wsdl="ManagedElementRetrieval",
    )
    assert (code, out) == (0, "reply 1: getManagedElementResponse: 1 ME: MD=EMS1/ME=NE-3\n")


def test_a_file_that_does_not_fit_a_wsdl(request_of: Call, tmp_path: Path) -> None:
    file = tmp_path / "request.xml"
    for text, operation, code in (("<a/>", "getAllManagedElements", 2), ("<request", "getManagedElement", 1)):
        file.write_text(text)
        assert request_of(operation, "--body", str(file), wsdl="ManagedElementRetrieval")[0] == code


def test_a_service_of_the_wsdl_may_be_named(request_of: Call) -> None:
    assert (
        request_of(
            "ManagedElementRetrievalJms.getManagedElement", "--set", f"meRef={NE2}", wsdl="ManagedElementRetrieval"
        )[0]
        == 0
    )
    code, _, err = request_of("ManagedElementRetrival.getManagedElement", wsdl="ManagedElementRetrieval")
    assert code == 2
    assert "no service 'ManagedElementRetrival'; did you mean ManagedElementRetrievalJms?" in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("getManagedElements",), "no operation 'getManagedElements'; did you mean getManagedElement"),
        (("getManagedElement", "--set", "mRef=x"), "'mRef=x': no field 'mRef'; did you mean meRef?"),
        (("getManagedElement", "--set", "meRef.rdm.type=x"), "no field 'rdm'; did you mean rdn?"),
        (("getManagedElement", "--set", "meRef.rdn.type.x=x"), "type has no fields"),
        (("getManagedElement", "--set", "meRef[1]=MD=EMS1"), "meRef is not a list"),
        (("getManagedElement", "--set", "meRef=nothing"), "does not fit"),
        (("getManagedElement", "--set", "meRef.rdn.type=MD"), "getManagedElement: Missing element value"),
        (("getManagedElement", "--set", "meRef"), "must be path=value"),
    ],
)
def test_wrong_use_of_a_wsdl_is_told(request_of: Call, words: tuple[str, ...], told: str) -> None:
    code, out, err = request_of(*words, wsdl="ManagedElementRetrieval")
    assert (code, out) == (2, "")
    assert told.replace("=x'", "'") in err


def test_lists_choices_and_numbers(request_of: Call) -> None:
    code, out, _ = request_of(
        "getInventory",
        *("--set", f"filter.baseInstance={NE2}", "--set", "filter.baseInstance=MD=EMS1/ME=NE-3"),
        *("--set", "filter.includedObjectType.objectType=ME", "--set", "filter.includedObjectType.granularity=NAME"),
        *("--set", "diffDateAndTime=2020-01-01T00:00:00Z", "--show", "summary"),
        wsdl="ResourceInventoryRetrieval",
    )
    assert code == 0
    assert f"; 2 ME: {NE2}, MD=EMS1/ME=NE-3; " in out


def test_a_wsdl_that_is_not_there(request_of: Call) -> None:
    code, _, err = request_of("getManagedElement", wsdl="Nothing")
    assert code == 1
    assert "Nothing.wsdl: no such file" in err


def test_nobody_answers(url: str, capsys: Capture) -> None:
    words = ["--url", url, "--to", "queue:NOBODY", "--timeout", "0.1"]
    assert main(["request", "getAllManagedElements", *words]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")


def test_an_unknown_destination(url: str, capsys: Capture, tmp_path: Path) -> None:
    names = tmp_path / "jndi.properties"
    names.write_text("queue.jms/EmsOS=EMS\n", encoding="utf-8")
    words = ["--url", url, "--names", str(names), "--to", "jms/EmsO"]
    assert main(["request", "getAllManagedElements", *words]) == 1
    assert capsys.readouterr().err == (
        "error: 'jms/EmsO': no destination is known by this name; did you mean jms/EmsOS?\n"
    )


def test_the_environment_names_the_provider(
    serving: Any, url: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    serving("--elements", "3")
    monkeypatch.setenv("MTOSI_JMS_URL", url)
    assert main(["request", "getAllManagedElements", "--to", "queue:EMS", "--batch-size", "0"]) == 0
    assert "3 ME" in capsys.readouterr().out
    monkeypatch.setenv("MTOSI_JMS_URL", "")
    assert main(["request", "getAllManagedElements", "--to", "queue:EMS"]) == 2
    assert "--url" in capsys.readouterr().err


def test_a_password_file_that_is_empty(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty").write_text("", encoding="utf-8")
    words = ["--url", "stomp://localhost:1", "--user", "u", "--password-file", str(tmp_path / "empty")]
    assert main(["request", "getAllManagedElements", "--to", "queue:X", *words]) == 1
    assert "its first line is empty; it must be the password" in capsys.readouterr().err


@pytest.fixture
def silent() -> Iterator[str]:
    """Something that takes connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"stomp://127.0.0.1:{listener.getsockname()[1]}"


def spent(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[float, str]:
    began = time.monotonic()
    assert main(["request", "getAllManagedElements", "--url", url, "--to", "queue:X", "--timeout", "0.4", *words]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    return time.monotonic() - began, err


@pytest.mark.parametrize("brokers", ["{0}", "failover:({0},{0},{0})"])
def test_a_broker_that_never_answers(brokers: str, silent: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One attempt may take ten seconds where nothing is said."""
    seconds, err = spent(brokers.format(silent), capsys)
    assert 0.3 < seconds < 9
    assert "no answer within" in err


@pytest.mark.parametrize("words", [[], ["--batch-size", "5"]])
def test_nobody_consumes_the_destination(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    seconds, err = spent("memory:request-in-time", capsys, *words)
    assert 0.3 < seconds < 9
    assert re.search(r"getAllManagedElements to queue:X: no reply within 0\.\d+ s, .*nobody consumes queue:X", err)


class Alarms(AlarmRetrieval.Supplier):
    """Three alarms, the last one without the name of its object."""

    def get_active_alarms(self, request: Any, context: mtosi.RequestContext) -> Iterator[AlarmType]:
        cause = ProbableCauseType(probable_cause=ProbableCauseEnumType.LOS)
        for number in (1, 2):
            yield AlarmType(object_name=name(f"MD=EMS1/ME=NE-{number}"), probable_cause=cause)
        yield AlarmType(probable_cause=cause)


def test_alarms_are_counted_and_named(capsys: Capture) -> None:
    with (
        mtosi.connect("memory:items") as connection,
        mtosi.Supplier(connection, "queue:EMS", services=[Alarms()]),
    ):
        words = ["request", "getActiveAlarms", "--url", "memory:items", "--to", "queue:EMS", "--timeout", "20"]
        assert main([*words, "--batch-size", "2"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "batch 1: getActiveAlarmsResponse: 2 alarm: MD=EMS1/ME=NE-1, MD=EMS1/ME=NE-2",
            "batch 2, the last: getActiveAlarmsResponse: 1 alarm: LOS",
        ]
        assert main([*words, "--json"]) == 0
        (group,) = json.loads(capsys.readouterr().out)["objects"]
        assert (group["type"], group["count"]) == ("alarm", 3)


NAMED = "<r><rdn><type>MD</type><value>{}</value></rdn></r>"


@pytest.mark.parametrize(
    ("response", "depth", "found"),
    [
        ("<a/>", 0, []),
        ("<a><count>5</count></a>", 0, [("count", 1, ["5"])]),
        ("<a><x>1</x><x>2</x><vendorExtensions><x>3</x></vendorExtensions></a>", 1, [("x", 2, ["1", "2"])]),
        ("<a><l><x><id>7</id><to>8</to></x></l></a>", 2, [("x", 1, ["7"])]),
        ("<a><l><x><to>8</to><id>7</id></x><x><to>9</to><id>6</id></x></l></a>", 0, [("x", 2, ["7", "6"])]),
        (f"<a>{NAMED.format(1)}{NAMED.format(2)}</a>", 0, [("r", 2, ["MD=1", "MD=2"])]),
        (f"<a>{NAMED.format(1)}</a>", 1, [("r", 1, ["MD=1"])]),
        ("<a><x><name><rdn><type>MD</type><value>3</value></rdn></name><k/></x><y/></a>", 0,
         [("x", 1, ["MD=3"]), ("y", 1, [])]),
    ],
)  # fmt: skip
def test_items_of_any_kind(response: str, depth: int, found: list[tuple[str, int, list[str]]]) -> None:
    element = etree.fromstring(response)
    assert [(one.type, one.count, one.names) for one in listed_in(element, depth, 3)] == found
    assert element.getparent() is None
